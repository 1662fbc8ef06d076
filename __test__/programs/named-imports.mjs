// An ES module that finds the package by its own name.

import {
  AutoResetEvent,
  Barrier,
  BarrierMember,
  BrokenBarrierError,
  Condition,
  DeadlockError,
  Latch,
  LatchEntry,
  LockGuard,
  ManualResetEvent,
  Mutex,
  notify,
  Once,
  Semaphore,
  SemaphorePermits,
  stats,
  TimeoutError,
  wait,
  waitAsync,
} from 'sablock';

export const imported = {
  AutoResetEvent,
  Barrier,
  BarrierMember,
  BrokenBarrierError,
  Condition,
  DeadlockError,
  Latch,
  LatchEntry,
  LockGuard,
  ManualResetEvent,
  Mutex,
  notify,
  Once,
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
