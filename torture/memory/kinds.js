// What is made in memory that comes back: how, what of it is held, and how it is waited for. `take` holds without waiting, and returns
// what gives it back; `shut` makes that a wait is one; `wait(options)` is a promise.

const sablock = require('../..');

const guarded = (lock) => ({
  take: () => {
    const guard = lock.tryAcquire();
    return guard === null ? null : () => guard.unlock();
  },
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
  const take = (count) => {
    const taken = object.tryAcquire(count);
    return taken === null ? null : () => taken.release();
  };
  return {
    object,
    take: () => take(2),
    wait: (waiting) => object.acquireAsync(1, waiting).then((taken) => taken.release()),
  };
};

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
    const object = new sablock.Latch(buffer);
    return {
      object,
      take: () => {
        const entry = object.enter();
        return () => entry.leave();
      },
      wait: (options) => object.waitAsync(options),
    };
  },
  Barrier(buffer) {
    const object = new sablock.Barrier(buffer, 0, 3);
    return {
      object,
      take: () => {
        const member = object.join();
        return () => member.leave();
      },
      wait: (options) => object.waitAsync(options),
    };
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
