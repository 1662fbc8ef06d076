// Calls the verb, the argument, at each of the last depths before the stack overflows, and prints at how many of them it failed, and at
// how many of those it left the mutex held: for a mutex that is free; for one inside which a thread has ended each time; and for such
// a one that repairs that, by `onAbandoned`.

const { Worker } = require('node:worker_threads');
const { lockAll, lockAllAsync, LockTable, Mutex, RwLock } = require('../..');
const { atEachDepth } = require('../helpers/stack.js');
const { thread } = require('../../lib/engine/thread.js');

const [, , verb] = process.argv;
const TURNS = 10;

const buffer = new SharedArrayBuffer(4);
const word = new Int32Array(buffer);
const nothing = () => {};
const STATES = ['free', 'abandoned', 'abandoned, with onAbandoned'];
/** The locks of the state that is tried. */
let mutex;
let table;
/** Locked beside the mutex. */
const rwlock = new RwLock(new SharedArrayBuffer(8), 0, { allowMainThread: true });
const signal = new AbortController().signal;

/** The promises that lockAsync() returned while the mutex was held. */
const waits = [];
const wait = () => {
  waits[waits.length] = mutex.lockAsync();
};

const unlock = () => mutex.unlock();
const verbs = {
  tryLock: [() => mutex.tryLock(), unlock],
  lock: [() => mutex.lock(), unlock],
  tryAcquire: [() => mutex.tryAcquire(), (guard) => guard.unlock()],
  acquire: [() => mutex.acquire(), (guard) => guard.unlock()],
  executeLockedSync: [() => mutex.executeLockedSync(nothing), nothing],
  'executeLockedSync for which somebody waits': [() => mutex.executeLockedSync(wait), nothing],
  executeLocked: [() => mutex.executeLocked(nothing), nothing],
  acquireAsync: [() => mutex.acquireAsync(), (guard) => guard.unlock()],
  lockAsync: [() => mutex.lockAsync(), unlock],
  'lockAsync with options': [() => mutex.lockAsync({}), unlock],
  'acquireAsync with a signal': [() => mutex.acquireAsync({ signal }), (guard) => guard.unlock()],
  'lock of a table': [() => table.lock(0), unlock],
  'lockAsync of a table': [() => table.lockAsync(0), unlock],
  'executeLockedSync of a table': [() => table.executeLockedSync(0, nothing), nothing],
  lockAll: [() => lockAll([mutex]), (guard) => guard.unlock()],
  'lockAll of a lock named twice': [() => lockAll([mutex, mutex]), (guard) => guard.unlock()],
  lockAllAsync: [() => lockAllAsync([mutex]), (guard) => guard.unlock()],
  'lockAllAsync with a signal': [() => lockAllAsync([mutex], { signal }), (guard) => guard.unlock()],
  'lockAll with one to read': [() => lockAll([mutex, rwlock.read]), (guard) => guard.unlock()],
  'lockAllAsync with one to write': [() => lockAllAsync([mutex, rwlock.write]), (guard) => guard.unlock()],
};
const [act, free] = verbs[verb];

/** The word of a mutex in which a thread has ended. */
const die = async () => {
  const body = `const { Mutex } = require(${JSON.stringify(require.resolve('../..'))});
    new Mutex(require('node:worker_threads').workerData).lock();`;
  const worker = new Worker(body, { eval: true, workerData: buffer });
  await new Promise((resolve) => worker.once('exit', resolve));
  return Atomics.load(word, 0);
};

const tryAll = async (state, initial) => {
  const options = { allowMainThread: true, onAbandoned: state === STATES[2] ? nothing : undefined };
  mutex = new Mutex(buffer, 0, options);
  table = new LockTable(buffer, 0, 1, options);
  const reset = () => {
    Atomics.store(word, 0, initial);
    // Else only the first calls would warn.
    thread.warnings = null;
  };
  const result = { called: 0, failed: 0, leaked: 0 };
  await atEachDepth(act, async (at) => {
    reset();
    const outcome = await at();
    result.called += 1;
    if (outcome) free(outcome.value);
    else result.failed += 1;
    for (const locked of waits.splice(0)) if (await locked.catch(() => false)) mutex.unlock();
    // A wait that was queued and whose promise nobody got is granted in one of the next turns, and given back.
    const isLeft = () => mutex.isHeldByThisThread || rwlock.inspect().holders.length > 0;
    for (let turn = 0; turn < TURNS && isLeft(); turn++) await new Promise(setImmediate);
    if (isLeft()) result.leaked += 1;
  });
  return result;
};

const main = async () => {
  // Hundreds, that Node.js would print.
  process.removeAllListeners('warning');
  process.on('warning', nothing);
  // A promise that a verb could not even reject properly is no subject here.
  process.on('unhandledRejection', nothing);
  const left = await die();
  const results = {};
  for (const state of STATES) results[state] = await tryAll(state, state === 'free' ? 0 : left);
  console.log(JSON.stringify(results));
};

main();
