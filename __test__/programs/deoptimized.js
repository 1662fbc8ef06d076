// As stack-ends.js, for verbs that run a function and that V8 deoptimizes meanwhile, since it is another function than before: code that
// is not optimized needs more stack than there may be. Needs --allow-natives-syntax.

const { Mutex, Once, RwLock, Semaphore } = require('../..');
const { atDepth } = require('../helpers/stack.js');

const DEPTHS = 15;
const PADDINGS = 40;
const buffer = new SharedArrayBuffer(4 * 5);
const words = new Int32Array(buffer);
const options = { allowMainThread: true };
const first = () => 1;
const other = (value) => value;

const mutex = new Mutex(buffer, 0, options);
const rwlock = new RwLock(buffer, 4, options);
const semaphore = new Semaphore(buffer, 12, 1, options);
const once = new Once(buffer, 16, options);
const { executeLockedSync } = Object.getPrototypeOf(Mutex.prototype);

/** A function of V8's own: as text, since it is no JavaScript. */
const native = (name) => new Function('method', `%${name}(method)`);
const deoptimize = native('DeoptimizeFunction');
const forget = native('ClearFunctionFeedback');
const prepare = native('PrepareFunctionForOptimization');
const optimizeNext = native('OptimizeFunctionOnNextCall');

/** The verbs that V8 optimizes, the call, and whether anything is held. */
const verbs = {
  mutex: [executeLockedSync, (fn) => mutex.executeLockedSync(fn), () => mutex.isLocked],
  write: [executeLockedSync, (fn) => rwlock.write.executeLockedSync(fn), () => rwlock.isWriteLocked],
  read: [rwlock.read.executeLockedSync, (fn) => rwlock.read.executeLockedSync(fn), () => rwlock.readers > 0],
  executeSync: [semaphore.executeSync, (fn) => semaphore.executeSync(fn), () => semaphore.available < 1],
  runSync: [once.runSync, (fn) => once.runSync(fn), () => words[4] !== 0],
};

const results = {};
for (const [verb, [method, call, isHeld]] of Object.entries(verbs)) {
  const act = () => call(other);
  // Functions that were never called need far more stack, to be compiled.
  for (let count = 0; count < 20; count++) act();
  words[4] = 0;
  const warm = () => {
    deoptimize(method);
    forget(method);
    prepare(method);
    for (let count = 0; count < 10; count++) {
      words[4] = 0;
      call(first);
    }
    optimizeNext(method);
    words[4] = 0;
    call(first);
    words[4] = 0;
  };
  const result = { called: 0, failed: 0, leaked: 0 };
  for (let count = 0; count < PADDINGS * DEPTHS; count++) {
    warm();
    const isDone = atDepth(act, count % DEPTHS, Math.floor(count / DEPTHS)) !== undefined;
    if (isDone) words[4] = 0;
    result.called += 1;
    if (!isDone) result.failed += 1;
    if (isHeld()) result.leaked += 1;
    words.fill(0);
  }
  results[verb] = result;
}
console.log(JSON.stringify(results));
