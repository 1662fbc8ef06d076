// An object of any class of the package in shared memory, and threads that use the same memory.

const sablock = require('../..');
const { BYTES, OFFSET } = require('./memory.js');

exports.create = (type, options, ...args) => {
  const buffer = new SharedArrayBuffer(BYTES);
  const object = new sablock[type](buffer, OFFSET, ...args, options);
  const words = new Int32Array(buffer, OFFSET, object.constructor.BYTES / 4);
  return { buffer, object, words };
};

/** Threads with an object of their own on the memory of this one. */
exports.users = async (threads, count, object, options = {}, args = []) => {
  const { buffer, byteOffset } = object;
  const data = { buffer, byteOffset, type: object.constructor.name, args };
  const users = Array.from({ length: count }, () => threads.start('primitive', data, options));
  await Promise.all(users.map((user) => user.call('get', 'byteOffset')));
  return users;
};
