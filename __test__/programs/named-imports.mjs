// An ES module that finds the package by its own name.

import {
  AutoResetEvent,
  Barrier,
  BarrierMember,
  BrokenBarrierError,
  Condition,
  DeadlockError,
  Exchanger,
  HeldLock,
  Latch,
  LatchEntry,
  LockGuard,
  LockManager,
  locks,
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
  Exchanger,
  Condition,
  DeadlockError,
  HeldLock,
  Latch,
  LatchEntry,
  LockGuard,
  LockManager,
  locks,
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
