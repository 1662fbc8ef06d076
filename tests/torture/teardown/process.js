// Runs in a process of its own, for ../teardown.js, and prints what it found:
//
//   node --expose-gc tests/torture/teardown/process.js locks|none 1000     workers, half of them terminated while they hold or
//                                                                    wait: what is left of them
//   node tests/torture/teardown/process.js blocks|idles 100                how long it takes to terminate workers that are all
//                                                                    blocked in `lock()`, or all idle

const { setTimeout: sleep } = require('node:timers/promises');
const { readFileSync, readdirSync } = require('node:fs');
const { join } = require('node:path');
const { Worker } = require('node:worker_threads');

/** Loaded only where there are locks: what the others leave behind is to be without it. */
const newMutex = (memory) => new (require('../package.js').Mutex)(memory);

const DOOMED = ['holds', 'blocks', 'blocks', 'awaits', 'awaits'];
const WORKING = 5;

/** Workers that have all come to where their role leads them. */
class WorkerGroup {
  workers = [];
  #memory;
  #hasLocks;

  constructor(memory, hasLocks) {
    this.#memory = memory;
    this.#hasLocks = hasLocks;
  }

  add(role) {
    const workerData = { memory: this.#memory, role, hasLocks: this.#hasLocks };
    const worker = new Worker(join(__dirname, 'worker.js'), { workerData });
    worker.ended = new Promise((resolve, reject) => {
      worker.on('exit', resolve);
      worker.on('error', reject);
    });
    this.workers.push(worker);
  }

  /** Until all have said that they are there, and `isSettled` agrees. */
  async gather(isSettled = () => true) {
    const arrived = new Int32Array(this.#memory, 4, 1);
    while (Atomics.load(arrived, 0) < this.workers.length || !isSettled()) await sleep(2);
  }
}

/** Their names; none where the system does not tell. */
function listThreads() {
  if (process.platform !== 'linux') return [];
  return readdirSync('/proc/self/task').map((id) => readFileSync(`/proc/self/task/${id}/comm`, 'utf8').trim());
}

const countHandles = () => process._getActiveHandles().length + process.getActiveResourcesInfo().length;

async function batch(number, hasLocks) {
  const memory = new SharedArrayBuffer(64);
  const mutex = hasLocks ? newMutex(memory) : undefined;
  const group = new WorkerGroup(memory, hasLocks);
  const [first, ...others] = DOOMED;
  group.add(first);
  await group.gather();
  for (const role of others) group.add(role);
  for (let count = 0; count < WORKING; count++) group.add('works');
  await group.gather(() => {
    if (!hasLocks) return true;
    const { waiters } = mutex.inspect();
    return new Set(waiters.map(({ threadId }) => threadId)).size === others.length + WORKING;
  });
  const doomed = group.workers.slice(0, DOOMED.length);
  // In another order each time; half of the times all at once.
  for (let turn = 0; turn < doomed.length; turn++) {
    const ended = doomed[(turn * (1 + (number % 4)) + number) % doomed.length].terminate();
    if (number % 2 === 0) await ended;
  }
  await Promise.all(group.workers.map((worker) => worker.ended));
  if (!hasLocks) return;
  const { waiters } = mutex.inspect();
  if (waiters.length > 0) throw new Error(`Somebody waits in ${JSON.stringify(mutex.inspect())}.`);
  if (!(await mutex.lockAsync(1000))) throw new Error(`The mutex does not work: ${JSON.stringify(mutex.inspect())}.`);
  mutex.markConsistent();
  mutex.unlock();
}

/** Measures what the process has, once it has come to rest. */
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

async function endMany(hasLocks, total) {
  process.removeAllListeners('warning');
  const size = DOOMED.length + WORKING;
  for (let number = 0; number < 3; number++) await batch(number, hasLocks);
  const before = await measure();
  for (let number = 0; number < total / size; number++) await batch(number, hasLocks);
  console.log(JSON.stringify({ before, after: await measure() }));
}

async function terminateAll(role, count) {
  const memory = new SharedArrayBuffer(64);
  const mutex = newMutex(memory);
  mutex.tryLock();
  const group = new WorkerGroup(memory, true);
  for (let number = 0; number < count; number++) group.add(role);
  await group.gather(() => mutex.inspect().waiters.length === (role === 'blocks' ? count : 0));
  const start = performance.now();
  await Promise.all(group.workers.map((worker) => worker.terminate()));
  console.log(JSON.stringify({ ms: performance.now() - start, waiters: mutex.inspect().waiters.length }));
}

const [, , what, count] = process.argv;
if (what === 'locks' || what === 'none') endMany(what === 'locks', Number(count));
else terminateAll(what, Number(count));
