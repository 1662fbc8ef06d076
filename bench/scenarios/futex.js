'use strict';
// The waiting primitives beside the built-in ones: from just before notify() in one thread to the end of the wait in
// another that is asleep by then, and very many pending waitAsync of one thread.

const { Crew } = require('../lib/crew');
const { busyFor, sharedNs, sleep, threadNs } = require('../lib/clock');
const { loadFace } = require('../lib/faces');
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

async function mainWaits(face, { turns, stamps, count, word }) {
  for (let turn = 1; turn <= count; turn++) {
    await awaitAsync(turns, TURN, turn);
    const { value } = face.waitAsync(word, 0, turn - 1);
    announce(turns, WAITING, turn);
    await value;
    stamps[TAKEN + 2 * turn] = sharedNs();
    announce(turns, DONE, turn);
  }
}

async function mainGives(face, { turns, stamps, count, word }) {
  for (let turn = 1; turn <= count; turn++) {
    announce(turns, TURN, turn);
    await awaitAsync(turns, WAITING, turn);
    settle();
    stamps[GIVEN + 2 * turn] = sharedNs();
    Atomics.store(word, 0, turn);
    face.notify(word, 0, 1);
    stayAwake(turns, DONE, turn);
    await awaitAsync(turns, DONE, turn);
  }
}

const ROLES = {
  'worker to worker': { roles: ['giver', 'sleeper'] },
  'worker to loop': { roles: ['giver'], main: mainWaits },
  'loop to worker': { roles: ['sleeper'], main: mainGives },
};

async function wake(name, { way, count }) {
  const { roles, main } = ROLES[way];
  const word = new Int32Array(new SharedArrayBuffer(4));
  const shared = { turns: newTurns(), stamps: newStamps(count), count, word, face: name };
  const crew = await Crew.start(roles.length, 'futex.js', null, (i) => ({ ...shared, role: roles[i], core: i }));
  if (main) pin(1);
  crew.go();
  await main?.(loadFace(name), shared);
  await crew.results();
  if (main) unpin();
  await crew.end();
  const samples = latencies(shared.stamps, count);
  const early = samples.filter((ns) => ns < 0).length;
  return { samples, wrong: early ? `${early} waits ended before they were notified` : undefined };
}

/** All wait for one element, and are notified together. */
async function pending(name, { count }) {
  const face = loadFace(name);
  const word = new Int32Array(new SharedArrayBuffer(4));
  const alive = setInterval(() => {}, 1e6); // a pending Atomics.waitAsync keeps nothing alive
  const ends = [];
  const waits = new Array(count);
  const start = threadNs();
  for (let i = 0; i < count; i++) waits[i] = face.waitAsync(word, 0, 0).value.then(() => ends.push(i));
  const enqueued = threadNs();
  await sleep(0);
  const notified = threadNs();
  const told = face.notify(word, 0);
  await Promise.all(waits);
  const end = (threadNs() - notified) / count;
  clearInterval(alive);
  const isInOrder = ends.every((wait, place) => wait === place);
  const wrong = told === count && isInOrder ? undefined : `${told} of ${count} notified, in order: ${isInOrder}`;
  return { enqueue: (enqueued - start) / count, end, wrong };
}

const measure = (name, params) => (params.way ? wake(name, params) : pending(name, params));

module.exports = {
  name: 'futex',
  title: 'wait, waitAsync and notify, beside the built-in ones',
  threads: true,
  rounds: 5,
  metrics: [
    { key: 'p50', label: 'median µs', better: 'lower', ratio: true, percentile: 50, nanos: 1000 },
    { key: 'p99', label: 'p99 µs', better: 'lower', percentile: 99, nanos: 1000 },
    { key: 'enqueue', label: 'enqueue ns', better: 'lower', ratio: true, digits: 0 },
    { key: 'end', label: 'end ns', better: 'lower', ratio: true, digits: 0 },
  ],
  cases: ({ short }) => [
    ...Object.keys(ROLES).map((way) => ({ name: `wake, ${way}`, params: { way, count: short ? 100 : 1000 } })),
    ...(short ? [2000] : [10_000, 100_000]).map((count) => ({
      name: `${count.toLocaleString('en')} pending`,
      params: { count },
      family: 'pending',
    })),
  ],
  run: (contender, params) => (contender.name === 'sablock' ? measure('sablock', params) : null),
  limits: [{ name: 'Atomics (built in)', run: (params) => measure('Atomics', params) }],
};
