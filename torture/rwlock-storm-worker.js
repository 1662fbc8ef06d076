// One worker of the storm: every verb of an RwLock in turn, at random, until it is terminated.

const { workerData } = require('node:worker_threads');
const { RwLock } = require('..');

const { buffer, offset, cells } = workerData;
const memory = new Int32Array(buffer, 0, 8);
const rw = new RwLock(buffer, offset);
let { seed } = workerData;

const below = (most) => {
  seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
  return Math.floor((seed / 2 ** 32) * most);
};
const linger = () => {
  for (let step = below(100); step > 0; step--) Atomics.load(memory, cells.TURNS);
};

function look() {
  const left = memory[cells.LEFT];
  linger();
  if (memory[cells.RIGHT] !== left && !rw.abandoned) Atomics.add(memory, cells.TORN, 1);
}

function change() {
  const value = memory[cells.LEFT] + 1;
  memory[cells.LEFT] = value;
  linger();
  memory[cells.RIGHT] = value;
  if (rw.abandoned) rw.markConsistent();
}

const turns = [
  () => {
    rw.read.lock();
    look();
    rw.read.unlock();
  },
  () => {
    // Twice, unless a writer waits in between.
    rw.read.lock();
    const isIn = rw.read.tryLock();
    look();
    rw.read.unlock();
    if (isIn) rw.read.unlock();
  },
  () => {
    const guard = rw.read.acquire();
    look();
    if (guard.tryUpgrade()) change();
    guard.unlock();
  },
  () => {
    const guard = rw.read.tryAcquire();
    if (guard === null) return;
    look();
    guard.unlock();
  },
  () => rw.read.executeLockedSync(look),
  () => {
    if (!rw.read.lock(1)) return;
    look();
    if (rw.tryUpgrade()) {
      change();
      rw.write.unlock();
    } else {
      rw.read.unlock();
    }
  },
  () => {
    rw.write.lock();
    change();
    rw.write.unlock();
  },
  () => {
    rw.write.lock();
    change();
    rw.downgrade();
    look();
    rw.read.unlock();
  },
  () => {
    const guard = rw.write.acquire();
    change();
    guard.downgrade();
    look();
    guard.unlock();
  },
  () => rw.write.executeLockedSync(change),
];

const awaited = [
  () => rw.read.executeLocked(look),
  () => rw.write.executeLocked(change),
  async () => {
    const guard = await rw.read.acquireAsync();
    look();
    guard.unlock();
  },
  async () => {
    if (!(await rw.write.lockAsync(1))) return;
    change();
    rw.write.unlock();
  },
];

async function run() {
  Atomics.add(memory, cells.READY, 1);
  for (;;) {
    for (let turn = below(20); turn > 0; turn--) {
      turns[below(turns.length)]();
      Atomics.add(memory, cells.TURNS, 1);
    }
    await Promise.all([awaited[below(awaited.length)](), awaited[below(awaited.length)]()]);
    Atomics.add(memory, cells.TURNS, 1);
  }
}

run().catch((error) => {
  console.error(error);
  Atomics.add(memory, cells.FAILED, 1);
});
