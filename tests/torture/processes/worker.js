// A thread that locks names, blocking too.

const { parentPort, workerData } = require('node:worker_threads');
const { Locker } = require('./locker.js');

const locker = new Locker({ ...workerData, mayBlock: true });
parentPort.once('message', async () => {
  await locker.finish();
  process.exit();
});
locker.run(2);
