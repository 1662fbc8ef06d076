// The main thread asks for a name that an unreferenced worker holds: until 200 ms after that, or, where the wait does not keep
// the process alive, for ever. The arguments are the verb and the option `ref`. The verb `hold` only holds a name.

const { Worker, isMainThread, parentPort, workerData } = require('node:worker_threads');
const { locks } = require('../..');

const main = async () => {
  process.on('exit', () => console.log('exit'));
  const [, , verb, ref] = process.argv;
  if (verb === 'hold') {
    const lock = await locks.acquireAsync('held');
    console.log(lock.locked ? 'held' : 'not held');
    return;
  }
  const options = { ref: ref === 'true' };
  const worker = new Worker(__filename, { workerData: options });
  await new Promise((resolve) => worker.once('message', resolve));
  worker.unref();
  const asked = verb === 'request' ? locks.request('shared', options, () => {}) : locks.acquireAsync('shared', options);
  asked.then(() => console.log('granted'));
  console.log('waiting');
  worker.postMessage('waiting');
};

if (isMainThread) {
  main();
} else {
  locks.request('shared', async () => {
    parentPort.postMessage('held');
    await new Promise((resolve) => {
      parentPort.once('message', () => workerData.ref && setTimeout(resolve, 200));
      setInterval(() => {}, 1000);
    });
  });
}
