// The package's face; index.d.ts documents every member.

const { Mutex } = require('./lib/primitives/mutex.js');
const { LockGuard } = require('./lib/primitives/guard.js');
const { lazily } = require('./lib/load/lazily.js');

// The rest is loaded when somebody first asks for it: start-up counts, and most programs need the mutex alone.
const condition = lazily(() => require('./lib/primitives/condition.js'));
const errors = lazily(() => require('./lib/errors.js'));
const futex = lazily(() => require('./lib/primitives/futex.js'));
const rwlock = lazily(() => require('./lib/primitives/rwlock.js'));
const event = lazily(() => require('./lib/primitives/event.js'));
const once = lazily(() => require('./lib/primitives/once.js'));
const latch = lazily(() => require('./lib/primitives/latch.js'));
const semaphore = lazily(() => require('./lib/primitives/semaphore.js'));
const barrier = lazily(() => require('./lib/primitives/barrier.js'));
const exchanger = lazily(() => require('./lib/primitives/exchanger.js'));
const table = lazily(() => require('./lib/primitives/lock-table.js'));
const several = lazily(() => require('./lib/primitives/lock-all.js'));
const manager = lazily(() => require('./lib/named/manager.js'));
const place = lazily(() => require('./lib/primitives/layout.js'));
const inspection = lazily(() => require('./lib/engine/inspection.js'));

// Accessors of a literal: with `Object.defineProperty` they would take four times as long, at each start.
const face = {
  Mutex,
  LockGuard,
  get Condition() {
    return condition().Condition;
  },
  get TimeoutError() {
    return errors().TimeoutError;
  },
  get DeadlockError() {
    return errors().DeadlockError;
  },
  get wait() {
    return futex().wait;
  },
  get notify() {
    return futex().notify;
  },
  get waitAsync() {
    return futex().waitAsync;
  },
  get RwLock() {
    return rwlock().RwLock;
  },
  get RwLockGuard() {
    return rwlock().RwLockGuard;
  },
  get ManualResetEvent() {
    return event().ManualResetEvent;
  },
  get AutoResetEvent() {
    return event().AutoResetEvent;
  },
  get Once() {
    return once().Once;
  },
  get Latch() {
    return latch().Latch;
  },
  get LatchEntry() {
    return latch().LatchEntry;
  },
  get Semaphore() {
    return semaphore().Semaphore;
  },
  get SemaphorePermits() {
    return semaphore().SemaphorePermits;
  },
  get Barrier() {
    return barrier().Barrier;
  },
  get BarrierMember() {
    return barrier().BarrierMember;
  },
  get Exchanger() {
    return exchanger().Exchanger;
  },
  get BrokenBarrierError() {
    return errors().BrokenBarrierError;
  },
  get LockLostError() {
    return errors().LockLostError;
  },
  get LockTable() {
    return table().LockTable;
  },
  get lockAll() {
    return several().lockAll;
  },
  get lockAllAsync() {
    return several().lockAllAsync;
  },
  get LockAllGuard() {
    return several().LockAllGuard;
  },
  get locks() {
    return manager().locks;
  },
  get LockManager() {
    return manager().LockManager;
  },
  get HeldLock() {
    return manager().HeldLock;
  },
  get HeldLocks() {
    return manager().HeldLocks;
  },
  get layout() {
    return place().layout;
  },
  get inspectAll() {
    return inspection().inspectAll;
  },
  get stats() {
    return require('./lib/engine/thread.js').binding.stats;
  },
};
module.exports = face;

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
