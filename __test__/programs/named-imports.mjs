// An ES module that finds the package by its own name.

import { Condition, DeadlockError, LockGuard, Mutex, notify, stats, TimeoutError, wait, waitAsync } from 'sablock';

export const imported = { Condition, DeadlockError, LockGuard, Mutex, notify, stats, TimeoutError, wait, waitAsync };

export const createHeld = (buffer, byteOffset) => {
  const mutex = new Mutex(buffer, byteOffset);
  mutex.tryLock();
  return mutex;
};
