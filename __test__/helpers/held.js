const { createMutex } = require('./memory.js');

/** A mutex whose holder is a worker. */
exports.createHeld = async (threads, { hold = 'lock', others = 0, options } = {}) => {
  const { buffer, mutex, word } = createMutex();
  const [[holder], waiters] = await Promise.all([threads.puppets(1, buffer, options), threads.puppets(others, buffer)]);
  await holder.call(hold);
  return { buffer, mutex, word, holder, waiters };
};
