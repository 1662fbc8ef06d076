// In a process of its own: a thousand workers, half of them terminated while they hold or wait. Prints what is left.
//
//   node --expose-gc torture/teardown/thousand.js locks|none [number of workers]

const { setTimeout: sleep } = require('node:timers/promises');
const { readFileSync, readdirSync } = require('node:fs');
const { Crowd } = require('./crowd.js');

const hasLocks = process.argv[2] === 'locks';
const total = Number(process.argv[3] ?? 1000);
const DOOMED = ['holds', 'blocks', 'blocks', 'awaits', 'awaits'];
const WORKING = 5;

/** Their names; none where the system does not tell. */
function listThreads() {
  if (process.platform !== 'linux') return [];
  return readdirSync('/proc/self/task').map((id) => readFileSync(`/proc/self/task/${id}/comm`, 'utf8').trim());
}

const countHandles = () => process._getActiveHandles().length + process.getActiveResourcesInfo().length;

async function batch(number) {
  const memory = new SharedArrayBuffer(64);
  const mutex = hasLocks ? new (require('../package.js').Mutex)(memory) : undefined;
  const crowd = new Crowd(memory, hasLocks);
  const [first, ...others] = DOOMED;
  crowd.add(first);
  await crowd.gather();
  for (const role of others) crowd.add(role);
  for (let count = 0; count < WORKING; count++) crowd.add('works');
  await crowd.gather(() => {
    if (!hasLocks) return true;
    const { waiters } = mutex.inspect();
    return new Set(waiters.map(({ threadId }) => threadId)).size === others.length + WORKING;
  });
  const doomed = crowd.workers.slice(0, DOOMED.length);
  // In another order each time; half of the times all at once.
  for (let turn = 0; turn < doomed.length; turn++) {
    const ended = doomed[(turn * (1 + (number % 4)) + number) % doomed.length].terminate();
    if (number % 2 === 0) await ended;
  }
  await Promise.all(crowd.workers.map((worker) => worker.ended));
  if (!hasLocks) return;
  const { waiters } = mutex.inspect();
  if (waiters.length > 0) throw new Error(`Somebody waits in ${JSON.stringify(mutex.inspect())}.`);
  if (!(await mutex.lockAsync(1000))) throw new Error(`The mutex does not work: ${JSON.stringify(mutex.inspect())}.`);
  mutex.markConsistent();
  mutex.unlock();
}

/** What the process has, once it has come to rest. */
async function measure() {
  // The package's clock thread ends when it has had nothing to do for a second.
  await sleep(3000);
  for (let time = 0; time < 5; time++) {
    globalThis.gc();
    await sleep(50);
  }
  const { rss, heapUsed, external } = process.memoryUsage();
  return { threads: listThreads(), handles: countHandles(), rss, heapUsed, external };
}

async function main() {
  process.removeAllListeners('warning');
  const size = DOOMED.length + WORKING;
  for (let number = 0; number < 3; number++) await batch(number);
  const before = await measure();
  for (let number = 0; number < total / size; number++) await batch(number);
  console.log(JSON.stringify({ before, after: await measure() }));
}

main();
