// Holds that went back because their thread ended are published by the next call that reaches the core, whatever its verb, and
// whether it gets what it wants; and whoever is told may make calls of its own.

const assert = require('node:assert/strict');
const { subscribe, unsubscribe } = require('node:diagnostics_channel');
const { test } = require('node:test');
const sablock = require('../..');
const { startActors } = require('../helpers/actors.js');
const { BYTES } = require('../helpers/memory.js');
const { listen } = require('../helpers/messages.js');
const { needs } = require('../helpers/runtime.js');
const { watched } = require('../helpers/threads.js');

const { Latch, RwLock, Semaphore, Condition, lockAll, lockAllAsync } = sablock;
const OPTIONS = { allowMainThread: true };
const SOON = { timeout: 1 };
const nothing = () => {};

const READS = {
  'read.tryLock': (rw) => rw.read.tryLock(),
  'read.lock': (rw) => rw.read.lock(1),
  'read.lockAsync': (rw) => rw.read.lockAsync(),
  'read.tryAcquire': (rw) => rw.read.tryAcquire(),
  'read.acquire': (rw) => rw.read.acquire(1),
  'read.acquireAsync': (rw) => rw.read.acquireAsync(SOON),
  'read.executeLocked': (rw) => rw.read.executeLocked(nothing, SOON),
  'read.executeLockedSync': (rw) => rw.read.executeLockedSync(nothing, SOON),
  'lockAll of read': (rw) => lockAll([rw.read], 1),
  'lockAllAsync of read': (rw) => lockAllAsync([rw.read], 1),
};
const WRITES = {
  'write.tryLock': (rw) => rw.write.tryLock(),
  'write.lock': (rw) => rw.write.lock(1),
  'write.lockAsync': (rw) => rw.write.lockAsync(1),
  'write.tryAcquire': (rw) => rw.write.tryAcquire(),
  'write.acquire': (rw) => rw.write.acquire(1),
  'write.acquireAsync': (rw) => rw.write.acquireAsync(1),
  'write.executeLocked': (rw) => rw.write.executeLocked(nothing, SOON),
  'write.executeLockedSync': (rw) => rw.write.executeLockedSync(nothing, SOON),
  'lockAll of write': (rw) => lockAll([rw.write], 1),
  'lockAllAsync of write': (rw) => lockAllAsync([rw.write], 1),
};
const PERMITS = {
  tryAcquire: (semaphore) => semaphore.tryAcquire(3),
  acquire: (semaphore) => semaphore.acquire(3, 1),
  acquireAsync: (semaphore) => semaphore.acquireAsync(3, 1),
  execute: (semaphore) => semaphore.execute(nothing, { permits: 3, ...SOON }),
  executeSync: (semaphore) => semaphore.executeSync(nothing, { permits: 3, ...SOON }),
};
const PASSAGES = {
  wait: (object) => object.wait(1),
  waitAsync: (object) => object.waitAsync(1),
};

const makeRwLock = (buffer, offset) => new RwLock(buffer, offset, OPTIONS);
const makeSemaphore = (options) => (buffer, offset) => new Semaphore(buffer, offset, 3, { ...OPTIONS, ...options });

/**
 * By what is called: `hold`, in a thread that ends; `beside`, what this thread has done before, so that no call is served by the word
 * alone; the verbs, and whether they get what they want. `mark`: a thread has ended before that wrote.
 */
const CASES = {
  'a marked RwLock': {
    make: makeRwLock,
    mark: true,
    hold: (here, offset) => new here.sablock.RwLock(here.buffer, offset).read.lock(),
    verbs: { ...READS, ...WRITES },
    gets: true,
    mode: 'shared',
  },
  'an RwLock that others read': {
    make: makeRwLock,
    hold: (here, offset) => new here.sablock.RwLock(here.buffer, offset).read.acquire(),
    beside: (rw) => rw.read.tryLock(),
    verbs: WRITES,
    gets: false,
    mode: 'shared',
  },
  'a Semaphore with too few permits': {
    make: makeSemaphore(),
    hold: (here, offset) => new here.sablock.Semaphore(here.buffer, offset, 3).acquire(1),
    beside: (semaphore) => semaphore.tryAcquire(1),
    verbs: PERMITS,
    gets: false,
    mode: 'permits',
  },
  'a fair Semaphore with too few permits': {
    make: makeSemaphore({ fair: true }),
    hold: (here, offset) => new here.sablock.Semaphore(here.buffer, offset, 3, { fair: true }).tryAcquire(1),
    beside: (semaphore) => semaphore.tryAcquire(1),
    verbs: PERMITS,
    gets: false,
    mode: 'permits',
  },
  'a Latch': {
    make: (buffer, offset) => new Latch(buffer, offset, OPTIONS),
    hold: (here, offset) => new here.sablock.Latch(here.buffer, offset).enter(),
    beside: (latch) => latch.add(),
    verbs: PASSAGES,
    gets: false,
    mode: 'entry',
  },
};

/** Has a thread hold each of them, and ends it. */
const endAt = async (threads, buffer, hold, offsets) => {
  const [doomed] = await startActors(threads, 1, buffer);
  await doomed.do(
    (here, source, offsets) => {
      const hold = new Function(`'use strict'; return ${source};`)();
      here.kept = offsets.map((offset) => hold(here, offset));
    },
    String(hold),
    offsets,
  );
  await doomed.terminate();
  await doomed.exited;
  return doomed.threadId;
};
const write = (here, offset) => new here.sablock.RwLock(here.buffer, offset).write.lock();

for (const [name, { make, mark, hold, beside = nothing, verbs, gets, mode }] of Object.entries(CASES)) {
  test(
    `the end of a thread that held ${name} is published by the next call of every verb, which gets ${gets ? 'it' : 'nothing'}`,
    needs('prompt ends'),
    watched(async (t, threads) => {
      const buffer = new SharedArrayBuffer(BYTES);
      const offsets = Object.keys(verbs).map((_, index) => 8 * index);
      const objects = offsets.map((offset) => make(buffer, offset));
      if (mark) await endAt(threads, buffer, write, offsets);
      for (const object of objects) beside(object);
      const ended = await endAt(threads, buffer, hold, offsets);
      const messages = listen(t, 'sablock:abandoned');
      for (const [index, [verb, call]] of Object.entries(verbs).entries()) {
        const outcome = async () => call(objects[index]);
        const got = await outcome().catch(({ code }) => code);
        if (gets) assert.ok(typeof got !== 'string' && got !== false && got !== null, `${verb}: ${got}`);
        else assert.ok([false, null, 'ERR_LOCK_TIMEOUT'].includes(got), `${verb}: ${got}`);
        assert.deepEqual(messages.splice(0), [{ byteOffset: offsets[index], ownerThreadId: ended, mode }], verb);
        await outcome().catch(nothing);
        assert.deepEqual(messages, [], `${verb}, again`);
      }
    }),
  );
}

/** Makes a call of the core that finds something of its own: a lock that nobody has left. */
const waitInVain = (sablock, buffer) => {
  const lock = new sablock.Mutex(buffer, 1024, { allowMainThread: true });
  lock.lock();
  new sablock.Condition(buffer, 1028, { allowMainThread: true }).wait(lock, 1);
  lock.unlock();
};

test(
  'whoever is told of the end of a reader may wait for a lock: the end of a writer is reported as ever, by every verb',
  needs('prompt ends'),
  watched(async (t, threads) => {
    const buffer = new SharedArrayBuffer(BYTES);
    const verbs = { ...READS, ...WRITES };
    const offsets = Object.keys(verbs).map((_, index) => 8 * index);
    const objects = offsets.map((offset) => makeRwLock(buffer, offset));
    const reader = await endAt(
      threads,
      buffer,
      (here, offset) => new here.sablock.RwLock(here.buffer, offset).read.lock(),
      offsets,
    );
    const writer = await endAt(threads, buffer, write, offsets);
    const messages = listen(t, 'sablock:abandoned');
    const wait = () => waitInVain(sablock, buffer);
    subscribe('sablock:abandoned', wait);
    t.after(() => unsubscribe('sablock:abandoned', wait));
    for (const [index, [verb, call]] of Object.entries(verbs).entries()) {
      await call(objects[index]);
      const byteOffset = offsets[index];
      const told = [
        { byteOffset, ownerThreadId: reader, mode: 'shared' },
        { byteOffset, ownerThreadId: writer, mode: 'exclusive' },
      ];
      assert.deepEqual(messages.splice(0), told, verb);
    }
  }),
);

/** By the class: how a thread holds it that ends, and the verbs that block for it. */
const BLOCKING = {
  Mutex: {
    hold: (here) => new here.sablock.Mutex(here.buffer, 0).lock(),
    verbs: {
      lock: (lock) => lock.lock(),
      acquire: (lock) => lock.acquire(),
      executeLockedSync: (lock) => lock.executeLockedSync(() => {}),
      lockAll: (lock, sablock) => sablock.lockAll([lock]),
    },
  },
  RwLock: {
    hold: (here) => new here.sablock.RwLock(here.buffer, 0).write.lock(),
    verbs: {
      'write.lock': (rw) => rw.write.lock(),
      'write.acquire': (rw) => rw.write.acquire(),
      'write.executeLockedSync': (rw) => rw.write.executeLockedSync(() => {}),
      'read.lock': (rw) => rw.read.lock(),
      'read.acquire': (rw) => rw.read.acquire(),
      'read.executeLockedSync': (rw) => rw.read.executeLockedSync(() => {}),
    },
  },
  Once: {
    hold: (here) => {
      new here.sablock.Once(here.buffer, 0).run(() => new Promise(() => {}));
    },
    verbs: { runSync: (turn) => turn.runSync(() => {}) },
  },
};

for (const [kind, { hold, verbs }] of Object.entries(BLOCKING)) {
  for (const [verb, block] of Object.entries(verbs)) {
    test(
      `whoever is told that ${verb}() of ${kind} has waited may wait for a lock: the end of the holder is reported as ever`,
      needs('prompt ends'),
      watched(async (_, threads) => {
        const buffer = new SharedArrayBuffer(BYTES);
        const [waiter, doomed] = await startActors(threads, 2, buffer);
        await doomed.do(hold);
        const waiting = waiter.do(
          (here, kind, sources) => {
            const [block, waitInVain] = sources.map((source) => new Function(`'use strict'; return ${source};`)());
            const { subscribe } = here.require('node:diagnostics_channel');
            const told = [];
            subscribe('sablock:contended', () => waitInVain(here.sablock, here.buffer));
            subscribe('sablock:abandoned', ({ ownerThreadId }) => told.push(ownerThreadId));
            here.kept = block(new here.sablock[kind](here.buffer, 0), here.sablock);
            return told;
          },
          kind,
          [block, waitInVain].map(String),
        );
        await threads.queued(new sablock[kind](buffer, 0), 1);
        await doomed.terminate();
        assert.deepEqual(await waiting, [doomed.threadId]);
      }),
    );
  }
}

for (const verb of ['wait', 'waitAsync']) {
  test(
    `the end of a reader is published in the thread whose ${verb}() of a condition gets write back because of it`,
    needs('prompt ends'),
    watched(async (_, threads) => {
      const buffer = new SharedArrayBuffer(BYTES);
      const [rw, condition] = [new RwLock(buffer, 0, OPTIONS), new Condition(buffer, 8, OPTIONS)];
      const [waiter, doomed] = await startActors(threads, 2, buffer);
      const waiting = waiter.do(async (here, verb) => {
        const messages = [];
        here.require('node:diagnostics_channel').subscribe('sablock:abandoned', ({ ownerThreadId, mode }) => {
          messages.push([ownerThreadId, mode]);
        });
        const { write } = new here.sablock.RwLock(here.buffer, 0);
        write.lock();
        const isNotified = await new here.sablock.Condition(here.buffer, 8)[verb](write);
        write.unlock();
        return [isNotified, messages];
      }, verb);
      await threads.queued(condition, 1);
      await doomed.do((here) => new here.sablock.RwLock(here.buffer, 0).read.lock());
      condition.notifyOne();
      await threads.queued(rw, 1);
      await doomed.terminate();
      assert.deepEqual(await waiting, [true, [[doomed.threadId, 'shared']]]);
    }),
  );
}
