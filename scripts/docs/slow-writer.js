// The program whose trace is in the guide on slow programs: three workers read prices, and one that updates them holds for long.
// Writes the trace into the file that it is given.

const { Worker, isMainThread, workerData } = require('node:worker_threads');
const { RwLock } = require('../..');
const { start } = require('../../lib/doctor');

const UPDATES = 3;

const doctor = start({ trace: true });

function work(ms) {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

function update(prices, done) {
  for (let i = 0; i < UPDATES; i++) {
    work(60);
    prices.write.executeLockedSync(() => work(40));
  }
  Atomics.store(done, 0, 1);
}

function read(prices, done) {
  while (Atomics.load(done, 0) === 0) {
    prices.read.executeLockedSync(() => work(4));
    work(3);
  }
}

function runWorkers() {
  const memory = new SharedArrayBuffer(12);
  let left = 0;
  for (const job of ['update', 'read', 'read', 'read']) {
    left += 1;
    new Worker(__filename, { workerData: { memory, job } }).on('exit', (code) => {
      left -= 1;
      process.exitCode ||= code;
      if (left === 0) doctor.writeTrace(process.argv[2]);
    });
  }
}

if (isMainThread) {
  runWorkers();
} else {
  const prices = new RwLock(workerData.memory, 0, { name: 'prices' });
  const done = new Int32Array(workerData.memory, 8, 1);
  ({ update, read })[workerData.job](prices, done);
}
