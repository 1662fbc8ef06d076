// Does what the test tells it to, step by step, with an object of the class `type`. A step is `[verb, ...arguments]`.
// Entries of a latch stay here: the last one is remembered.

const sablock = require('../..');
const { data, doing, isRaised, raise, takeSteps, waitForFlag, waysToEnd } = require('../helpers/inside.js');
const { plain, subscribe } = require('../helpers/messages.js');

const { type, buffer, byteOffset, args = [] } = data;
const object = new sablock[type](buffer, byteOffset, ...args);
const warnings = [];
const heard = [];
const held = [];
let entry;
process.on('warning', ({ code }) => warnings.push(code));

/** The functions that a test has `run` and `runSync` call: it is told by which flags. */
const functions = {
  succeed: (notes) => notes,
  fail() {
    throw new Error('Failed on purpose');
  },
  answerPromise: () => Promise.resolve(),
  /** Says that it runs, and goes on when it is told to. */
  blockUntil(_, running, go) {
    raise(running);
    waitForFlag(go);
  },
  /** Says that it runs, and goes on for ever, with nothing that keeps its thread alive. */
  hang(_, running) {
    raise(running);
    return new Promise(() => {});
  },
  async awaitUntil(_, running, go) {
    raise(running);
    while (!isRaised(go)) await new Promise((resolve) => setTimeout(resolve, 1));
  },
};

const actions = {
  get: (property) => object[property],
  /** Calls `read.acquire`, or whatever is at such a path, and keeps what comes of it. */
  async hold(path, ...rest) {
    const names = path.split('.');
    const verb = names.pop();
    const of = names.reduce((value, name) => value[name], object);
    held.push(await of[verb](...rest));
  },
  /** Begins what is not awaited. */
  begin(verb, ...rest) {
    (actions[verb] ?? object[verb]).call(object, ...rest).catch(() => {});
  },
  callNothing: () => object.run(() => {}),
  timed(verb, ...rest) {
    const startedAt = performance.now();
    const value = object[verb](...rest);
    return { value, ms: performance.now() - startedAt };
  },
  enter() {
    entry = object.enter();
  },
  leave: () => entry.leave(),
  /** Counts up and down in every way. */
  churn(rounds) {
    for (let round = 0; round < rounds; round++) {
      const other = object.enter();
      object.add(2);
      object.countDown();
      other.leave();
      object.countDown();
    }
  },
  /** Calls `run` or `runSync` with one of the functions; returns what came of it, and what the function was given. */
  async callOnce(verb, name, options, ...rest) {
    let told = null;
    const fn = (notes) => {
      told = notes;
      return functions[name](notes, ...rest);
    };
    try {
      return { value: await object[verb](fn, options), told };
    } catch ({ code, message }) {
      return { error: code ?? message, told };
    }
  },
  /** Runs while it holds a mutex; says so, and then waits for the mutex of another. */
  lockInside(mutexOffset, running, go) {
    object.runSync(() => {
      raise(running);
      waitForFlag(go);
      const mutex = new sablock.Mutex(buffer, mutexOffset);
      mutex.lock();
      mutex.unlock();
    });
  },
  /** The other way round. */
  runInside(mutexOffset, locked) {
    const mutex = new sablock.Mutex(buffer, mutexOffset);
    mutex.lock();
    raise(locked);
    try {
      return object.runSync(() => {});
    } finally {
      mutex.unlock();
    }
  },
  spinUntil(flag) {
    while (!isRaised(flag));
  },
  waitForFlag,
  raise,
  warnings: () => warnings,
  listen: (channel) => subscribe(channel, (message) => heard.push(plain(message))),
  heard: () => heard,
  ...waysToEnd,
};

const take = async ([verb, ...rest]) => {
  doing(`${verb}(${rest.map(String).join(', ')})`);
  const value = await (actions[verb] ? actions[verb](...rest) : object[verb](...rest));
  doing(`idle after ${verb}`);
  return value;
};

takeSteps(take);
