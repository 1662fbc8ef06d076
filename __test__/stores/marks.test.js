// A mark that a store grants a name with is reported once in a process, until the name was seen without it: nobody knows whether
// another thread or process has. This thread asks, and is its own lock worker.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { binding, thread } = require('../../lib/engine/thread.js');
const { StoreHold } = require('../../lib/stores/store-hold.js');

const { Exclusive } = binding.NameMode;
/** The kind of a task that asks. */
const ASK = 0;

/** Returns `grant(name, abandoned)`, which is a hold that was granted so. */
function createStore(t) {
  const desk = binding.openDesk(false);
  binding.serveDesk(desk);
  t.after(() => binding.endDesk(desk, '{}'));
  thread.stores ??= { holds: new Map(), tellLost() {} };
  const owner = { holds: new Set(), reported: new Set(), tell() {}, ended: (hold) => owner.holds.delete(hold) };
  return (name, abandoned) => {
    const question = { desk, store: 1, verb: 1, name, mode: Exclusive, flags: 0, payload: '' };
    assert.equal(binding.askStore(question, Infinity), binding.PENDING);
    let task = binding.nextTask(desk);
    // Those before are of releases.
    while (task.kind !== ASK) task = binding.nextTask(desk);
    const { number } = task;
    binding.answerTask(desk, number, { lease: 0, fence: 0n, abandoned, text: '' });
    return new StoreHold(name, binding.next(), number, false, owner);
  };
}

/** What happens to a name between two marked grants of it, and whether the second is reported. */
const BETWEEN = {
  'was held, and is marked still': [false, () => {}],
  'was granted without a mark': [true, (grant) => grant('name', false).unlock()],
  'was marked as consistent by its holder': [true, (_, hold) => hold.markConsistent()],
  'is not that which was marked as consistent': [false, (grant) => grant('other', true).markConsistent()],
};

for (const [what, [isReported, between]] of Object.entries(BETWEEN)) {
  test(`a mark is ${isReported ? '' : 'not '}reported again if its name ${what}`, (t) => {
    const grant = createStore(t);
    const first = grant('name', true);
    assert.deepEqual([first.abandoned, first.ended !== null], [true, true]);
    if (between.length < 2) first.unlock();
    between(grant, first);
    first.unlock();
    const second = grant('name', true);
    assert.deepEqual([second.abandoned, second.ended !== null], [true, isReported]);
    second.unlock();
  });
}
