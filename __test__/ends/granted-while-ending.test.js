// A thread is blocked, its end begins, and only then another thread lets it in: its code will never have what it was granted.
// That passes on, unmarked.

const assert = require('node:assert/strict');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { after, test } = require('node:test');
const { setImmediate: nextTurn } = require('node:timers/promises');
const sablock = require('../..');
const { startActors } = require('../helpers/actors.js');
const { needs } = require('../helpers/runtime.js');
const { watched } = require('../helpers/threads.js');

const { AutoResetEvent, Barrier, Condition, Exchanger, Latch, LockManager, LockTable, ManualResetEvent } = sablock;
const { Mutex, Once, RwLock, Semaphore, inspectAll } = sablock;

const OFFSET = 16;

const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'sablock-'));
after(() => fs.rmSync(directory, { recursive: true, force: true }));

// The main thread's side of a wait: `begin` keeps the worker waiting, `give` lets it in, and `check` finds that nothing is lost
// and nothing marked. Each round has an object of its own.

/** Tests a lock that a primitive is, or has. */
class Exclusive {
  constructor(primitive, lock = primitive) {
    Object.assign(this, { primitive, lock });
  }

  begin() {
    assert.equal(this.lock.tryLock(), true);
  }

  give() {
    this.lock.unlock();
  }

  async check() {
    const guard = await this.lock.acquireAsync();
    assert.equal(guard.abandoned, false, 'marked, though its code never ran with it');
    guard.unlock();
  }
}

class Permits {
  constructor(options) {
    this.primitive = new Semaphore(new SharedArrayBuffer(64), OFFSET, 3, options);
  }

  begin() {
    this.permits = this.primitive.tryAcquire(3);
  }

  give() {
    this.permits.release();
  }

  check() {
    assert.equal(this.primitive.available, 3);
    assert.deepEqual(this.primitive.inspect().holders, []);
  }
}

class Event {
  constructor(primitive) {
    this.primitive = primitive;
  }

  begin() {}

  give() {
    this.primitive.set();
  }

  async check() {
    assert.equal(this.primitive.isSet, true, 'the wake-up is lost');
    assert.equal(await this.primitive.waitAsync(10_000), true);
  }
}

class Opening {
  primitive = new Latch(new SharedArrayBuffer(64), OFFSET);

  begin() {
    this.primitive.add();
  }

  give() {
    this.primitive.countDown();
  }

  check() {
    assert.equal(this.primitive.count, 0);
  }
}

class Meeting {
  primitive = new Barrier(new SharedArrayBuffer(64), OFFSET, 2);

  begin() {}

  give() {
    // The end of a party that was noticed before the other came has broken it.
    this.outcome = this.primitive.waitAsync().catch(({ code }) => code);
  }

  async check() {
    const outcome = await this.outcome;
    assert.ok(outcome === 0 || outcome === 'ERR_LOCK_BROKEN', `${outcome}`);
    assert.equal(this.primitive.waiting, 0);
    this.hasMet = outcome === 0;
  }
}

/** Tests an exchanger, where the worker brings 5. */
class Exchange {
  primitive = new Exchanger(new SharedArrayBuffer(64), OFFSET);

  begin() {}

  give() {
    this.outcome = this.primitive.exchangeAsync(6);
    this.hasMet = this.primitive.inspect().waiters.length === 0;
  }

  async check() {
    // It may have left with its value before the other came, which waits on then.
    if (!this.hasMet) assert.equal(await this.primitive.exchangeAsync(5), 6);
    assert.equal(await this.outcome, 5);
    assert.deepEqual(this.primitive.inspect().waiters, []);
  }
}

class Running {
  primitive = new Once(new SharedArrayBuffer(64), OFFSET);

  begin() {
    const fails = new Promise((_, reject) => {
      this.fail = () => reject(new Error('The next one runs.'));
    });
    this.running = this.primitive.run(() => fails);
    this.running.catch(() => {});
  }

  async give() {
    this.fail();
    await this.running.catch(() => {});
  }

  async check() {
    let seen;
    const note = (found) => {
      seen = found;
    };
    assert.equal(await this.primitive.run(note), true);
    assert.deepEqual(seen, { abandoned: false }, 'marked, though its code never ran');
  }
}

/** Tests a place: what was notified there once goes to the next in line. */
class Notified {
  words = new Int32Array(new SharedArrayBuffer(64), OFFSET, 1);
  primitive = { buffer: this.words.buffer };

  begin() {}

  give() {
    this.next = sablock.waitAsync(this.words, 0, 0, 10_000).value;
    assert.equal(sablock.notify(this.words, 0, 1), 1);
  }

  async check() {
    assert.equal(await this.next, 'ok', 'the notification is lost');
  }
}

/** Tests a condition; the worker waits for the notification, or has it and waits for the mutex. */
class Conditional extends Exclusive {
  #condition;
  #waitsForMutex;

  constructor(waitsForMutex) {
    super(new Mutex(new SharedArrayBuffer(64), OFFSET));
    this.#condition = new Condition(this.lock.buffer, 32);
    this.#waitsForMutex = waitsForMutex;
  }

  begin() {}

  async queued(isQueued) {
    await isQueued('Condition');
    await this.lock.lockAsync();
    this.next = this.#condition.waitAsync(this.lock, 10_000);
    if (!this.#waitsForMutex) return;
    await this.lock.lockAsync();
    this.#condition.notify();
    await isQueued('Mutex');
  }

  give() {
    if (this.#waitsForMutex) this.lock.unlock();
    else this.#condition.notify();
  }

  async check() {
    assert.equal(await this.next, true, 'the notification is lost');
    this.lock.unlock();
    await super.check();
  }
}

/** Tests a name. */
class Named {
  #manager;
  #name = `while ending ${Math.random()}`;

  constructor(options) {
    this.#manager = new LockManager(options);
    this.primitive = { buffer: new SharedArrayBuffer(64) };
    this.args = [this.#name, options ?? {}];
  }

  async begin() {
    this.held = await this.#manager.acquireAsync(this.#name);
  }

  async queued(_, threadId, isOver) {
    const isHere = ({ name, clientId }) => name === this.#name && clientId.endsWith(`-${threadId}`);
    while (!(await this.#manager.query()).pending.some(isHere) && !isOver()) await nextTurn();
  }

  give() {
    this.held.unlock();
  }

  async check() {
    const lock = await this.#manager.acquireAsync(this.#name);
    assert.equal(lock.abandoned, false, 'marked, though its code never ran with it');
    lock.unlock();
  }
}

const inBuffer = (Type, ...rest) => new Type(new SharedArrayBuffer(64), OFFSET, ...rest);
const mutex = () => new Exclusive(inBuffer(Mutex));
const rwlock = () => {
  const rw = inBuffer(RwLock);
  return new Exclusive(rw, rw.write);
};
const table = () => {
  const locks = inBuffer(LockTable, 4);
  return new Exclusive(locks, locks.at(2));
};
const permits = () => new Permits();
const FAIR = { fair: true };
const fairPermits = () => new Permits(FAIR);
const named = () => new Named();

/** By name: the main thread's side, and what the worker does. */
const VERBS = {
  'lock()': [mutex, (of) => of(0, 'Mutex').lock()],
  'lock(time)': [mutex, (of) => of(0, 'Mutex').lock(60_000)],
  'acquire()': [mutex, (of) => of(0, 'Mutex').acquire()],
  'executeLockedSync()': [mutex, (of, raise) => of(0, 'Mutex').executeLockedSync(raise)],
  'read.lock()': [rwlock, (of) => of(0, 'RwLock').read.lock()],
  'read.acquire()': [rwlock, (of) => of(0, 'RwLock').read.acquire()],
  'read.executeLockedSync()': [rwlock, (of, raise) => of(0, 'RwLock').read.executeLockedSync(raise)],
  'write.lock()': [rwlock, (of) => of(0, 'RwLock').write.lock()],
  'write.acquire()': [rwlock, (of) => of(0, 'RwLock').write.acquire()],
  'write.executeLockedSync()': [rwlock, (of, raise) => of(0, 'RwLock').write.executeLockedSync(raise)],
  'table.lock()': [table, (of) => of(0, 'LockTable', 4).lock(2)],
  'table.acquire()': [table, (of) => of(0, 'LockTable', 4).acquire(2)],
  'table.executeLockedSync()': [table, (of, raise) => of(0, 'LockTable', 4).executeLockedSync(2, raise)],
  'table.lockAll()': [table, (of) => of(0, 'LockTable', 4).lockAll([0, 2, 3])],
  'lockAll() of a mutex': [mutex, (of, _, { lockAll }) => lockAll([of(0, 'Mutex')])],
  'lockAll() to read': [rwlock, (of, _, { lockAll }) => lockAll([of(0, 'RwLock').read])],
  'lockAll() to write': [rwlock, (of, _, { lockAll }) => lockAll([of(0, 'RwLock').write])],
  'semaphore.acquire()': [permits, (of) => of(0, 'Semaphore', 3).acquire()],
  'semaphore.acquire() of a fair one': [fairPermits, (of) => of(0, 'Semaphore', 3, { fair: true }).acquire()],
  'semaphore.acquire(3)': [permits, (of) => of(0, 'Semaphore', 3).acquire(3)],
  'semaphore.executeSync()': [permits, (of, raise) => of(0, 'Semaphore', 3).executeSync(raise, { permits: 2 })],
  'latch.wait()': [() => new Opening(), (of) => of(0, 'Latch').wait()],
  'barrier.wait()': [() => new Meeting(), (of) => of(0, 'Barrier', 2).wait()],
  'exchanger.exchange()': [() => new Exchange(), (of) => of(0, 'Exchanger').exchange(5)],
  'ManualResetEvent.wait()': [() => new Event(inBuffer(ManualResetEvent)), (of) => of(0, 'ManualResetEvent').wait()],
  'AutoResetEvent.wait()': [() => new Event(inBuffer(AutoResetEvent)), (of) => of(0, 'AutoResetEvent').wait()],
  'once.runSync()': [() => new Running(), (of, raise) => of(0, 'Once').runSync(raise)],
  'wait()': [() => new Notified(), (of, _, { wait }) => wait(new Int32Array(of(), 16, 1), 0, 0)],
  'condition.wait()': [
    () => new Conditional(false),
    (of) => {
      of(0, 'Mutex').lock();
      of(16, 'Condition').wait(of(0, 'Mutex'));
    },
  ],
  'condition.wait(), notified,': [
    () => new Conditional(true),
    (of) => {
      of(0, 'Mutex').lock();
      of(16, 'Condition').wait(of(0, 'Mutex'));
    },
  ],
  'locks.acquire()': [named, (_of, _raise, _sablock, name, manager) => manager.acquire(name)],
  'locks.requestSync()': [named, (_of, raise, _sablock, name, manager) => manager.requestSync(name, raise)],
  'acquire() of a directory': [
    () => new Named({ directory }),
    (_of, _raise, _sablock, name, manager) => manager.acquire(name),
  ],
};

// The flags that a worker raises.
const RETURNED = 0;
const THREW = 1;
const ENDING = 2;
const THREW_ANOTHER = 3;

/** In the worker. Raises flags by what comes of the verb, since no message may leave the thread any more. */
function call(here, source, args, ending) {
  const { sablock, raise } = here;
  const of = (offset, type, ...rest) =>
    type === undefined ? here.buffer : new sablock[type](here.buffer, 16 + offset, ...rest);
  // A directory is opened before the end begins.
  const [name, options] = args;
  const manager = name === undefined ? undefined : new sablock.LockManager(options);
  const step = () => {
    try {
      new Function(`'use strict'; return ${source};`)()(of, () => raise(0), sablock, name, manager);
      raise(0);
    } catch ({ code }) {
      raise(code === 'ERR_LOCK_THREAD_ENDING' ? 1 : 3);
    }
  };
  if (ending === 'an uncaught error') {
    // Node.js runs the microtasks behind it all the same.
    queueMicrotask(() => {
      throw new Error('Thrown on purpose');
    });
    queueMicrotask(step);
    return;
  }
  if (ending === 'process.exit()') {
    // A subscriber runs between two slices of the wait, since a promise of this thread waits for a lock that is held long.
    const held = new sablock.Mutex(new SharedArrayBuffer(4));
    here.require('node:diagnostics_channel').subscribe('sablock:long-hold', () => {
      raise(2);
      process.exit();
    });
    held.tryLock();
    held.lockAsync();
  }
  step();
}

/** The beginnings of the end of a worker that is blocked, from the main thread if it is there that it begins. */
const ENDS = {
  'terminate()': (worker) => worker.terminate(),
  'process.exit()': (_, threads) => threads.raised(ENDING),
  'an uncaught error': () => {},
};

/** Lets a worker in that waits, once it ends; returns the main thread's side. */
async function letIn(threads, [start, step], ending) {
  const side = start();
  const [worker] = await startActors(threads, 1, side.primitive.buffer);
  worker.isToFail = ending === 'an uncaught error';
  await side.begin();
  worker.do(call, String(step), side.args ?? [], ending);
  const isHere = (kind) =>
    inspectAll().some(
      (seen) =>
        (kind === undefined || seen.kind === kind) && seen.waiters.some(({ threadId }) => threadId === worker.threadId),
    );
  // A thread that runs on behind an uncaught error waits for no longer than a slice; one that calls `process.exit()`, not long.
  const isOver = () => [THREW, ENDING, THREW_ANOTHER].some((flag) => threads.flags[flag] === 1);
  const isQueued = (kind) => threads.until(`it waits ${kind ?? ''}`, () => isHere(kind) || isOver());
  await (side.queued?.(isQueued, worker.threadId, isOver) ?? isQueued());
  // The end by terminate() has begun when it returns: nobody awaits that it is over.
  const begun = ENDS[ending](worker, threads);
  if (ending !== 'terminate()') await begun;
  const given = side.give();
  await worker.exited;
  await given;
  assert.equal(threads.flags[RETURNED], 0, 'its code went on');
  assert.equal(threads.flags[THREW_ANOTHER], 0);
  if (worker.isToFail) assert.equal(threads.flags[THREW], 1);
  await side.check();
  return side;
}

for (const ending of Object.keys(ENDS)) {
  for (const [name, verb] of Object.entries(VERBS)) {
    test(
      `${name} in a thread that ${ending} ends, and only then lets it in: what it was granted passes on unmarked`,
      needs(
        'termination when busy',
        'ends in subscribers',
        ...(ending === 'an uncaught error' ? ['code after the end'] : []),
      ),
      watched((_, threads) => letIn(threads, verb, ending)),
    );
  }
}

for (const name of ['barrier.wait()', 'exchanger.exchange()']) {
  test(
    `${name} throws in a thread that an uncaught error ends, though the other that has met it there goes on`,
    needs('code after the end'),
    watched(async (_, threads) => {
      let side;
      // It may leave before the other comes.
      do {
        threads.flags[THREW] = 0;
        side = await letIn(threads, VERBS[name], 'an uncaught error');
      } while (!side.hasMet);
    }),
  );
}
