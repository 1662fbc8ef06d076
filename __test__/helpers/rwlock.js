// Shared memory with one RwLock in it, at the offset of `memory.js`, and workers that use it.

const { RwLock } = require('../..');
const { BYTES, OFFSET } = require('./memory.js');

const SHARED = 1 << 30;

exports.createRwLock = (options) => {
  const buffer = new SharedArrayBuffer(BYTES);
  const rw = new RwLock(buffer, OFFSET, options);
  const words = new Int32Array(buffer, OFFSET, 2);
  return { buffer, rw, words, word: () => Atomics.load(words, 0) };
};

/** Returns what the word holds with so many readers. */
exports.readersWord = (count) => (count === 0 ? 0 : SHARED | count);

/** Starts workers that do what `call` and `run` tell them to: `worker.call('read.lock', 50)`. */
exports.rwPuppets = async (threads, count, buffer, options = {}) => {
  const puppets = Array.from({ length: count }, () => threads.start('rwlock-puppet', { buffer }, options));
  await Promise.all(puppets.map((puppet) => puppet.call('get', 'byteOffset')));
  return puppets;
};
