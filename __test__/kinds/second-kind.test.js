// A second kind of lock on memory where somebody waits: an error that names both kinds, and nothing is changed.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const sablock = require('../..');
const { BYTES, OFFSET } = require('../helpers/memory.js');
const { watched } = require('../helpers/threads.js');

/**
 * The ways in which somebody holds it, waits for it, and lets that waiter in; and the verbs that must not take the memory for
 * theirs.
 */
const kinds = {
  Mutex: {
    hold: (mutex) => mutex.tryLock(),
    wait: (mutex) => mutex.lockAsync(),
    letIn: (mutex) => mutex.unlock(),
    verbs: ['tryLock', 'tryAcquire', 'lockAsync', 'acquireAsync'],
  },
  RwLock: {
    hold: (rw) => rw.read.tryLock(),
    wait: (rw) => rw.write.lockAsync(),
    letIn: (rw) => rw.read.unlock(),
    verbs: ['read.tryLock', 'write.tryLock', 'read.lockAsync', 'write.acquireAsync'],
  },
  Semaphore: {
    args: [1],
    hold: (semaphore) => semaphore.tryAcquire(),
    wait: (semaphore) => semaphore.acquireAsync(),
    letIn: (semaphore) => semaphore.release(),
    verbs: ['tryAcquire', 'acquireAsync', 'release'],
  },
  'fair Semaphore': {
    type: 'Semaphore',
    args: [1],
    options: { fair: true },
    hold: (semaphore) => semaphore.tryAcquire(),
    wait: (semaphore) => semaphore.acquireAsync(),
    letIn: (semaphore) => semaphore.release(),
    verbs: ['tryAcquire', 'acquireAsync', 'release'],
  },
  Latch: {
    hold: (latch) => latch.add(),
    wait: (latch) => latch.waitAsync(),
    letIn: (latch) => latch.countDown(),
    verbs: ['add', 'enter', 'waitAsync'],
  },
  Barrier: {
    args: [2],
    hold: () => {},
    wait: (barrier) => barrier.waitAsync(),
    letIn: (barrier) => barrier.waitAsync(),
    verbs: ['waitAsync', 'join', 'reset'],
  },
  Exchanger: {
    hold: () => {},
    wait: (exchanger) => exchanger.exchangeAsync(1),
    letIn: (exchanger) => exchanger.exchangeAsync(2),
    verbs: [['exchangeAsync', 1]],
  },
  ManualResetEvent: {
    hold: () => {},
    wait: (event) => event.waitAsync(),
    letIn: (event) => event.set(),
    verbs: ['waitAsync', 'set'],
  },
  AutoResetEvent: {
    hold: () => {},
    wait: (event) => event.waitAsync(),
    letIn: (event) => event.set(),
    verbs: ['waitAsync', 'set'],
  },
  Once: {
    hold: (once) => {
      let finish;
      once.run(() => new Promise((resolve) => (finish = resolve)));
      once.finish = () => finish();
    },
    wait: (once) => once.run(() => {}),
    letIn: (once) => once.finish(),
    verbs: [['run', () => {}]],
  },
};

function make(kind, buffer, options) {
  const { type = kind, args = [], options: own } = kinds[kind];
  return new sablock[type](buffer, OFFSET, ...args, { ...own, ...options });
}
const article = (kind) => (/^[AEO]/.test(kind) ? 'an' : 'a');

for (const [kind, { hold, wait, letIn }] of Object.entries(kinds)) {
  for (const [other, { verbs }] of Object.entries(kinds)) {
    if (kind === other) continue;
    const body = async () => {
      const buffer = new SharedArrayBuffer(BYTES);
      const words = new Int32Array(buffer);
      const first = make(kind, buffer);
      hold(first);
      const waiting = wait(first);
      const before = [...words];
      const second = make(other, buffer, { name: 'the second' });
      for (const verb of verbs) {
        const [path, ...args] = [verb].flat();
        const names = path.split('.');
        const method = names.pop();
        const call = async () => names.reduce((value, name) => value[name], second)[method](...args);
        await assert.rejects(
          call,
          {
            code: 'ERR_LOCK_CORRUPT',
            message: new RegExp(
              `'the second' at byte offset ${OFFSET} is used as another kind of lock: it is ${article(other)} ${other} here.* for ${article(kind)} ${kind}\\.`,
            ),
          },
          path,
        );
        assert.deepEqual([...words], before, path);
      }
      await letIn(first);
      await waiting;
    };
    test(
      `where somebody waits for a ${kind}, the verbs of a ${other} name both kinds and change nothing`,
      watched(body),
    );
  }
}
