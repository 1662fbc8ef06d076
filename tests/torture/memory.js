// Memory that lives shorter than threads. Threads make primitives of all kinds in small buffers, hold them, wait for them, hand them to
// others, end, and drop them; the next buffer is often where one was before. Whatever was left there, a new primitive is new.
//
//   npm run torture:memory -- [--seconds 20] [--seed 1] [--threads 3]

const { parseArgs } = require('node:util');
const path = require('node:path');
const { Worker } = require('node:worker_threads');
const { inspectAll, stats } = require('../..');
const { Random } = require('./choices.js');
const { startWatchdog } = require('./watchdog.js');

/** A thread that has ended is followed by another. */
const ENDS_AFTER_MS = 1500;
/** The time that the last waits may take to go. */
const REST_MS = 10_000;

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '20' },
    seed: { type: 'string', default: '1' },
    threads: { type: 'string', default: '3' },
  },
});

const seen = { buffers: 0, again: 0, otherwise: 0, threads: 0, waits: 0 };
const random = new Random(Number(values.seed));
const living = new Set();
/** By address, in all threads: what was made there last. */
const places = new Map();
let isOver = false;
let failure = null;

/** Notes what a user says of a buffer that it has made. */
function note({ address, kind, waits }) {
  seen.buffers += 1;
  seen.waits += waits;
  const before = places.get(address);
  if (before !== undefined) seen.again += 1;
  if (before !== undefined && before !== kind) seen.otherwise += 1;
  places.set(address, kind);
}

function start() {
  const seed = random.below(2 ** 31);
  const worker = new Worker(path.join(__dirname, 'memory', 'user.js'), { workerData: { seed } });
  living.add(worker);
  seen.threads += 1;
  worker.on('message', (said) => {
    if (said.failure !== undefined) failure ??= `seed ${seed}: ${said.failure}`;
    else if (said.handed !== undefined) handOn(worker, said.handed);
    else note(said);
  });
  worker.on('error', (error) => {
    failure ??= `seed ${seed}: ${error.stack}`;
  });
  worker.on('exit', () => {
    living.delete(worker);
    if (!isOver && failure === null) start();
  });
  setTimeout(() => worker.terminate(), random.between(0.2, 1) * ENDS_AFTER_MS).unref();
}

/** Another thread gets it too. */
function handOn(from, handed) {
  const others = [...living].filter((worker) => worker !== from);
  if (others.length > 0) random.pick(others).postMessage(handed);
}

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function main() {
  const watchdog = startWatchdog(30_000);
  for (let thread = 0; thread < Number(values.threads); thread += 1) start();
  const end = performance.now() + Number(values.seconds) * 1000;
  while (performance.now() < end && failure === null) {
    await pause(20);
    watchdog.feed();
  }
  isOver = true;
  await Promise.all([...living].map((worker) => worker.terminate()));
  const rest = performance.now() + REST_MS;
  const left = () => inspectAll().length + stats().pending + stats().blocked;
  while (left() > 0 && performance.now() < rest) await pause(10);
  if (left() > 0) failure ??= `left once all have ended: ${JSON.stringify([inspectAll(), stats()])}`;
  if (failure === null && (seen.otherwise === 0 || seen.waits === 0)) failure = 'no memory came back as something else';
  console.log(
    `${seen.threads} threads, ${seen.buffers} buffers, ${seen.again} of them where one was before, ` +
      `${seen.otherwise} of these of another kind; ${seen.waits} waits`,
  );
  if (failure !== null) console.log(`VIOLATION: ${failure}`);
  console.log(`seed ${values.seed}, node ${process.version}`);
  console.log(failure === null ? '1 passed, 0 failed' : '0 passed, 1 failed');
  process.exit(failure === null ? 0 : 1);
}

main();
