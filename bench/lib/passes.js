'use strict';
// What goes from a giver to a waiter (see relay.js), turn after turn: a lock, a notification, or a wake of main's loop.
// Each is made anew in each thread, of data that can be posted, and has as many of these as it needs:
//   hold()         the giver, before the waiter comes: gets what it will give (on main it answers a promise)
//   give(turn)     the giver
//   wait(turn)     a worker that waits: blocks until it is given
//   next(turn)     main's loop that waits: begins to wait, answers a promise
//   leave()        the waiter, when it has it

const { wakerOf } = require('./bare');
const { byName } = require('./contenders');
const { loadFace } = require('./faces');

function lock({ contender, memory, data, isMain }) {
  const own = byName(contender).open(memory, 0);
  const inside = () => {
    data[0]++;
  };
  return {
    hold() {
      if (isMain) return own.lockAsync().then(inside);
      own.lock();
      inside();
    },
    give: () => own.unlock(),
    wait: () => own.lock(),
    next: () => own.lockAsync(),
    leave() {
      inside();
      own.unlock();
    },
  };
}

function notification({ face, word }) {
  const { wait, notify, waitAsync } = loadFace(face);
  return {
    give(turn) {
      Atomics.store(word, 0, turn);
      notify(word, 0, 1);
    },
    wait(turn) {
      while (Atomics.load(word, 0) < turn) wait(word, 0, turn - 1);
    },
    next: (turn) => waitAsync(word, 0, turn - 1).value,
  };
}

/** The waiting side is main's own, since it has the waiter. */
function wake({ waker, waiter }) {
  return { give: wakerOf(waker), next: () => waiter.next() };
}

const PASSES = { lock, notification, wake };

/** `pass`: `{ kind, ... }` and what that kind needs; of the lock, a contender's name, as its package is loaded by then. */
exports.openPass = (pass, isMain) => PASSES[pass.kind]({ ...pass, isMain });
