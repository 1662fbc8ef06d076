// Waits when it is told to, and notes that it was woken: by an object of the package, then by the system alone, after which it wakes
// `next`, the cells of the thread behind it.
//
// `cells`: the round that may begin, how often it was woken, the round of the bare wake-up, the round in which it sleeps for that.

const { data, doing } = require('../helpers/inside.js');
const { kindNamed } = require('../helpers/wakeups.js');

const { cells, name, buffer, way, isAsync, next } = data;
const GO = 0;
const WOKEN = 1;
const BARE = 2;
const SLEEPS = 3;
const kind = kindNamed(name, buffer);

const noteWoken = () => {
  Atomics.add(cells, WOKEN, 1);
  Atomics.notify(cells, WOKEN);
};

const main = async () => {
  for (let round = 1; ; round++) {
    doing(`waiting for round ${round}`);
    Atomics.wait(cells, GO, round - 1);
    doing(`waiting in round ${round}`);
    if (isAsync) await kind.waitAsync(way);
    else kind.wait(way);
    noteWoken();
    Atomics.store(cells, SLEEPS, round);
    Atomics.wait(cells, BARE, round - 1);
    if (next !== undefined) {
      Atomics.store(next, BARE, round);
      Atomics.notify(next, BARE);
    }
    noteWoken();
  }
};

main();
