// One of the processes: its main thread and a worker lock names until they are told to finish, or killed.

const { Worker } = require('node:worker_threads');
const path = require('node:path');
const { createRandom } = require('./random.js');
const { Locker } = require('./locker.js');

const [, , directory, logs, id, names, seed, kind] = process.argv;
const random = createRandom(Number(seed));
const options = { directory, logs, names: Number(names), kind };
const locker = new Locker({ ...options, holder: `${id}.0`, seed: random.below(2 ** 31) });

let isOver = false;
let worker = null;
let generation = 0;

/** Workers follow each other; each is terminated, wherever it is. */
async function keepWorker() {
  while (!isOver) {
    const holder = `${id}.${++generation}`;
    worker = new Worker(path.join(__dirname, 'worker.js'), {
      workerData: { ...options, holder, seed: random.below(2 ** 31) },
    });
    const ended = new Promise((resolve) => worker.once('exit', resolve));
    await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, 20 + random.below(400)))]);
    if (isOver) break;
    // Written before it happens, as the parent does.
    locker.write(`K ${holder}`);
    await worker.terminate();
  }
}

process.once('message', async () => {
  isOver = true;
  worker?.postMessage('finish');
  await locker.finish();
  if (worker !== null) await new Promise((resolve) => (worker.threadId < 0 ? resolve() : worker.once('exit', resolve)));
  process.exit();
});
process.once('disconnect', () => process.exit());

locker.run(2);
keepWorker();
