'use strict';
// The load of hold-loop.js without a lock: spins for one hold after the other, and after each answers a request for a
// wake, if there is one, by waking the main thread's loop.

const { join } = require('../lib/workers');
const { busyFor } = require('../lib/clock');
const { wakerOf } = require('../lib/wakeups');

join((_, { request, waker, progress, slot, hold }) => {
  const busy = busyFor(hold);
  const wakeMain = wakerOf(waker);
  let turns = 0;
  return (stopped) => {
    while (!stopped()) {
      busy();
      progress[slot] = ++turns;
      if (Atomics.load(request, 0) === 1 && Atomics.compareExchange(request, 0, 1, 0) === 1) wakeMain();
    }
    return { turns };
  };
});
