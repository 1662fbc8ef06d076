// The package's face; index.d.ts documents every member.

const { Mutex } = require('./lib/primitives/mutex.js');
const { LockGuard } = require('./lib/primitives/guard.js');
const { lazily } = require('./lib/load/lazily.js');

exports.Mutex = Mutex;
exports.LockGuard = LockGuard;

// The rest is loaded when somebody first asks for it: start-up counts, and most programs need the mutex alone.
const LATER = {
  Condition: lazily(() => require('./lib/primitives/condition.js')),
  TimeoutError: lazily(() => require('./lib/errors.js')),
  DeadlockError: lazily(() => require('./lib/errors.js')),
  wait: lazily(() => require('./lib/primitives/futex.js')),
  notify: lazily(() => require('./lib/primitives/futex.js')),
  waitAsync: lazily(() => require('./lib/primitives/futex.js')),
  RwLock: lazily(() => require('./lib/primitives/rwlock.js')),
  RwLockGuard: lazily(() => require('./lib/primitives/rwlock.js')),
  ManualResetEvent: lazily(() => require('./lib/primitives/event.js')),
  AutoResetEvent: lazily(() => require('./lib/primitives/event.js')),
  Once: lazily(() => require('./lib/primitives/once.js')),
  Latch: lazily(() => require('./lib/primitives/latch.js')),
  LatchEntry: lazily(() => require('./lib/primitives/latch.js')),
  Semaphore: lazily(() => require('./lib/primitives/semaphore.js')),
  SemaphorePermits: lazily(() => require('./lib/primitives/semaphore.js')),
  Barrier: lazily(() => require('./lib/primitives/barrier.js')),
  BarrierMember: lazily(() => require('./lib/primitives/barrier.js')),
  Exchanger: lazily(() => require('./lib/primitives/exchanger.js')),
  BrokenBarrierError: lazily(() => require('./lib/errors.js')),
  LockLostError: lazily(() => require('./lib/errors.js')),
  LockTable: lazily(() => require('./lib/primitives/lock-table.js')),
  lockAll: lazily(() => require('./lib/primitives/lock-all.js')),
  lockAllAsync: lazily(() => require('./lib/primitives/lock-all.js')),
  LockAllGuard: lazily(() => require('./lib/primitives/lock-all.js')),
  locks: lazily(() => require('./lib/named/manager.js')),
  LockManager: lazily(() => require('./lib/named/manager.js')),
  HeldLock: lazily(() => require('./lib/named/manager.js')),
  HeldLocks: lazily(() => require('./lib/named/manager.js')),
  layout: lazily(() => require('./lib/primitives/layout.js')),
  inspectAll: lazily(() => require('./lib/engine/inspection.js')),
  stats: () => require('./lib/engine/thread.js').binding,
};
for (const [name, load] of Object.entries(LATER)) {
  Object.defineProperty(exports, name, { enumerable: true, get: () => load()[name] });
}

// Never run: ES modules learn from it, without running anything, which names they can import.
0 &&
  // biome-ignore lint/suspicious/noAssignInExpressions: the form that they look for.
  (module.exports = {
    Mutex,
    LockGuard,
    Condition,
    RwLock,
    RwLockGuard,
    ManualResetEvent,
    AutoResetEvent,
    Once,
    Latch,
    LatchEntry,
    Semaphore,
    SemaphorePermits,
    Barrier,
    BarrierMember,
    Exchanger,
    BrokenBarrierError,
    LockLostError,
    LockTable,
    lockAll,
    lockAllAsync,
    LockAllGuard,
    locks,
    LockManager,
    HeldLock,
    HeldLocks,
    layout,
    TimeoutError,
    DeadlockError,
    wait,
    notify,
    waitAsync,
    inspectAll,
    stats,
  });
