// Does what the test tells it to, step by step, on mutexes of one buffer. A step is `[verb, ...arguments]`, for the
// mutex at `OFFSET`, or `[byteOffset, verb, ...arguments]`. Guards and tokens stay here: each mutex remembers its last one.
// A lock of several is a mutex's offset, or `[byteOffset, 'read']` or `[byteOffset, 'write']` of an RwLock.

const { Condition, LockGuard, lockAll, lockAllAsync, Mutex, RwLock, stats } = require('../..');
const { data, doing, isRaised, raise, takeSteps, waitForFlag, waysToEnd } = require('../helpers/inside.js');
const { OFFSET } = require('../helpers/memory.js');
const { plain, subscribe } = require('../helpers/messages.js');

const mutexes = new Map();
const guards = new Map();
const rwlocks = new Map();
/** The locks that were locked together, by what names them. */
let several;
let severalGuard;
const warnings = [];
const heard = new Map();
process.on('warning', ({ code, message }) => warnings.push({ code, message }));

const mutexAt = (byteOffset) => {
  if (!mutexes.has(byteOffset)) mutexes.set(byteOffset, new Mutex(data.buffer, byteOffset));
  return mutexes.get(byteOffset);
};

const rwlockAt = (byteOffset) => {
  if (!rwlocks.has(byteOffset)) rwlocks.set(byteOffset, new RwLock(data.buffer, byteOffset));
  return rwlocks.get(byteOffset);
};

const locksAt = (places) => {
  several = new Map();
  for (const place of places) {
    several.set(typeof place === 'number' ? mutexAt(place) : rwlockAt(place[0])[place[1]], place);
  }
  return [...several.keys()];
};
const abandonedOf = (guard) => guard.abandoned.map((lock) => several.get(lock));

const actions = {
  get: (mutex, property) => mutex[property],
  timed(mutex, verb, ...args) {
    const startedAt = performance.now();
    const value = mutex[verb](...args);
    return { value, ms: performance.now() - startedAt };
  },
  async timedAsync(mutex, verb, ...args) {
    const startedAt = performance.now();
    const value = await mutex[verb](...args);
    return { value, ms: performance.now() - startedAt };
  },

  timedHold(mutex, timeout) {
    const result = actions.timed(mutex, 'lock', timeout);
    if (result.value) mutex.unlock();
    return result;
  },
  /** Unlocks what is held, once so much time has gone by. */
  holdFor(mutex, ms) {
    const until = performance.now() + ms;
    while (performance.now() < until);
    mutex.unlock();
  },
  holdAgainAndAgain(mutex, flag) {
    while (!isRaised(flag)) {
      mutex.lock();
      mutex.unlock();
    }
  },

  enter: (mutex) => new Promise((resolve) => mutex.enter(resolve)),
  leave: (mutex) => mutex.leave(guards.get(mutex)),
  guard: (mutex, property) => guards.get(mutex)[property],
  unlockGuard: (mutex) => guards.get(mutex).unlock(),
  holdInside: (mutex) => new Promise((resolve) => mutex.executeLocked(() => new Promise(() => resolve(true)))),
  /** Holds this one while it locks and unlocks another. */
  lockInside: (mutex, other) =>
    mutex.executeLockedSync(() => {
      mutexAt(other).lock();
      mutexAt(other).unlock();
    }),
  stayInsideSync: (mutex, flag) => mutex.executeLockedSync(() => waitForFlag(flag)),

  /** Several locks; returns which are abandoned. */
  lockAll(_, places, options) {
    severalGuard = lockAll(locksAt(places), options);
    return abandonedOf(severalGuard);
  },
  async lockAllAsync(_, places, options) {
    severalGuard = await lockAllAsync(locksAt(places), options);
    return abandonedOf(severalGuard);
  },
  /** A verb of an RwLock: `['rwlock', byteOffset, 'write', 'lock', ...arguments]`. */
  rwlock: (_, byteOffset, mode, verb, ...args) => rwlockAt(byteOffset)[mode][verb](...args),
  unlockAll: () => severalGuard.unlock(),

  /** Adds a number to a log in shared memory, whose first element counts the entries. */
  note(_, log, number) {
    log[Atomics.add(log, 0, 1) + 1] = number;
  },
  raise: (_, flag) => raise(flag),
  waitForFlag: (_, flag) => waitForFlag(flag),
  spinUntil(_, flag) {
    while (!isRaised(flag));
  },
  warnings: () => warnings,
  /** Collects what this thread publishes on the channel; with a flag, each message raises the next one. */
  listen(_, channel, flag) {
    const messages = [];
    heard.set(channel, messages);
    subscribe(channel, (message) => {
      messages.push(plain(message));
      if (flag !== undefined) raise(flag + messages.length - 1);
    });
  },
  heard: (_, channel) => heard.get(channel),
  stats: () => stats(),
  waitFor: (mutex, byteOffset) => new Condition(data.buffer, byteOffset).wait(mutex),
  waitForAsync: (mutex, byteOffset) => new Condition(data.buffer, byteOffset).waitAsync(mutex),
  notifyAll: (_, byteOffset) => new Condition(data.buffer, byteOffset).notifyAll(),

  ...waysToEnd,
};

const take = async (step) => {
  const [byteOffset, verb, ...args] = typeof step[0] === 'number' ? step : [OFFSET, ...step];
  const mutex = mutexAt(byteOffset);
  doing(
    `${verb}(${args.map((arg) => (typeof arg === 'object' ? JSON.stringify(arg) : String(arg))).join(', ')}) at ${byteOffset}`,
  );
  const result = actions[verb] ? actions[verb](mutex, ...args) : mutex[verb](...args);
  const value = typeof result?.then === 'function' ? await result : result;
  doing(`idle after ${verb} at ${byteOffset}`);
  if (!(value instanceof LockGuard)) return value;
  guards.set(mutex, value);
  return 'a guard';
};

takeSteps(take);
