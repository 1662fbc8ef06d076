// Several mutexes in one buffer, and the functions that lock them all.

const { lockAll, lockAllAsync, Mutex } = require('../..');
const { BYTES } = require('./memory.js');

exports.OFFSETS = [8, 16, 24, 32];
exports.ALL = [true, true, true, true];
exports.NONE = [false, false, false, false];

exports.createMutexes = (options) => {
  const buffer = new SharedArrayBuffer(BYTES);
  const all = { allowMainThread: true, ...options };
  return { buffer, mutexes: exports.OFFSETS.map((offset) => new Mutex(buffer, offset, all)) };
};

exports.held = (mutexes) => mutexes.map(({ isHeldByThisThread }) => isHeldByThisThread);

/** Both, as one that returns a promise. */
exports.forms = {
  lockAll: async (...args) => lockAll(...args),
  lockAllAsync: (...args) => lockAllAsync(...args),
};
