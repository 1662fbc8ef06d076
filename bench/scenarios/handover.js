'use strict';
// Handover latency: from just before unlock() in one thread to the lock in another that is asleep by then: a blocked
// worker, or an idle event loop that awaits. The limits are the barest wakes of the same kinds. Giver and waiter are
// pinned to two cores: the first worker to core 0, the second worker or main to core 1.

const { Crew } = require('../lib/crew');
const { futexName, futexWake, LoopWaiter, loopName } = require('../lib/bare');
const { busyFor, sharedNs } = require('../lib/clock');
const { has } = require('../lib/holder');
const { pin, unpin } = require('../lib/pin');
const {
  TURN,
  WAITING,
  DONE,
  GIVEN,
  TAKEN,
  ASLEEP_µS,
  newTurns,
  newStamps,
  awaitAsync,
  stayAwake,
  announce,
  latencies,
} = require('../lib/turns');

const settle = busyFor(ASLEEP_µS);

/** Main's part when it is the waiter: `wait(turn)` begins to wait and answers a promise, `leave` ends the hold. */
async function mainWaits({ turns, stamps, count }, wait, leave = () => {}) {
  for (let turn = 1; turn <= count; turn++) {
    await awaitAsync(turns, TURN, turn);
    const got = wait();
    announce(turns, WAITING, turn);
    await got;
    stamps[TAKEN + 2 * turn] = sharedNs();
    leave();
    announce(turns, DONE, turn);
  }
}

/** Main's part when it is the giver. */
async function mainGives({ turns, stamps, count }, give, hold = () => {}) {
  for (let turn = 1; turn <= count; turn++) {
    await hold();
    announce(turns, TURN, turn);
    await awaitAsync(turns, WAITING, turn);
    settle();
    stamps[GIVEN + 2 * turn] = sharedNs();
    give(turn);
    stayAwake(turns, DONE, turn);
    await awaitAsync(turns, DONE, turn);
  }
}

async function withCrew(contender, roles, shared, main) {
  const crew = await Crew.start(roles.length, 'handover.js', contender, (i) => ({
    ...shared,
    role: roles[i],
    core: i,
  }));
  if (main) pin(1);
  crew.go();
  await main?.();
  await crew.results();
  if (main) unpin();
  await crew.end();
  const samples = latencies(shared.stamps, shared.count);
  const early = samples.filter((ns) => ns < 0).length;
  return { samples, wrong: early ? `${early} waiters had the lock before it was given to them` : undefined };
}

const newShared = (count) => ({
  turns: newTurns(),
  stamps: newStamps(count),
  count,
  data: new Int32Array(new SharedArrayBuffer(4)),
  word: new Int32Array(new SharedArrayBuffer(4)),
});

/** One pending wait, so that whatever threads the contender starts for it exist before this thread is pinned. */
async function startHelpers(lock) {
  if (!has(lock, 'lockAsync', 'unlock')) return;
  await lock.lockAsync();
  const pending = lock.lockAsync();
  lock.unlock();
  await pending;
  lock.unlock();
}

async function run(contender, { way, count }) {
  const memory = contender.share(1);
  const lock = contender.open(memory, 0);
  await startHelpers(lock);
  const shared = { memory, ...newShared(count) };
  const { data } = shared;
  const inside = () => {
    data[0]++;
  };
  const ways = {
    'worker to worker': () => has(lock, 'lock', 'unlock') && withCrew(contender.name, ['giver', 'sleeper'], shared),
    'worker to loop': () =>
      has(lock, 'lock', 'lockAsync', 'unlock') &&
      withCrew(contender.name, ['giver'], shared, () =>
        mainWaits(
          shared,
          () => lock.lockAsync(),
          () => {
            inside();
            lock.unlock();
          },
        ),
      ),
    'loop to worker': () =>
      has(lock, 'lock', 'lockAsync', 'unlock') &&
      withCrew(contender.name, ['sleeper'], shared, () =>
        mainGives(
          shared,
          () => lock.unlock(),
          async () => {
            await lock.lockAsync();
            inside();
          },
        ),
      ),
  };
  const result = await ways[way]();
  if (!result) return null;
  if (data[0] !== 2 * count) return { wrong: `${2 * count} holds counted ${data[0]}` };
  return result;
}

function bareFutex({ way, count }) {
  const shared = newShared(count);
  if (way === 'worker to worker') return withCrew(null, ['futexGiver', 'futexSleeper'], shared);
  if (way !== 'loop to worker') return null;
  return withCrew(null, ['futexSleeper'], shared, () =>
    mainGives(shared, (turn) => {
      Atomics.store(shared.word, 0, turn);
      futexWake(shared.word, 0);
    }),
  );
}

async function bareLoopWake({ way, count }) {
  if (way !== 'worker to loop') return null;
  const waiter = new LoopWaiter();
  const shared = { ...newShared(count), waker: waiter.words };
  const result = await withCrew(null, ['wakeGiver'], shared, () => mainWaits(shared, () => waiter.next()));
  waiter.close();
  return result;
}

module.exports = {
  name: 'handover',
  title: 'Handover latency, to a sleeper',
  threads: true,
  rounds: 5,
  metrics: [
    { key: 'p50', label: 'median µs', better: 'lower', ratio: true, percentile: 50, nanos: 1000 },
    { key: 'p90', label: 'p90 µs', better: 'lower', percentile: 90, nanos: 1000 },
    { key: 'p99', label: 'p99 µs', better: 'lower', percentile: 99, nanos: 1000 },
    { key: 'worst', label: 'worst µs', better: 'lower', percentile: 100, nanos: 1000, chart: 'log' },
  ],
  cases: ({ short }) =>
    ['worker to worker', 'worker to loop', 'loop to worker'].map((way) => ({
      name: way,
      params: { way, count: short ? 100 : 1000 },
      goals: way === 'loop to worker' ? undefined : [{ metric: 'p50', versus: 'plain', atMost: 1 }],
    })),
  run,
  limits: [
    { name: futexName, run: bareFutex },
    { name: loopName, run: bareLoopWake },
  ],
};
