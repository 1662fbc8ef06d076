'use strict';
// The lock doctor's cost to a lock that nobody else wants: nanoseconds for each pair, beside the same pair without it. One lock,
// and one inside another, whose order is known after the first time; promises without a lock. And whether its figures are right: the
// delay that it reports and the slices of its trace, beside a clock of the program's own, how soon it reports a deadlock, and what it
// keeps of names that are not used any more and of a minute of pairs.

const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { setTimeout: sleep } = require('node:timers/promises');
const { threadNs } = require('../lib/clock');
const sablock = require('../contenders/sablock');

const SAMPLES = 15;

const LOOPS = {
  lock([lock], n) {
    let held = 0;
    for (let i = 0; i < n; i++) {
      if (lock.lock()) held++;
      lock.unlock();
    }
    return held;
  },
  inside([outer, inner], n) {
    let held = 0;
    for (let i = 0; i < n; i++) {
      outer.lock();
      if (inner.lock()) held++;
      inner.unlock();
      outer.unlock();
    }
    return held;
  },
  async await([lock], n) {
    let held = 0;
    for (let i = 0; i < n; i++) {
      if (await lock.lockAsync()) held++;
      lock.unlock();
    }
    return held;
  },
  async promises(_, n) {
    let done = 0;
    const step = async () => {
      done++;
    };
    for (let i = 0; i < n; i++) await Promise.resolve().then(step);
    return done;
  },
};

/** The time of one turn: the best of some samples that each last long enough to be measured, as noise only adds. */
async function time(loop, locks, ms) {
  let n = 16;
  let missed = 0;
  for (const warm = threadNs(); threadNs() - warm < ms * 1e6; ) {
    const start = threadNs();
    missed += n - (await loop(locks, n));
    if (threadNs() - start < ms * 1e5) n *= 2;
  }
  const samples = [];
  for (let i = 0; i < SAMPLES; i++) {
    const start = threadNs();
    missed += n - (await loop(locks, n));
    samples.push((threadNs() - start) / n);
  }
  return { ns: Math.min(...samples), wrong: missed ? `${missed} of the holds did not happen` : undefined };
}

const openTwo = () => {
  const memory = sablock.share(2);
  return [0, 1].map((index) => sablock.open(memory, index));
};

function loadDoctor() {
  try {
    return require(path.join(sablock.root, 'lib', 'doctor'));
  } catch (error) {
    // Another build may have none.
    if (error.code === 'MODULE_NOT_FOUND') return null;
    throw error;
  }
}

const CONTENTION = { lockOrder: false, deadlocks: false };
const ORDER = { contention: false, deadlocks: false };
const NO_PLACES = { ...ORDER, places: false };

/**
 * Measures how much of the delay of three tasks behind one lock the doctor reports: the sum of waits of a millisecond and more is
 * 1.
 */
async function delay({ start }, { ms }) {
  const [lock] = openTwo();
  let doctor = start(CONTENTION);
  let waitedMs = 0;
  const task = async (turns) => {
    for (let i = 0; i < turns; i++) {
      const begin = performance.now();
      await lock.lockAsync();
      const waited = performance.now() - begin;
      if (waited >= 1) waitedMs += waited;
      await sleep(5);
      lock.unlock();
    }
  };
  const run = (turns) => Promise.all([task(turns), task(turns), task(turns)]);
  // The first call of all loads code, and is slow without a wait.
  await run(1);
  doctor.stop();
  doctor = start(CONTENTION);
  waitedMs = 0;
  await run(Math.ceil(ms / 5));
  const { contention } = doctor.report();
  doctor.stop();
  const wrong =
    contention.length === 1 ? undefined : `it reported ${contention.length} locks that were waited for, not 1`;
  return { delay: contention[0]?.totalMs / waitedMs, wrong };
}

/** Measures what is kept of a name that was used once, in bytes. Wants a fresh process with a small young generation. */
async function names({ start }, { count }) {
  const { locks } = sablock.toolkit();
  const doctor = start({});
  let used = 0;
  const useMore = async (until) => {
    while (used < until) await locks.request(`name ${used++}`, () => {});
    globalThis.gc();
    await sleep(0);
    globalThis.gc();
    return process.memoryUsage().rss;
  };
  // The first ones grow what the others use again.
  const before = await useMore(count / 9);
  const after = await useMore(count + used);
  doctor.stop();
  return { bytes: (after - before) / count };
}

/** Whether slices of one row are one inside the other, or apart. */
function areNested(slices) {
  const rows = new Map();
  for (const slice of slices) rows.set(slice.tid, [...(rows.get(slice.tid) ?? []), slice]);
  return [...rows.values()].every((row) =>
    row.every((one) =>
      row.every((other) => {
        const [end, otherEnd] = [one.ts + one.dur, other.ts + other.dur];
        return end <= other.ts || otherEnd <= one.ts || (one.ts <= other.ts ? end >= otherEnd : otherEnd >= end);
      }),
    ),
  );
}

/** Measures how far the worst slice of a trace is from the program's own clock; what is allowed, 5 % or 0.2 ms, is 1. */
async function trace({ start }, { ms }) {
  const [lock] = openTwo();
  const doctor = start({ trace: true });
  let own;
  const task = async (turns) => {
    for (let i = 0; i < turns; i++) {
      const asked = performance.now();
      await lock.lockAsync();
      const begun = performance.now();
      own.wait.push(begun - asked);
      await sleep(5);
      lock.unlock();
      own.hold.push(performance.now() - begun);
    }
  };
  const file = path.join(os.tmpdir(), `sablock-trace-${process.pid}.json`);
  const draw = async (turns) => {
    own = { wait: [], hold: [] };
    await Promise.all([task(turns), task(turns), task(turns)]);
    doctor.writeTrace(file);
    return JSON.parse(fs.readFileSync(file, 'utf8')).traceEvents;
  };
  // The first call of all loads code.
  const before = (await draw(1)).length;
  const events = await draw(Math.ceil(ms / 5));
  doctor.stop();
  fs.rmSync(file);
  const slices = events.filter(({ ph }) => ph === 'X');
  const ends = new Map(events.filter(({ ph }) => ph === 'e').map(({ id, ts }) => [id, ts]));
  const apart = events
    .filter(({ ph }) => ph === 'b')
    .map((event) => ({ ...event, dur: ends.get(event.id) - event.ts }));
  let off = 0;
  for (const kind of ['wait', 'hold']) {
    // The first one did not wait, and nobody waits for the last: neither is drawn. Ends come in one order on both clocks.
    const mine = kind === 'wait' ? own.wait.slice(1) : own.hold.slice(0, -1);
    const drawn = [...slices, ...apart].filter(({ cat }) => cat === kind);
    drawn.sort((one, other) => one.ts + one.dur - other.ts - other.dur);
    const last = drawn.slice(-mine.length);
    last.forEach(({ dur }, index) => {
      off = Math.max(off, Math.abs(dur / 1e3 - mine[index]) / Math.max(0.05 * mine[index], 0.2));
    });
    if (last.length < mine.length)
      return { off, wrong: `${last.length} of ${mine.length} slices of a ${kind} were drawn` };
  }
  const isRight = before > 0 && areNested(slices);
  return { off, wrong: isRight ? undefined : 'slices of one row overlap' };
}

const LIKELY_MS = 100;

/** Programs that wait for themselves: how much later than `likelyMs` the last of them is reported, in milliseconds. */
async function deadlocks({ start }) {
  const { locks, Semaphore } = sablock.toolkit();
  const doctor = start({ likelyMs: LIKELY_MS, throwOnDeadlock: 'likely', longHoldMs: Infinity, stuckMs: Infinity });
  const share = sablock.share(3);
  const [a, b, c] = [0, 1, 2].map((index) => sablock.open(share, index));
  const permit = new Semaphore(new SharedArrayBuffer(4), 0, 1);
  const run = (lock) => (fn) => lock.executeLocked(fn);
  const name = (fn) => locks.request('nested', fn);
  const circle = (all) =>
    all.map((outer, index) => outer(() => sleep(5).then(() => all[(index + 1) % all.length](() => {}))));
  const programs = [
    () => [run(a)(async () => await run(a)(() => {}))],
    () => [name(async () => await name(() => {}))],
    () => [permit.execute(async () => await permit.execute(() => {}))],
    () => circle([run(a), run(b)].map((take) => async (fn) => await take(async () => await fn()))),
    () => circle([run(a), run(b), run(c)].map((take) => async (fn) => await take(async () => await fn()))),
  ];
  let late = 0;
  let wrong;
  for (const program of programs) {
    const begin = performance.now();
    const ends = await Promise.allSettled(program());
    late = Math.max(late, performance.now() - begin - LIKELY_MS);
    if (!ends.some(({ reason }) => reason?.code === 'ERR_LOCK_DEADLOCK')) wrong = 'a program that hangs was not seen';
  }
  doctor.stop();
  return { late, wrong };
}

/**
 * Measures what a minute of a million pairs in each second leaves, in bytes of the heap and of the process. Wants what `names`
 * wants.
 */
async function minute({ start }, { options, seconds }) {
  const locks = openTwo();
  const doctor = start(options);
  let missed = 0;
  const second = async () => {
    const end = performance.now() + 1000;
    for (let part = 0; part < 100; part++) {
      missed += 10_000 - LOOPS.lock(locks, 10_000);
      await sleep(0);
    }
    await sleep(Math.max(end - performance.now(), 0));
  };
  const look = async () => {
    globalThis.gc();
    await sleep(0);
    globalThis.gc();
    return process.memoryUsage().rss;
  };
  await second();
  const before = await look();
  for (let i = 1; i < seconds; i++) await second();
  const grown = ((await look()) - before) / 1024;
  doctor.stop();
  return { grown, wrong: missed ? `${missed} of the holds did not happen` : undefined };
}

const OTHERS = { deadlocks, delay, minute, names, trace };

async function run(contender, { loop, options, isStopped, ms, count, seconds }) {
  const doctorModule = contender.name === 'sablock' ? loadDoctor() : null;
  if (doctorModule === null) return null;
  if (OTHERS[loop]) return OTHERS[loop](doctorModule, { ms, count, options, seconds });
  const locks = openTwo();
  const doctor = doctorModule.start(options);
  if (isStopped) {
    await time(LOOPS[loop], locks, ms);
    doctor.stop();
  }
  const { ns, wrong } = await time(LOOPS[loop], locks, ms);
  const { lockOrder } = doctor.report();
  doctor.stop();
  return { ns, wrong: wrong ?? (lockOrder.length > 0 ? 'it reported an order that there is not' : undefined) };
}

/** The same code without the doctor. */
async function without({ loop, ms }) {
  if (OTHERS[loop]) return null;
  await sablock.load();
  return time(LOOPS[loop], openTwo(), ms);
}

const CASES = [
  { name: 'contention alone', loop: 'lock', options: CONTENTION, atMost: 3 },
  { name: 'contention alone, await', loop: 'await', options: CONTENTION, atMost: 3 },
  { name: 'lock order, without places', loop: 'lock', options: NO_PLACES, atMost: 10 },
  { name: 'lock order, without places, one inside another', loop: 'inside', options: NO_PLACES, atMost: 10 },
  { name: 'lock order, without places, await', loop: 'await', options: NO_PLACES, atMost: 10 },
  // To capture a stack takes V8 as long as a hundred pairs.
  { name: 'lock order, with places', loop: 'lock', options: ORDER, moreNs: 3000 },
  { name: 'lock order, with places, one inside another', loop: 'inside', options: ORDER, moreNs: 6000 },
  { name: 'all, one inside another', loop: 'inside', options: {} },
  { name: 'all, without places', loop: 'lock', options: { places: false } },
  { name: 'all, without places, await', loop: 'await', options: { places: false } },
  { name: 'all, with places', loop: 'lock', options: {}, moreNs: 3000 },
  { name: 'all, with places, await', loop: 'await', options: {}, moreNs: 3000 },
  { name: 'promises without a lock', loop: 'promises', options: {}, atMost: 1.05 },
  { name: 'promises without a lock, after stop()', loop: 'promises', options: {}, isStopped: true, atMost: 1.05 },
  { name: 'after stop()', loop: 'lock', options: {}, isStopped: true, atMost: 1.05 },
  { name: 'after stop(), await', loop: 'await', options: {}, isStopped: true, atMost: 1.05 },
  { name: 'delay of a lock, of the waits of 1 ms and more', loop: 'delay' },
  { name: 'names used once', loop: 'names' },
  { name: 'slices of a trace, beside a clock of the program', loop: 'trace' },
  { name: 'deadlocks, after likelyMs', loop: 'deadlocks' },
  { name: 'a minute of a million pairs in each second, without places', loop: 'minute', options: { places: false } },
];

/** V8 grows its young generation in steps of megabytes; kept small, the resident memory tells what is retained. */
const NODE_FLAGS = { names: ['--max-semi-space-size=1'], minute: ['--max-semi-space-size=1'] };

/** Returns the goals of the figures of a case. */
function goalsOf({ loop, atMost, moreNs }) {
  if (loop === 'names') return [{ metric: 'bytes', atMost: 100 }];
  if (loop === 'trace') return [{ metric: 'off', atMost: 1 }];
  if (loop === 'deadlocks') return [{ metric: 'late', atMost: 100 }];
  // A page of the system, and noise of its own.
  if (loop === 'minute') return [{ metric: 'grown', atMost: 1024 }];
  if (loop === 'delay') {
    return [
      { metric: 'delay', atLeast: 0.95 },
      { metric: 'delay', atMost: 1.05 },
    ];
  }
  if (moreNs) return [{ metric: 'ns', versus: 'beside', atMost: moreNs }];
  return atMost && [{ metric: 'ns', versus: 'limit', atMost }];
}

module.exports = {
  name: 'doctor',
  title: 'The lock doctor',
  rounds: 7,
  timeLimit: 120_000,
  metrics: [
    { key: 'ns', label: 'ns', better: 'lower', ratio: true },
    { key: 'delay', label: 'delay reported', digits: 3 },
    { key: 'bytes', label: 'bytes/name', better: 'lower' },
    { key: 'off', label: 'slice off', better: 'lower', digits: 2 },
    { key: 'late', label: 'reported late, ms', better: 'lower', digits: 1 },
    { key: 'grown', label: 'grown, KiB', better: 'lower' },
  ],
  cases: ({ short }) =>
    CASES.map(({ name, atMost, moreNs, ...params }) => ({
      name,
      // The remains of one case must not be measured in the next.
      fresh: true,
      nodeFlags: NODE_FLAGS[params.loop] ?? [],
      params: { ...params, ms: short ? 5 : 50, count: short ? 900 : 90_000, seconds: short ? 2 : 60 },
      goals: goalsOf({ ...params, atMost, moreNs }),
    })),
  run,
  limits: [{ name: 'without the doctor', run: without }],
};
