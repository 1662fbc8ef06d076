// One case of what keeps a process alive, named by the first argument. The holder is a worker that is unreferenced,
// so that only the pending wait of the main thread can keep the process going. It frees the mutex 200 ms after it was
// told to, which is long after a process with nothing to do would have ended.

const { once } = require('node:events');
const { Worker } = require('node:worker_threads');
const { Mutex } = require('../..');

const [, , name, verb] = process.argv;
const buffer = new SharedArrayBuffer(8);
const state = new Int32Array(buffer, 4, 1);
const mutex = new Mutex(buffer);
process.on('exit', () => console.log('exit'));

const startHolder = async () => {
  const code = `
    const { workerData } = require('node:worker_threads');
    const { Mutex } = require(${JSON.stringify(require.resolve('../..'))});
    const mutex = new Mutex(workerData);
    const state = new Int32Array(workerData, 4, 1);
    mutex.lock();
    Atomics.store(state, 0, 1);
    Atomics.notify(state, 0);
    Atomics.wait(state, 0, 1);
    Atomics.wait(state, 0, 2, 200);
    mutex.unlock();
  `;
  const holder = new Worker(code, { eval: true, workerData: buffer });
  await once(holder, 'online');
  while (Atomics.load(state, 0) === 0) await new Promise((resolve) => setTimeout(resolve, 1));
  holder.unref();
};

const tellHolder = () => {
  Atomics.store(state, 0, 2);
  Atomics.notify(state, 0);
  console.log('waiting');
};

const wait = (options) => {
  const granted = () => console.log('granted');
  if (verb === 'enter') mutex.enter(granted);
  else if (verb === 'executeLocked') mutex.executeLocked(granted, options);
  else mutex[verb](options).then(granted);
};

const cases = {
  async granted() {
    await startHolder();
    wait();
    tellHolder();
  },
  /** It is told nothing: however slow the machine is, only the end of the process ends the wait. */
  async unreferenced() {
    await startHolder();
    wait({ ref: false });
    console.log('waiting');
  },
  async 'unreferenced-but-alive'() {
    await startHolder();
    const other = setInterval(() => {}, 1000);
    mutex.lockAsync({ ref: false }).then(() => {
      console.log('granted');
      clearInterval(other);
    });
    tellHolder();
  },
  async mixed() {
    await startHolder();
    const neighbour = new Mutex(new SharedArrayBuffer(4));
    neighbour.tryLock();
    for (let count = 0; count < 3; count++) neighbour.lockAsync({ ref: false });
    mutex.lockAsync().then(() => console.log('granted'));
    neighbour.lockAsync({ ref: false, timeout: 5 });
    tellHolder();
  },
  async 'timed-out'() {
    mutex.tryLock();
    console.log('waiting');
    console.log(await mutex.lockAsync(50));
  },
  async aborted() {
    mutex.tryLock();
    const controller = new AbortController();
    const pending = mutex.lockAsync({ signal: controller.signal, timeout: 1e9 });
    console.log('waiting');
    setTimeout(() => controller.abort('aborted'), 20);
    await pending.catch(console.log);
  },
  async uncontended() {
    await mutex.lockAsync(1e9);
    console.log('granted');
    mutex.unlock();
  },
  loaded() {},
  'in-a-worker'() {
    const code = `
      const { Mutex } = require(${JSON.stringify(require.resolve('../..'))});
      const mutex = new Mutex(new SharedArrayBuffer(4));
      mutex.tryLock();
      mutex.lockAsync(1e9).then(() => { mutex.unlock(); console.log('granted'); });
      mutex.unlock();
    `;
    new Worker(code, { eval: true }).on('exit', (exitCode) => console.log(`worker exit ${exitCode}`));
  },
};

cases[name]();
