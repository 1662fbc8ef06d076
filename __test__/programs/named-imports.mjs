// An ES module that finds the package by its own name.

import {
  Barrier,
  BarrierMember,
  BrokenBarrierError,
  Condition,
  DeadlockError,
  LockGuard,
  Mutex,
  notify,
  Semaphore,
  SemaphorePermits,
  stats,
  TimeoutError,
  wait,
  waitAsync,
} from 'sablock';

export const imported = {
  Barrier,
  BarrierMember,
  BrokenBarrierError,
  Condition,
  DeadlockError,
  LockGuard,
  Mutex,
  notify,
  Semaphore,
  SemaphorePermits,
  stats,
  TimeoutError,
  wait,
  waitAsync,
};

export const createHeld = (buffer, byteOffset) => {
  const mutex = new Mutex(buffer, byteOffset);
  mutex.tryLock();
  return mutex;
};
