'use strict';
// Small helpers over a lock of any contender.

/** What is wrong with a lock that nobody holds now, as text, if anything: it must be free, and taken only once. */
function faultOf(lock) {
  if (!has(lock, 'tryLock', 'unlock')) return undefined;
  if (!lock.tryLock()) return 'the lock is not free after all its holds have ended';
  const twice = lock.tryLock();
  lock.unlock();
  return twice ? 'the lock was taken twice at once' : undefined;
}

/** True if the lock has all of these methods. */
const has = (lock, ...methods) => methods.every((method) => typeof lock[method] === 'function');

module.exports = { faultOf, has };
