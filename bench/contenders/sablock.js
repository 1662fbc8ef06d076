'use strict';
// The package in this repository, or the one in the folder that SABLOCK_BENCH_PACKAGE names (`--against`, `--ablation`). Where
// loading is measured, SABLOCK_BENCH_PACKED names a copy of it as it is packed.

const path = require('node:path');

const root = process.env.SABLOCK_BENCH_PACKAGE ?? path.join(__dirname, '..', '..');
const OPTIONS = { allowMainThread: true };

let sablock;

module.exports = {
  name: 'sablock',
  root,
  entry: { require: process.env.SABLOCK_BENCH_PACKED ?? root },
  load() {
    sablock = require(root);
  },
  share: (count) => new SharedArrayBuffer(4 * count),
  open: (buffer, index) => new sablock.Mutex(buffer, 4 * index, OPTIONS),
  rwlock: {
    share: () => new SharedArrayBuffer(8),
    open: (buffer) => new sablock.RwLock(buffer, 0, OPTIONS),
  },
  semaphore: {
    share: () => new SharedArrayBuffer(4),
    open: (buffer, permits) => new sablock.Semaphore(buffer, 0, permits, OPTIONS),
  },
  fairSemaphore: {
    share: () => new SharedArrayBuffer(4),
    open: (buffer, permits) => new sablock.Semaphore(buffer, 0, permits, { ...OPTIONS, fair: true }),
  },
  barrier: {
    share: () => new SharedArrayBuffer(8),
    open(buffer, parties) {
      const barrier = new sablock.Barrier(buffer, 0, parties);
      return { wait: () => barrier.wait() === 0 };
    },
  },
  toolkit: () => sablock,
};
