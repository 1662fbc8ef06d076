// One of the processes: its main thread and a worker ask for locks, until they are told to finish, or killed. Workers follow each
// other; each is terminated, wherever it is.

const path = require('node:path');
const { setTimeout: sleep } = require('node:timers/promises');
const { Worker } = require('node:worker_threads');
const { createRandom } = require('../processes/random.js');
const { Locker } = require('./locker.js');

const options = JSON.parse(process.argv[2]);
const random = createRandom(options.seed);
const seed = () => random.below(2 ** 31);

/** By number: what takes the answer of the register. */
const pending = new Map();
let last = 0;
function write(entry, answer) {
  last += 1;
  pending.set(last, answer);
  process.send({ kind: 'write', id: last, entry });
}
const tell = (kind, message) => process.send({ kind, message });

const locker = new Locker(
  { ...options, seed: seed(), holder: `${options.holder}.0` },
  { write: (entry) => new Promise((resolve) => write(entry, resolve)), tell },
);

let isOver = false;
let worker = null;

async function keepWorkers() {
  for (let generation = 1; !isOver; generation += 1) {
    const isBlocking = random.next() < 0.5;
    const workerData = { ...options, isBlocking, seed: seed(), holder: `${options.holder}.${generation}` };
    worker = new Worker(path.join(__dirname, 'worker.js'), { workerData });
    worker.on('message', ({ kind, entry, cell, message }) => {
      if (kind !== 'write') tell(kind, message);
      else {
        write(entry, (isTaken) => {
          Atomics.store(cell, 0, isTaken ? 1 : 2);
          Atomics.notify(cell, 0);
        });
      }
    });
    worker.on('error', (error) => tell('wrong', error.stack));
    const ended = new Promise((resolve) => worker.once('exit', resolve));
    // The witness of delays does not know of what ends with a thread.
    await Promise.race(options.watchesDelays ? [ended] : [ended, sleep(100 + random.below(3000))]);
    if (isOver) {
      worker.postMessage('finish');
      await ended;
      return;
    }
    await worker.terminate();
    tell('terminated');
  }
}

process.on('message', async (message) => {
  if (message === 'finish') {
    isOver = true;
    worker?.postMessage('finish');
    locker.finish();
    return;
  }
  if (message === 'describe') {
    const { held, pending: waiting } = await locker.query();
    const answers = `${pending.size} answers of the register`;
    tell('wrong', `process ${options.holder}: ${JSON.stringify({ worker: worker?.threadId, answers, held, waiting })}`);
    return;
  }
  pending.get(message.id)(message.isTaken);
  pending.delete(message.id);
});
process.once('disconnect', () => process.exit());

Promise.all([locker.run(3), keepWorkers()]).then(
  () => process.exit(),
  (error) => process.send({ kind: 'wrong', message: error.stack }, () => process.exit(1)),
);
