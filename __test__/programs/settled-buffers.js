// Ends waits in every way in which they can end, each on buffers of its own. Prints how many of the buffers stay in memory
// afterwards, though nothing refers to them.

const { setImmediate: nextTurn } = require('node:timers/promises');
const { Condition, lockAllAsync, Mutex, notify, RwLock, Semaphore, waitAsync } = require('../..');

const EACH = 10;
const buffers = [];

/** Three mutexes, each in a buffer of its own, in the order in which they are taken together. */
const mutexes = () =>
  Array.from({ length: 3 }, () => {
    const buffer = new SharedArrayBuffer(64);
    buffers.push(new WeakRef(buffer));
    return new Mutex(buffer);
  });

const words = () => {
  const buffer = new SharedArrayBuffer(64);
  buffers.push(new WeakRef(buffer));
  return new Int32Array(buffer);
};

/**
 * A wait of one kind: begins it, lets it in, and frees what it got, where the register of holds would keep the memory for it.
 */
const waits = {
  lock: () => {
    const [mutex] = mutexes();
    mutex.tryLock();
    return { begin: (options) => mutex.lockAsync(options), letIn: () => mutex.unlock() };
  },
  read: () => {
    const rw = new RwLock(words().buffer);
    rw.write.tryLock();
    const free = (isHeld) => isHeld && rw.read.unlock();
    return { begin: (options) => rw.read.lockAsync(options), letIn: () => rw.write.unlock(), free };
  },
  permit: () => {
    const semaphore = new Semaphore(words().buffer, 0, 1);
    const held = semaphore.tryAcquire();
    const free = (permits) => {
      permits?.release();
      held.release();
    };
    return { begin: (options) => semaphore.acquireAsync(1, options), letIn: () => held.release(), free };
  },
  notification: () => {
    const array = words();
    return {
      begin: ({ timeout, ...options } = {}) => waitAsync(array, 0, 0, timeout, options).value,
      letIn: () => notify(array, 0),
    };
  },
  condition: () => {
    const [mutex] = mutexes();
    const condition = new Condition(words().buffer);
    mutex.tryLock();
    return { begin: (options) => condition.waitAsync(mutex, options), letIn: () => condition.notifyAll() };
  },
  'all locks, one of which is held': () => {
    const list = mutexes();
    list[1].tryLock();
    return { begin: (options) => lockAllAsync(list, options), letIn: () => list[1].unlock() };
  },
  'all locks, two of which are held': () => {
    const list = mutexes();
    list[0].tryLock();
    list[2].tryLock();
    const letIn = () => {
      list[0].unlock();
      setImmediate(() => setImmediate(() => list[2].unlock()));
    };
    return { begin: (options) => lockAllAsync(list, options), letIn };
  },
};

/** The ends of a wait. Each returns the wait. */
const ends = {
  granted: async ({ begin, letIn }) => {
    const pending = begin();
    await nextTurn();
    letIn();
    return pending;
  },
  'out of time': ({ begin }) => begin({ timeout: 1 }),
  aborted: async ({ begin }) => {
    const controller = new AbortController();
    const pending = begin({ signal: controller.signal });
    await nextTurn();
    controller.abort();
    return pending;
  },
  'aborted at its grant': async ({ begin, letIn }) => {
    const controller = new AbortController();
    const pending = begin({ signal: controller.signal });
    await nextTurn();
    letIn();
    controller.abort();
    return pending;
  },
  'not begun': ({ begin, letIn }) => {
    letIn();
    return begin({ timeout: 0 });
  },
};

const isInVain = (error) => ['AbortError', 'TimeoutError'].includes(error.name);

/** A wait from its beginning to its end; what is not local to this stays in memory. */
const go = async (create, end) => {
  const wait = create();
  try {
    const got = await end(wait);
    wait.free?.(got);
  } catch (error) {
    if (!isInVain(error)) throw error;
    wait.free?.();
  }
};

const left = async () => {
  const count = () => buffers.filter((buffer) => buffer.deref() !== undefined).length;
  for (let round = 0; round < 100 && count() > 0; round++) {
    // A buffer that deref() has returned lives until the end of the turn.
    await nextTurn();
    globalThis.gc();
    await nextTurn();
  }
  return count();
};

const main = async () => {
  const result = {};
  for (const [kind, create] of Object.entries(waits)) {
    for (const [end, act] of Object.entries(ends)) {
      for (let count = 0; count < EACH; count++) await go(create, act);
      result[`${kind}, ${end}`] = await left();
      buffers.length = 0;
    }
  }
  console.log(JSON.stringify(result));
};

main();
