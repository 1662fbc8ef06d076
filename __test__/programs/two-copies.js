// Copied beside the installs `a` and `b`: main uses both, a worker the second one only.

const { isMainThread, Worker, workerData } = require('node:worker_threads');

const load = (copy) => {
  try {
    return require(copy);
  } catch (error) {
    console.error(error.code, error.message);
    process.exit(1);
  }
};

if (isMainThread) {
  const [a, b] = [load('./a'), load('./b')];
  const buffer = new SharedArrayBuffer(4);
  const [mutex, same] = [new a.Mutex(buffer), new b.Mutex(buffer)];
  mutex.tryLock();
  if (same.isHeldByThisThread && !same.tryLock()) console.log('held for both');
  const worker = new Worker(__filename, { workerData: buffer });
  worker.on('message', (message) => console.log(message));
  worker.on('exit', async () => {
    if (await mutex.lockAsync(1000)) console.log('main got it again');
  });
  const unlockOnceQueued = () => {
    if (mutex.inspect().waiters.length > 0) same.unlock();
    else setImmediate(unlockOnceQueued);
  };
  unlockOnceQueued();
} else {
  const { Mutex } = require('./b');
  const { parentPort } = require('node:worker_threads');
  const mutex = new Mutex(workerData);
  mutex.lock();
  mutex.unlock();
  parentPort.postMessage('the worker got it');
}
