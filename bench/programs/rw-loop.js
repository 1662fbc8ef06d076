'use strict';
// Takes one side of a readers-writer lock over and over until asked to stop; see lib/rwlocks.js.

const { join } = require('../lib/workers');
const { busyFor, sharedNs } = require('../lib/clock');
const { INSIDE, KINDS } = require('../lib/rwlocks');

join((contender, { kind, memory, side, pair, progress, slot, hold }) => {
  const lock = KINDS[kind].open(contender, memory)[side];
  const inside = INSIDE[side];
  const busy = busyFor(hold);
  let holds = 0;
  let torn = 0;

  return (stopped) => {
    const start = sharedNs();
    while (!stopped()) {
      lock.lock();
      if (!inside(pair, busy)) torn++;
      lock.unlock();
      progress[slot] = ++holds;
    }
    return { holds, torn, start, end: sharedNs() };
  };
});
