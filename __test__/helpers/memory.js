// Shared memory with one mutex in it, at an offset that no other number in a message is likely to be.

const { Mutex } = require('../..');

exports.OFFSET = 1048;
exports.BYTES = 2048;

exports.createMutex = (options) => {
  const buffer = new SharedArrayBuffer(exports.BYTES);
  const mutex = new Mutex(buffer, exports.OFFSET, options);
  return { buffer, mutex, word: exports.wordOf(mutex) };
};

/** Returns a function that reads the mutex's word. */
exports.wordOf = (mutex) => {
  const words = new Int32Array(mutex.buffer, mutex.byteOffset, 1);
  return () => Atomics.load(words, 0);
};

exports.overwrite = (mutex, value) => {
  Atomics.store(new Int32Array(mutex.buffer, mutex.byteOffset, 1), 0, value);
};
