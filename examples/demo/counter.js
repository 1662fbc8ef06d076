// Worker threads and the main thread change one counter in shared memory at the same time, in three ways: without a lock
// (increments get lost), with Atomics, and under a mutex, for which the workers block and the main thread awaits.
// `--workers N` and `--increments N` change the size. Ends with code 1 if the total under the mutex is wrong.

const { once } = require('node:events');
const { availableParallelism } = require('node:os');
const path = require('node:path');
const { monitorEventLoopDelay } = require('node:perf_hooks');
const { setImmediate: nextTurn } = require('node:timers/promises');
const { parseArgs } = require('node:util');
const { Worker } = require('node:worker_threads');
const { createRegion, mainWays } = require('./increments.js');

const LOOP_RESOLUTION_MS = 1;
const COLUMNS = [
  ['counter', 'counter'],
  ['expected', 'expected'],
  ['actual', 'actual'],
  ['lost', 'lost'],
  ["main's share", 'main'],
  ['time', 'time'],
  ['per second', 'rate'],
  ["main loop's longest delay", 'delay'],
  ["main's longest wait for the lock", 'wait'],
];

const readSize = () => {
  const { values } = parseArgs({
    options: {
      workers: { type: 'string', default: '4' },
      increments: { type: 'string', default: '100000' },
    },
  });
  const [workers, increments] = [Number(values.workers), Number(values.increments)];
  if (!Number.isInteger(workers) || workers < 1)
    throw new RangeError(`--workers must be a whole number above 0, not "${values.workers}"`);
  if (!Number.isInteger(increments) || increments < 1) {
    throw new RangeError(`--increments must be a whole number above 0, not "${values.increments}"`);
  }
  return { workers, increments };
};

/** Runs the workers and the main thread on one counter and measures. */
const count = async (name, { workers, increments }) => {
  const region = createRegion();
  const body = path.join(__dirname, 'counter-worker.js');
  const threads = Array.from(
    { length: workers },
    () => new Worker(body, { workerData: { buffer: region.counter.buffer, name, increments } }),
  );
  await Promise.all(threads.map((thread) => once(thread, 'message')));

  let isOver = false;
  const done = Promise.all(threads.map((thread) => once(thread, 'message'))).finally(() => {
    isOver = true;
  });
  const ended = Promise.all(threads.map((thread) => once(thread, 'exit')));
  const addOne = mainWays[name];
  const loop = monitorEventLoopDelay({ resolution: LOOP_RESOLUTION_MS });
  let main = 0;
  let longestWait = 0;

  loop.enable();
  const startedAt = performance.now();
  region.start();
  while (!isOver) {
    longestWait = Math.max(longestWait, await addOne(region));
    main++;
    await nextTurn();
  }
  await done;
  const ms = performance.now() - startedAt;
  loop.disable();
  await ended;

  const expected = workers * increments + main;
  const delay = Math.max(0, loop.max / 1e6 - LOOP_RESOLUTION_MS);
  return { name, main, expected, actual: region.counter[0], ms, delay, longestWait };
};

const wholeNumber = (value) => Math.round(value).toLocaleString('en');
const milliseconds = (value) => `${value.toFixed(1)} ms`;

const rowOf = ({ name, main, expected, actual, ms, delay, longestWait }) => ({
  counter: name,
  expected: wholeNumber(expected),
  actual: wholeNumber(actual),
  lost: wholeNumber(expected - actual),
  main: wholeNumber(main),
  time: `${wholeNumber(ms)} ms`,
  rate: wholeNumber((expected / ms) * 1000),
  delay: milliseconds(delay),
  wait: name === 'mutex' ? milliseconds(longestWait) : '-',
});

const printTable = (rows) => {
  const widths = COLUMNS.map(([title, key]) => Math.max(title.length, ...rows.map((row) => row[key].length)));
  const line = (cells) =>
    cells.map((cell, index) => (index === 0 ? cell.padEnd(widths[0]) : cell.padStart(widths[index]))).join('  ');
  console.log(line(COLUMNS.map(([title]) => title)));
  console.log(line(widths.map((width) => '-'.repeat(width))));
  for (const row of rows) console.log(line(COLUMNS.map(([, key]) => row[key])));
};

const main = async () => {
  const size = readSize();
  const machine = `Node.js ${process.version}, ${availableParallelism()} CPUs`;
  console.log(
    `${size.workers} workers add ${wholeNumber(size.increments)} each while the main thread adds one in each turn of its event loop (${machine})\n`,
  );

  const results = [];
  for (const name of ['no lock', 'Atomics', 'mutex']) results.push(await count(name, size));
  printTable(results.map(rowOf));

  const [unlocked, , locked] = results;
  const isRight = locked.actual === locked.expected;
  console.log(
    unlocked.actual === unlocked.expected
      ? '\nWithout a lock the total was right this time, by chance.'
      : `\nWithout a lock ${wholeNumber(unlocked.expected - unlocked.actual)} increments were lost.`,
  );
  console.log(isRight ? 'Under the mutex the total is exact.' : 'Under the mutex the total is WRONG.');
  if (!isRight) process.exitCode = 1;
};

main();
