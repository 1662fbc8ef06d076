// When a loop may sleep for a wait: once in a turn, and never with `maySleep: false`. That it keeps to that is a test of the
// core (`tests/parking.rs`); here is that JS says when a turn begins and which waits stay awake, and that these still get the lock.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { LockTable, Mutex, RwLock } = require('../..');
const { binding, thread } = require('../../lib/engine/thread.js');

const { BYTES } = Mutex;

const WAYS = {
  'mutex.lockAsync': (options) => {
    const mutex = new Mutex(new SharedArrayBuffer(BYTES), 0, options);
    return { lock: mutex, wait: () => mutex.lockAsync() };
  },
  'mutex.executeLocked': (options) => {
    const mutex = new Mutex(new SharedArrayBuffer(BYTES), 0, options);
    return { lock: mutex, wait: () => mutex.executeLocked(() => mutex.isLocked) };
  },
  'rwlock.write.acquireAsync': (options) => {
    const { write } = new RwLock(new SharedArrayBuffer(RwLock.BYTES), 0, options);
    return { lock: write, wait: () => write.acquireAsync() };
  },
  'table.lockAsync': (options) => {
    const table = new LockTable(new SharedArrayBuffer(LockTable.bytes(2)), 0, 2, options);
    return { lock: table.at(1), wait: () => table.lockAsync(1) };
  },
};

for (const [verb, make] of Object.entries(WAYS)) {
  test(`${verb}: with maySleep false, and only then, a pending wait stays awake; it gets the lock`, async (t) => {
    const { stayAwake } = binding;
    const calls = [];
    binding.stayAwake = (token) => {
      calls.push(token);
      return stayAwake(token);
    };
    t.after(() => {
      binding.stayAwake = stayAwake;
    });
    for (const [options, expected] of [
      [{ maySleep: false }, 1],
      [{ maySleep: true }, 0],
      [{ name: 'other options' }, 0],
      [undefined, 0],
    ]) {
      calls.length = 0;
      const { lock, wait } = make(options);
      assert.equal(lock.tryLock(), true);
      const pending = wait();
      lock.unlock();
      assert.ok(await pending);
      assert.equal(calls.length, expected, `${JSON.stringify(options)}`);
    }
  });
}

test('a loop that has slept may sleep again in its next turn, however often it drains in this one', async (t) => {
  const { next, turned } = binding;
  t.after(() => Object.assign(binding, { next, turned }));
  let turns = 0;
  // Stands for a loop that comes in vain; when it sleeps is a test of the core.
  binding.next = () => binding.SLEPT;
  binding.turned = () => {
    turns += 1;
    turned();
  };
  for (const turn of [1, 2]) {
    for (let drain = 0; drain < 10; drain++) {
      thread.drain();
      await null;
    }
    assert.equal(turns, turn - 1, 'in the turn in which it slept');
    await new Promise(setImmediate);
    assert.equal(turns, turn);
  }
});

test('maySleep is a boolean', () => {
  for (const maySleep of [null, 0, 'no']) {
    assert.throws(() => new Mutex(new SharedArrayBuffer(BYTES), 0, { maySleep }), { code: 'ERR_INVALID_ARG_TYPE' });
  }
});
