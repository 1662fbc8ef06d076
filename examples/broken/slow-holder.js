// Broken on purpose: one worker writes a report while it holds the lock that all others need for an instant only.
//
//     node --require sablock/doctor slow-holder.js

const { once } = require('node:events');
const { Worker, isMainThread, workerData } = require('node:worker_threads');
const { Mutex } = require('sablock');

const WORKERS = 3;

function writeReport(lock) {
  lock.executeLockedSync(() => {
    const until = performance.now() + 300;
    while (performance.now() < until);
  });
}

function addRow(lock, rows) {
  lock.lock();
  rows[0] += 1;
  lock.unlock();
}

async function main() {
  const memory = new SharedArrayBuffer(8);
  const workers = Array.from(
    { length: WORKERS },
    (_, index) => new Worker(__filename, { workerData: { memory, index } }),
  );
  await Promise.all(workers.map((worker) => once(worker, 'exit')));
  console.log('rows:', new Int32Array(memory, 4)[0]);
}

if (isMainThread) {
  main();
} else {
  const { memory, index } = workerData;
  const lock = new Mutex(memory, 0, { name: 'rows' });
  const rows = new Int32Array(memory, 4);
  for (let round = 0; round < 5; round++) {
    if (index === 0) writeReport(lock);
    else for (let row = 0; row < 1000; row++) addRow(lock, rows);
  }
}
