// A thread that asks for locks, and blocks or awaits. It waits for the answers of the register, which come by way of main.

const { parentPort, workerData } = require('node:worker_threads');
const { Locker } = require('./locker.js');

const cell = new Int32Array(new SharedArrayBuffer(4));
function write(entry) {
  Atomics.store(cell, 0, 0);
  parentPort.postMessage({ kind: 'write', entry, cell });
  Atomics.wait(cell, 0, 0);
  return Atomics.load(cell, 0) === 1;
}

const locker = new Locker(workerData, { write, tell: (kind, message) => parentPort.postMessage({ kind, message }) });
parentPort.once('message', () => {
  locker.finish();
  parentPort.unref();
});
locker.run(workerData.isBlocking ? 1 : 2, workerData.isBlocking).then(() => process.exit());
