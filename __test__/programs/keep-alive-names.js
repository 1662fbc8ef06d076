// The main thread asks for a name that an unreferenced worker holds for 200 ms; the arguments are the verb and the option `ref`.
// The verb `hold` only holds a name.

const { Worker, isMainThread, parentPort } = require('node:worker_threads');
const { locks } = require('../..');

const main = async () => {
  process.on('exit', () => console.log('exit'));
  const [, , verb, ref] = process.argv;
  if (verb === 'hold') {
    const lock = await locks.acquireAsync('held');
    console.log(lock.locked ? 'held' : 'not held');
    return;
  }
  const worker = new Worker(__filename);
  await new Promise((resolve) => worker.once('message', resolve));
  worker.unref();
  const options = { ref: ref === 'true' };
  const asked = verb === 'request' ? locks.request('shared', options, () => {}) : locks.acquireAsync('shared', options);
  asked.then(() => console.log('granted'));
  console.log('waiting');
};

if (isMainThread) {
  main();
} else {
  locks.request('shared', async () => {
    parentPort.postMessage('held');
    await new Promise((resolve) => setTimeout(resolve, 200));
  });
}
