// The kinds that are made in memory that comes back: how, what of it is held, and how it is waited for. `take` holds without
// waiting, and returns what gives it back; `shut` makes that a wait is one; `wait(options)` is a promise.

const sablock = require('../../..');

/** Returns what releases it; null if there is nothing to release. */
const releaseOf = (held, release) => (held === null ? null : () => release(held));

const guarded = (lock) => ({
  take: () => releaseOf(lock.tryAcquire(), (guard) => guard.unlock()),
  isAbandoned: () => {
    const guard = lock.tryAcquire();
    if (guard === null) return null;
    const { abandoned } = guard;
    guard.unlock();
    return abandoned;
  },
  wait: (options) => lock.acquireAsync(options).then((guard) => guard.unlock()),
});

const permits = (options) => (buffer) => {
  const object = new sablock.Semaphore(buffer, 0, 2, options);
  return {
    object,
    take: () => releaseOf(object.tryAcquire(2), (taken) => taken.release()),
    wait: (waiting) => object.acquireAsync(1, waiting).then((taken) => taken.release()),
  };
};

/** Returns the entry, or the membership, of `come()`. */
const joined = (object, come) => ({
  object,
  take: () => releaseOf(come(), (one) => one.leave()),
  wait: (options) => object.waitAsync(options),
});

const event = (Type) => (buffer) => {
  const object = new Type(buffer);
  return {
    object,
    take: () => {
      object.set();
      return () => object.reset();
    },
    shut: () => object.reset(),
    wait: (options) => object.waitAsync(options),
  };
};

exports.KINDS = {
  Mutex(buffer) {
    const object = new sablock.Mutex(buffer);
    return { object, ...guarded(object) };
  },
  Reader(buffer) {
    const object = new sablock.RwLock(buffer);
    return { object, ...guarded(object.read), wait: guarded(object.write).wait };
  },
  Writer(buffer) {
    const object = new sablock.RwLock(buffer);
    return { object, ...guarded(object.write), wait: guarded(object.read).wait };
  },
  Semaphore: permits(),
  FairSemaphore: permits({ fair: true }),
  Latch(buffer) {
    const latch = new sablock.Latch(buffer);
    return joined(latch, () => latch.enter());
  },
  Barrier(buffer) {
    const barrier = new sablock.Barrier(buffer, 0, 3);
    return joined(barrier, () => barrier.join());
  },
  Once(buffer) {
    const object = new sablock.Once(buffer);
    return { object, take: () => () => {}, wait: (options) => object.run(() => {}, options) };
  },
  ManualResetEvent: event(sablock.ManualResetEvent),
  AutoResetEvent: event(sablock.AutoResetEvent),
  Exchanger(buffer) {
    const object = new sablock.Exchanger(buffer);
    return { object, take: () => () => {}, wait: (options) => object.exchangeAsync(1, options) };
  },
};
