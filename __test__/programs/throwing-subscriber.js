// Subscribers of every channel throw. Prints what the verbs returned all the same, and what was uncaught.

const { isMainThread, Worker, workerData } = require('node:worker_threads');
const { Mutex } = require('../..');
const { subscribe } = require('../helpers/messages.js');

const memory = isMainThread ? new SharedArrayBuffer(Mutex.BYTES) : workerData;
const mutex = new Mutex(memory, 0, { allowMainThread: true });
const uncaught = new Set();

async function main() {
  process.on('warning', () => {});
  process.on('uncaughtException', ({ message }) => {
    uncaught.add(message);
  });
  for (const name of ['contended', 'long-hold', 'abandoned', 'deadlock']) {
    const channel = `sablock:${name}`;
    subscribe(channel, () => {
      throw new Error(channel);
    });
  }

  const worker = new Worker(__filename, { workerData: memory });
  await new Promise((resolve) => worker.once('exit', resolve));
  const answers = { abandoned: mutex.tryLock() };
  mutex.markConsistent();
  while (!uncaught.has('sablock:long-hold')) {
    answers.blocked = mutex.lock(150);
    await new Promise(setImmediate);
  }
  const pending = mutex.lockAsync();
  const aborted = mutex.lockAsync({ signal: AbortSignal.abort() }).catch(({ name }) => name);
  try {
    mutex.lock();
  } catch ({ code }) {
    answers.deadlock = code;
  }
  const controller = new AbortController();
  const taken = mutex.lockAsync({ signal: controller.signal }).catch(({ name }) => name);
  controller.abort();
  answers.aborted = (await aborted) && (await taken);
  mutex.unlock();
  answers.awaited = await pending;
  mutex.unlock();
  await new Promise((resolve) => setTimeout(resolve, 50));
  console.log(JSON.stringify({ ...answers, isLocked: mutex.isLocked, uncaught: [...uncaught].sort() }));
}

if (isMainThread) main();
else mutex.lock(); // and ends
