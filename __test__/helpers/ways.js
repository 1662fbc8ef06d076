// Every way of locking, in one form: `hold(mutex, body, options)` takes the mutex, runs `body` and frees it.
// A way that blocks has a `body` that returns; the others also await one.

const { setImmediate: nextTurn } = require('node:timers/promises');

const ways = [
  {
    name: 'lock',
    blocks: true,
    hold(mutex, body, { timeout } = {}) {
      if (!mutex.lock(timeout)) throw new Error('lock() timed out');
      try {
        body();
      } finally {
        mutex.unlock();
      }
    },
  },
  {
    name: 'acquire',
    blocks: true,
    hold(mutex, body, options) {
      const guard = mutex.acquire(options);
      try {
        body();
      } finally {
        guard.unlock();
      }
    },
  },
  {
    name: 'executeLockedSync',
    blocks: true,
    hold(mutex, body, options) {
      mutex.executeLockedSync(body, options);
    },
  },
  {
    name: 'tryLock',
    blocks: false,
    async hold(mutex, body) {
      while (!mutex.tryLock()) await nextTurn();
      try {
        await body();
      } finally {
        mutex.unlock();
      }
    },
  },
  {
    name: 'tryAcquire',
    blocks: false,
    async hold(mutex, body) {
      let guard = mutex.tryAcquire();
      while (guard === null) {
        await nextTurn();
        guard = mutex.tryAcquire();
      }
      try {
        await body();
      } finally {
        guard[Symbol.dispose]();
      }
    },
  },
  {
    name: 'lockAsync',
    blocks: false,
    async hold(mutex, body, options) {
      if (!(await mutex.lockAsync(options))) throw new Error('lockAsync() timed out');
      try {
        await body();
      } finally {
        mutex.unlock();
      }
    },
  },
  {
    name: 'acquireAsync',
    blocks: false,
    async hold(mutex, body, options) {
      const guard = await mutex.acquireAsync(options);
      try {
        await body();
      } finally {
        guard.unlock();
      }
    },
  },
  {
    name: 'executeLocked',
    blocks: false,
    async hold(mutex, body, options) {
      await mutex.executeLocked(body, options);
    },
  },
  {
    name: 'enter and leave',
    blocks: false,
    hold(mutex, body) {
      return new Promise((resolve, reject) => {
        mutex.enter(async (token) => {
          try {
            await body();
            mutex.leave(token);
            resolve();
          } catch (error) {
            reject(error);
          }
        });
      });
    },
  },
];

exports.ways = ways;
exports.wayNamed = (name) => ways.find((way) => way.name === name);
