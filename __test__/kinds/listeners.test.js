// A call with a signal listens to it while it waits, and no longer, however it ends: else a signal that lives as long as the program
// would keep all calls that it was ever given to.

const assert = require('node:assert/strict');
const { getEventListeners } = require('node:events');
const { test } = require('node:test');
const sablock = require('../..');
const { turns } = require('../helpers/names.js');
const { watched } = require('../helpers/threads.js');

const { AutoResetEvent, Barrier, Condition, Exchanger, Latch, ManualResetEvent, Mutex, Once, RwLock, Semaphore } =
  sablock;
const { lockAllAsync, locks, LockTable } = sablock;

/** The signal's own code unlocks the mutex when the wait begins, which is refused then. */
const unlockWhenListened = ({ mutex }, _, signal) => {
  signal.addEventListener = (...args) => {
    new Int32Array(mutex.buffer)[0] = 0;
    EventTarget.prototype.addEventListener.apply(signal, args);
  };
};

const NAME = 'listened to';
const unlock = (held) => held.unlock();

const ofMutex = (call) => ({
  make: (buffer) => new Mutex(buffer),
  hold: (mutex) => mutex.acquireAsync(),
  letIn: (_, guard) => guard.unlock(),
  call,
});

const ofSeveral = (call) => ({
  make: (buffer) => [new Mutex(new SharedArrayBuffer(4)), new Mutex(buffer), new Mutex(new SharedArrayBuffer(4))],
  hold: ([, mutex]) => mutex.acquireAsync(),
  letIn: (_, guard) => guard.unlock(),
  call,
});

const ofNames = (call) => ({
  hold: () => locks.acquireAsync(NAME),
  letIn: (_, lock) => lock.unlock(),
  call: (_, options) => call(options),
});

/**
 * `make(buffer)` returns the object; with what `hold(object)` leaves, `call(object, options)` waits, until `letIn(object, held)`.
 * Without `hold` it waits from the beginning. `refuse(object, buffer, signal)`: how its
 * call is made to be refused at once, if not by another kind of lock in its memory.
 */
const VERBS = {
  'mutex.lockAsync': ofMutex(async (mutex, options) => (await mutex.lockAsync(options)) && mutex.unlock()),
  'mutex.acquireAsync': ofMutex((mutex, options) => mutex.acquireAsync(options).then(unlock)),
  'mutex.executeLocked': ofMutex((mutex, options) => mutex.executeLocked(() => {}, options)),
  'table.lockAsync': {
    make: (buffer) => new LockTable(buffer, 0, 1),
    hold: (table) => table.acquireAsync(0),
    letIn: (_, guard) => guard.unlock(),
    call: async (table, options) => (await table.lockAsync(0, options)) && table.unlock(0),
  },
  'read.lockAsync': {
    make: (buffer) => new RwLock(buffer),
    hold: (rwlock) => rwlock.write.acquireAsync(),
    letIn: (_, guard) => guard.unlock(),
    call: async ({ read }, options) => (await read.lockAsync(options)) && read.unlock(),
  },
  'write.acquireAsync': {
    make: (buffer) => new RwLock(buffer),
    hold: (rwlock) => rwlock.read.acquireAsync(),
    letIn: (_, guard) => guard.unlock(),
    call: ({ write }, options) => write.acquireAsync(options).then(unlock),
  },
  'semaphore.acquireAsync': {
    make: (buffer) => new Semaphore(buffer, 0, 1),
    hold: (semaphore) => semaphore.acquireAsync(),
    letIn: (_, permits) => permits.release(),
    call: (semaphore, options) => semaphore.acquireAsync(1, options).then((permits) => permits.release()),
  },
  'semaphore.execute': {
    make: (buffer) => new Semaphore(buffer, 0, 1),
    hold: (semaphore) => semaphore.acquireAsync(),
    letIn: (_, permits) => permits.release(),
    call: (semaphore, options) => semaphore.execute(() => {}, options),
  },
  'latch.waitAsync': {
    make: (buffer) => new Latch(buffer),
    hold: (latch) => latch.add(),
    letIn: (latch) => latch.countDown(),
    call: (latch, options) => latch.waitAsync(options),
  },
  'barrier.waitAsync': {
    make: (buffer) => new Barrier(buffer, 0, 2),
    letIn: (barrier) => barrier.waitAsync(),
    call: (barrier, options) => barrier.waitAsync(options),
  },
  'exchanger.exchangeAsync': {
    make: (buffer) => new Exchanger(buffer),
    letIn: (exchanger) => exchanger.exchangeAsync(1),
    call: (exchanger, options) => exchanger.exchangeAsync(2, options),
  },
  'event.waitAsync, of a manual one': {
    make: (buffer) => new ManualResetEvent(buffer),
    letIn: (event) => event.set(),
    call: (event, options) => event.waitAsync(options),
  },
  'event.waitAsync, of an automatic one': {
    make: (buffer) => new AutoResetEvent(buffer),
    letIn: (event) => event.set(),
    call: (event, options) => event.waitAsync(options),
  },
  'once.run': {
    make: (buffer) => new Once(buffer),
    hold(once) {
      let end;
      const ended = new Promise((resolve) => {
        end = resolve;
      });
      once.run(() => ended);
      return end;
    },
    letIn: (_, end) => end(),
    call: (once, options) => once.run(() => {}, options),
  },
  'condition.waitAsync': {
    make: (buffer) => ({ condition: new Condition(buffer), mutex: new Mutex(new SharedArrayBuffer(4)) }),
    letIn: ({ condition }) => condition.notifyAll(),
    refuse: unlockWhenListened,
    call: ({ condition, mutex }, options) => mutex.executeLocked(() => condition.waitAsync(mutex, options)),
  },
  'condition.waitForAsync': {
    make: (buffer) => ({ condition: new Condition(buffer), mutex: new Mutex(new SharedArrayBuffer(4)), isMet: false }),
    refuse: unlockWhenListened,
    letIn(object) {
      object.isMet = true;
      object.condition.notifyAll();
    },
    call: (object, options) =>
      object.mutex.executeLocked(() => object.condition.waitForAsync(object.mutex, () => object.isMet, options)),
  },
  lockAllAsync: ofSeveral((all, options) => lockAllAsync(all, options).then(unlock)),
  'locks.request': ofNames((options) => locks.request(NAME, options, () => {})),
  'locks.acquireAsync': ofNames((options) => locks.acquireAsync(NAME, options).then(unlock)),
  'locks.acquireAsync, of several': ofNames((options) => locks.acquireAsync(['before', NAME], options).then(unlock)),
};

/** Somebody waits in its memory for another kind of lock. */
function occupy(object, buffer) {
  const isOther = object instanceof ManualResetEvent;
  const controller = new AbortController();
  const other = isOther ? new Latch(buffer) : new ManualResetEvent(buffer);
  if (isOther) other.add();
  const wait = other.waitAsync({ signal: controller.signal }).catch(() => {});
  return async () => {
    controller.abort();
    await wait;
  };
}

/** Each ends a call, of which it gets `{ object, verb, buffer, start }`: `start(options)` begins it, and returns how it ends. */
const ENDS = {
  async 'let in after a wait'({ object, verb, start }) {
    const held = await verb.hold?.(object);
    const ended = start({});
    await turns();
    await verb.letIn(object, held);
    assert.equal(await ended, undefined);
  },
  async 'let in at once'({ verb, start }) {
    if (verb.hold === undefined) return;
    assert.equal(await start({}), undefined);
  },
  async 'out of time'({ object, verb, start }) {
    const held = await verb.hold?.(object);
    const error = await start({ timeout: 5 });
    assert.ok(error === undefined || error.code === 'ERR_LOCK_TIMEOUT', error?.stack);
    if (verb.hold !== undefined) await verb.letIn(object, held);
  },
  async 'out of time at once'({ object, verb, start }) {
    const held = await verb.hold?.(object);
    const error = await start({ timeout: 0 });
    assert.ok(error === undefined || error.code === 'ERR_LOCK_TIMEOUT', error?.stack);
    if (verb.hold !== undefined) await verb.letIn(object, held);
  },
  async aborted({ object, verb, start, controller }) {
    const held = await verb.hold?.(object);
    const ended = start({});
    await turns();
    controller.abort(new Error('enough'));
    assert.equal((await ended).message, 'enough');
    if (verb.hold !== undefined) await verb.letIn(object, held);
  },
  // Before anything else is looked at.
  async 'aborted before'({ verb, object, start, controller }) {
    controller.abort(new Error('enough'));
    for (const options of [{}, { timeout: 5 }, { timeout: 0 }]) assert.equal((await start(options))?.message, 'enough');
    const held = await verb.hold?.(object);
    assert.equal((await start({ timeout: 0 }))?.message, 'enough', 'held');
    if (verb.hold !== undefined) await verb.letIn(object, held);
  },
  async 'refused at once'({ object, verb, buffer, start, controller }) {
    if (verb.make === undefined) return;
    const leave = (verb.refuse ?? occupy)(object, buffer, controller.signal);
    await turns();
    assert.equal((await start({})).code, verb.refuse === undefined ? 'ERR_LOCK_CORRUPT' : 'ERR_LOCK_NOT_OWNER');
    await leave?.();
  },
};

for (const [name, verb] of Object.entries(VERBS)) {
  for (const [how, end] of Object.entries(ENDS)) {
    test(
      `${name}, ${how}: nobody listens to its signal any more`,
      watched(async () => {
        const buffer = new SharedArrayBuffer(64);
        const object = verb.make?.(buffer);
        const controller = new AbortController();
        const { signal } = controller;
        const start = (options) =>
          verb.call(object, { ...options, signal }).then(
            () => {},
            (error) => error,
          );
        await end({ object, verb, buffer, start, controller });
        assert.equal(getEventListeners(signal, 'abort').length, 0);
      }),
    );
  }
}
