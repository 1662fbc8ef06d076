// In a process of its own: how long `terminate()` of a hundred workers takes, all blocked in `lock()`, or all idle.
//
//   node torture/teardown/hundred.js blocks|idles [number of workers]

const { Mutex } = require('../package.js');
const { Crowd } = require('./crowd.js');

const role = process.argv[2];
const count = Number(process.argv[3] ?? 100);

async function main() {
  const memory = new SharedArrayBuffer(64);
  const mutex = new Mutex(memory);
  mutex.tryLock();
  const crowd = new Crowd(memory, true);
  for (let number = 0; number < count; number++) crowd.add(role);
  await crowd.gather(() => mutex.inspect().waiters.length === (role === 'blocks' ? count : 0));
  const start = performance.now();
  await Promise.all(crowd.workers.map((worker) => worker.terminate()));
  console.log(JSON.stringify({ ms: performance.now() - start, waiters: mutex.inspect().waiters.length }));
}

main();
