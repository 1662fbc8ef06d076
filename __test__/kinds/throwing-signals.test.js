// Signals that are users' own, and throw: in each place, with each verb. The request settles, nothing stays held, and nobody listens
// any more.

const assert = require('node:assert/strict');
const { getEventListeners } = require('node:events');
const { test } = require('node:test');
const { Barrier, Condition, Exchanger, LockManager, Mutex, RwLock, Semaphore, lockAllAsync, locks } = require('../..');
const { binding } = require('../../lib/engine/thread.js');
const { backendFor } = require('../../lib/named/machine.js');
const { processBackend } = require('../../lib/named/backend.js');
const { toOptions } = require('../../lib/named/options.js');
const { obtain } = require('../../lib/named/requests.js');
const { createFolder } = require('../helpers/folder.js');
const { turns } = require('../helpers/names.js');
const { needs } = require('../helpers/runtime.js');
const { watched } = require('../helpers/threads.js');
const { noting, onlyThrown, untilFree } = require('../helpers/uncaught.js');

const THROWN = 'thrown by the signal';
const PLACES = ['addEventListener', 'behind addEventListener', 'removeEventListener', 'reason'];
/** More reads of `aborted` than any verb has. */
const MOST_READS = 20;

/** Throws in one place; in `aborted`, at the read of that number. */
class ThrowingSignal extends EventTarget {
  hasThrown = false;
  #place;
  #reads = 0;
  #isAborted = false;

  constructor(place) {
    super();
    this.#place = place;
  }

  #at(place) {
    if (place !== this.#place) return;
    this.hasThrown = true;
    throw new Error(THROWN);
  }

  get aborted() {
    this.#reads += 1;
    this.#at(this.#reads);
    return this.#isAborted;
  }

  get reason() {
    this.#at('reason');
    return undefined;
  }

  addEventListener(...args) {
    this.#at('addEventListener');
    super.addEventListener(...args);
    this.#at('behind addEventListener');
  }

  removeEventListener(...args) {
    this.#at('removeEventListener');
    super.removeEventListener(...args);
  }

  abort() {
    this.#isAborted = true;
    this.dispatchEvent(new Event('abort'));
  }
}

const memory = () => new SharedArrayBuffer(64);
const listeners = (signal) => getEventListeners(signal, 'abort').length;
const toFree = (held) => held && (() => (held.unlock ?? held.release).call(held));

// A verb: `take()` returns a function that frees, or null; `call(options)` a promise of one; `inside(options)` one of a function that
// has run, perhaps. `release(free)` lets a call come that has waited for what was taken.

const ofMutex = () => {
  const mutex = new Mutex(memory());
  const free = () => mutex.unlock();
  return { mutex, free, take: () => (mutex.tryLock() ? free : null) };
};

const ofName = (manager, name, call) => ({
  take: async () => toFree(await manager.acquireAsync(name, { ifAvailable: true })),
  call,
});

let names = 0;
const newName = () => {
  names += 1;
  return `throwing signal ${names}`;
};
const inside = (promise) => promise.then(() => () => {});

/** The verbs of the names of a manager, and `hold`, if another holds outside of this process. */
const namesOf = (manager, hold = (name) => ofName(manager, name).take()) => ({
  'locks.request': () => {
    const name = newName();
    return {
      hold: () => hold(name),
      ...ofName(manager, name, (options) => inside(manager.request(name, options, () => 1))),
    };
  },
  'locks.acquireAsync': () => {
    const name = newName();
    return {
      hold: () => hold(name),
      ...ofName(manager, name, (options) => manager.acquireAsync(name, options).then(toFree)),
    };
  },
  'locks.acquireAsync of several': () => {
    const name = newName();
    const all = [`${name} before`, name, `${name} behind`];
    return {
      hold: () => hold(name),
      ...ofName(manager, all, (options) => manager.acquireAsync(all, options).then(toFree)),
    };
  },
});

/** A request to a manager that can be closed, which it listens for too. */
function ofClosing() {
  const closing = new AbortController();
  const backend = { ...processBackend, space: binding.nameSpace('listens for its close'), closing };
  const name = newName();
  const acquire = async (options) =>
    toFree(await obtain(backend, name, toOptions(name, options), (lock) => lock, 'acquireAsync'));
  return { closing, take: () => acquire({ ifAvailable: true }), call: acquire };
}

const VERBS = {
  lockAsync: () => {
    const { mutex, free, take } = ofMutex();
    return { take, call: (options) => mutex.lockAsync(options).then(() => free) };
  },
  acquireAsync: () => {
    const { mutex, take } = ofMutex();
    return { take, call: (options) => mutex.acquireAsync(options).then(toFree) };
  },
  executeLocked: () => {
    const { mutex, take } = ofMutex();
    return { take, call: (options) => inside(mutex.executeLocked(() => 1, options)) };
  },
  'read.acquireAsync': () => {
    const { read, write } = new RwLock(memory());
    return { take: () => toFree(write.tryAcquire()), call: (options) => read.acquireAsync(options).then(toFree) };
  },
  'semaphore.acquireAsync': () => {
    const semaphore = new Semaphore(memory(), 0, 3);
    return {
      take: () => toFree(semaphore.tryAcquire(3)),
      call: (options) => semaphore.acquireAsync(3, options).then(toFree),
    };
  },
  lockAllAsync: () => {
    const { mutex, take } = ofMutex();
    const all = [new Mutex(memory()), mutex, new Mutex(memory())];
    return {
      hold: take,
      take: () => {
        if (!all.every((each) => each.tryLock())) return null;
        return () => {
          for (const each of all) each.unlock();
        };
      },
      call: (options) => lockAllAsync(all, options).then(toFree),
    };
  },
  'condition.waitAsync': () => {
    const { mutex, free, take } = ofMutex();
    const condition = new Condition(memory());
    return {
      take,
      hold: () => () => condition.notifyAll(),
      onlyHeld: true,
      call(options) {
        mutex.tryLock();
        return condition.waitAsync(mutex, options).then(
          () => free,
          (error) => {
            free();
            throw error;
          },
        );
      },
    };
  },
  ...namesOf(locks),
  'acquireAsync of a manager that can be closed': ofClosing,
};

/** Calls the verb with a signal that throws there; returns whether it has thrown. */
async function check(threads, title, make, place, isHeld) {
  const signal = new ThrowingSignal(place);
  const it = make();
  await noting(async (uncaught) => {
    const release = isHeld ? await (it.hold ?? it.take)() : null;
    let outcome;
    it.call({ signal }).then(
      (free) => {
        outcome = { free };
      },
      (error) => {
        outcome = { error };
      },
    );
    await turns();
    if (place === 'reason') signal.abort();
    else release?.();
    await threads.until(`${title} settles`, () => outcome !== undefined);
    if (place === 'reason' && !it.onlyHeld) release?.();
    outcome.free?.();
    if (signal.hasThrown && outcome.error?.message !== THROWN) {
      await threads.until(`the error of ${title} is uncaught`, () => uncaught.length > 0);
    }
    await turns();
    assert.ok(outcome.error === undefined || outcome.error.message === THROWN, `${title}: ${outcome.error?.stack}`);
    onlyThrown(uncaught, THROWN, title);
    await untilFree(threads, title, it.take);
  });
  // It did not let anybody go.
  if (place !== 'removeEventListener') assert.equal(listeners(signal), 0, title);
  if (it.closing !== undefined) assert.equal(listeners(it.closing.signal), 0, `${title}, of the manager`);
  return signal.hasThrown;
}

async function checkAll(threads, verbs) {
  let thrown = 0;
  for (const [verb, make] of Object.entries(verbs)) {
    for (const isHeld of make().onlyHeld ? [true] : [true, false]) {
      const title = (place) => `${verb}, ${isHeld ? 'held' : 'free'}, ${place}`;
      for (const place of PLACES) {
        if (place === 'reason' && !isHeld) continue;
        if (await check(threads, title(place), make, place, isHeld)) thrown += 1;
      }
      for (let read = 1; read < MOST_READS; read += 1) {
        if (!(await check(threads, title(`read ${read} of aborted`), make, read, isHeld))) break;
        thrown += 1;
      }
    }
  }
  return thrown;
}

test(
  'a signal that throws: the request settles, and nothing stays held',
  needs('uncaught subscribers'),
  watched(async (_, threads) => {
    assert.ok((await checkAll(threads, VERBS)) > 5 * Object.keys(VERBS).length);
  }),
);

test(
  'a signal that throws while a file is waited for: the request settles, and nothing stays held',
  needs('uncaught subscribers'),
  watched(async (t, threads) => {
    const directory = createFolder(t);
    const manager = new LockManager({ directory });
    const { outer } = backendFor(directory);
    // As another process: the name is free in this one.
    const hold = (name) => toFree(outer.tryLock(name, toOptions(name, {})));
    const verbs = namesOf(manager, hold);
    assert.ok((await checkAll(threads, verbs)) > 5 * Object.keys(verbs).length);
  }),
);

test(
  'a signal that throws when the last has come: it gets what the others let it have, since that cannot be taken back',
  needs('uncaught subscribers'),
  watched(async (_, threads) => {
    await noting(async (uncaught) => {
      const signal = () => new ThrowingSignal('removeEventListener');
      const exchanger = new Exchanger(memory());
      const met = [exchanger.exchangeAsync(1), exchanger.exchangeAsync(2, { signal: signal() })];
      assert.deepEqual(await Promise.all(met), [2, 1]);
      const barrier = new Barrier(memory(), 0, 2);
      const come = [barrier.waitAsync(), barrier.waitAsync({ signal: signal() })];
      assert.deepEqual(await Promise.all(come), [1, 0]);
      await threads.until('both errors are uncaught', () => uncaught.length === 2);
      assert.deepEqual(uncaught, [THROWN, THROWN]);
    });
  }),
);

test(
  'a manager that closes: one signal that throws keeps no other request from its end',
  needs('uncaught subscribers'),
  watched(async (_, threads) => {
    const closing = new AbortController();
    const backend = { ...processBackend, space: binding.nameSpace('closing'), closing };
    const ask = (options) => obtain(backend, 'x', toOptions('x', options), (lock) => lock, 'acquireAsync');
    const held = await ask({});
    await noting(async (uncaught) => {
      const [first, second] = ['removeEventListener', 'none'].map((place) =>
        ask({ signal: new ThrowingSignal(place) }),
      );
      closing.abort(new Error('closed'));
      await assert.rejects(first, { message: 'closed' });
      await assert.rejects(second, { message: 'closed' });
      await threads.until('the error is uncaught', () => uncaught.length > 0);
      assert.deepEqual(uncaught, [THROWN]);
    });
    held.unlock();
  }),
);
