// A verb that returns a promise and is called on something else than its object: the promise is rejected, and says so.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const sablock = require('../..');

const OPTIONS = { allowMainThread: true };
const memory = () => new SharedArrayBuffer(64);

/** By class: an object of each. */
const OBJECTS = {
  Mutex: new sablock.Mutex(memory(), 0, OPTIONS),
  ReadLock: new sablock.RwLock(memory(), 0, OPTIONS).read,
  WriteLock: new sablock.RwLock(memory(), 0, OPTIONS).write,
  LockTable: new sablock.LockTable(memory(), 0, 4, OPTIONS),
  Semaphore: new sablock.Semaphore(memory(), 0, 2, OPTIONS),
  Latch: new sablock.Latch(memory(), 0, OPTIONS),
  Barrier: new sablock.Barrier(memory(), 0, 2, OPTIONS),
  ManualResetEvent: new sablock.ManualResetEvent(memory(), 0, OPTIONS),
  AutoResetEvent: new sablock.AutoResetEvent(memory(), 0, OPTIONS),
  Exchanger: new sablock.Exchanger(memory(), 0, OPTIONS),
  Once: new sablock.Once(memory(), 0, OPTIONS),
  Condition: new sablock.Condition(memory(), 0, OPTIONS),
  LockManager: sablock.locks,
};
const mutex = new sablock.Mutex(memory(), 0, OPTIONS);
const fn = () => {};

/** By verb: what it is called with where all is well, and with options. Other verbs return no promise. */
const ARGUMENTS = {
  lockAsync: { LockTable: [[0], [0, 5]], others: [[], [5]] },
  acquireAsync: { LockTable: [[0], [0, 5]], LockManager: [['a'], ['a', { timeout: 5 }]], others: [[], [5]] },
  executeLocked: { LockTable: [[0, fn]], others: [[fn], [fn, { timeout: 5 }]] },
  execute: { others: [[fn], [fn, { timeout: 5 }]] },
  waitAsync: { Condition: [[mutex], [mutex, 5]], others: [[], [5]] },
  waitForAsync: { others: [[mutex, fn]] },
  exchangeAsync: { others: [[1], [1, 5]] },
  lockAllAsync: { others: [[[0, 1]]] },
  run: { others: [[fn], [fn, { timeout: 5 }]] },
  request: {
    others: [
      ['a', fn],
      [['a', 'b'], fn],
    ],
  },
  query: { others: [[]] },
  close: { others: [[]] },
  check: { others: [[]] },
  stats: { others: [[]] },
};
/** They return no promise. */
const OTHERS =
  /^(?:constructor|lock|unlock|try.*|acquire|execute.*Sync|requestSync|runSync|wait|waitFor|exchange|enter|leave|release|add|countDown|set|reset|notify.*|inspect|at|indexFor|lockAll|isHeldByThisThread|markConsistent|break|join|member.*|parties)$/;

for (const [type, object] of Object.entries(OBJECTS)) {
  const verbs = new Set();
  for (let from = object; from !== Object.prototype; from = Object.getPrototypeOf(from)) {
    for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(from))) {
      if (typeof value === 'function' && !OTHERS.test(name)) verbs.add(name);
    }
  }

  test(`each verb of ${type} that returns a promise has a row here`, () => {
    assert.deepEqual(
      [...verbs].filter((verb) => !(verb in ARGUMENTS)),
      [],
    );
    assert.ok(verbs.size > 0);
  });

  for (const verb of verbs) {
    test(`${type}: ${verb} called on something else is rejected, and says so`, async () => {
      const { others, [type]: all = others } = ARGUMENTS[verb];
      for (const self of [undefined, null, {}, 5, new Proxy(object, {}), Object.create(object)]) {
        for (const args of all) {
          const promise = object[verb].call(self, ...args);
          await assert.rejects(promise, {
            name: 'TypeError',
            code: 'ERR_INVALID_THIS',
            message: new RegExp(`^${verb}\\(\\) was called on ${Object(self) === self ? 'another object' : self}\\. `),
          });
        }
      }
    });
  }
}
