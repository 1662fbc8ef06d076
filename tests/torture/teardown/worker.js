// A worker of the teardown run, in one of the roles below; without locks it only looks so.

const { parentPort, workerData } = require('node:worker_threads');

const { memory, role, hasLocks } = workerData;
const arrived = new Int32Array(memory, 4, 1);
const mutex = hasLocks ? new (require('../package.js').Mutex)(memory) : undefined;

const arrive = () => Atomics.add(arrived, 0, 1);
const sleep = () => Atomics.wait(new Int32Array(memory, 8, 1), 0, 0);
const stay = () => parentPort.on('message', () => {});

function work() {
  for (let time = 0; time < 10; time++) {
    mutex?.lock();
    mutex?.unlock();
  }
}

const ROLES = {
  holds() {
    mutex?.lock();
    arrive();
    stay();
  },
  blocks() {
    arrive();
    if (hasLocks) mutex.lock();
    else sleep();
    stay();
  },
  awaits() {
    const abort = new AbortController();
    for (let time = 0; time < 5; time++) mutex?.lockAsync();
    for (let time = 0; time < 5; time++) mutex?.lockAsync({ timeout: 60_000, signal: abort.signal }).catch(() => {});
    arrive();
    stay();
  },
  works() {
    arrive();
    work();
  },
  idles() {
    arrive();
    stay();
  },
};

ROLES[role]();
