// An ES module that finds the package by its own name.

import { DeadlockError, LockGuard, Mutex, TimeoutError } from 'sablock';

export const imported = { DeadlockError, LockGuard, Mutex, TimeoutError };

export const createHeld = (buffer, byteOffset) => {
  const mutex = new Mutex(buffer, byteOffset);
  mutex.tryLock();
  return mutex;
};
