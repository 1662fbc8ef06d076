// The main thread waits for something that takes several steps, with the option `ref` of the first argument, and does nothing else once
// the last step is pending. What that waits for comes 200 ms later, by a timer that keeps nothing alive: if the wait is to keep the
// process alive. Of names of a directory, the second argument, another process holds the last. The others are the cases, one after
// the other.

const { Condition, LockManager, LockTable, Mutex, RwLock, lockAllAsync, locks } = require('../..');
const { endsWaiting } = require('../helpers/audited.js');

const [, , how, directory, ...chosen] = process.argv;
const ref = how === 'true';

const until = async (isThere) => {
  while (!(await isThere())) await new Promise((resolve) => setTimeout(resolve, 1));
};
const isAwaited = (lock) => lock.inspect().waiters.length > 0;

/** The case that runs, and its locks; `granted()` ends it. */
let name;
let granted;
let mutexes;
let rwlock;
let condition;
let table;

const run = (chosenName) => {
  name = chosenName;
  const buffer = new SharedArrayBuffer(64);
  mutexes = [0, 4, 8].map((byteOffset) => new Mutex(buffer, byteOffset));
  rwlock = new RwLock(buffer, 16);
  condition = new Condition(buffer, 24);
  table = new LockTable(buffer, 32, 4);
  return new Promise((resolve) => {
    granted = () => {
      console.log(`${chosenName}: granted`);
      resolve();
    };
    cases[name]();
  });
};

/** The last step is pending: from here on nothing but the wait keeps the process alive. `free` lets it go on. */
const lastStep = (free) => {
  console.log(`${name}: waiting`);
  if (ref && free !== undefined) setTimeout(free, 200).unref();
};

/** A wait for a condition ends as `end(controller)` says, and then waits for the lock, which is `of` an object with inspect(). */
const again = async (end, wait = waitOnce, { lock = mutexes[0], of = lock } = {}) => {
  const controller = new AbortController();
  await lock.lockAsync();
  wait(lock, { ref }, controller.signal).then(granted, granted);
  // It is free from the moment in which the wait has begun: taken in the same turn, it is not locked again before, however soon that ends.
  await until(() => lock.tryLock());
  end(controller);
  await until(() => isAwaited(of));
  lastStep(() => lock.unlock());
};
const notify = () => condition.notifyOne();
const waitOnce = (lock, options) => condition.waitAsync(lock, options);
const waitAborted = (lock, options, signal) => condition.waitAsync(lock, { ...options, signal });
const waitTimed = (lock, options) => condition.waitAsync(lock, { ...options, timeout: 1 });
const waitFor = (lock, options) => {
  let calls = 0;
  return condition.waitForAsync(lock, () => calls++ > 0, options);
};

/** Waits for locks that are held, each after the one before was freed. `steps` have the objects with inspect(). */
const oneByOne = async (held, wait, steps = held) => {
  for (const lock of held) lock.tryLock();
  wait().then(granted);
  for (const [index, lock] of held.entries()) {
    await until(() => isAwaited(steps[index]));
    if (index === held.length - 1) lastStep(() => lock.unlock());
    else lock.unlock();
  }
};

/** The names of a case. */
const namesOf = (which) => ['first', 'middle', 'then the last'].map((each) => `${which}: ${each}`);
/** The same for names, the last of which this process holds, or another. */
const names = async (ask, manager, isLastElsewhere) => {
  const wanted = namesOf(name);
  const held = [];
  for (const each of isLastElsewhere ? wanted.slice(0, -1) : wanted) held.push(await manager.acquireAsync(each));
  ask(manager, wanted).then(granted);
  for (const each of wanted) {
    await until(async () => (await manager.query()).pending.some((row) => row.name === each));
    const lock = held.shift();
    if (each !== wanted.at(-1)) lock.unlock();
    else lastStep(lock && (() => lock.unlock()));
  }
};
const ASKS = {
  request: (manager, wanted) => manager.request(wanted, { ref }, () => {}),
  'request with a signal': (manager, wanted) =>
    manager.request(wanted, { ref, signal: new AbortController().signal }, () => {}),
  acquireAsync: (manager, wanted) => manager.acquireAsync(wanted, { ref }),
};

const cases = {
  'waitAsync, notified': () => again(notify),
  'waitAsync, timed out': () => again(() => {}, waitTimed),
  'waitAsync, aborted': () => again((controller) => controller.abort(), waitAborted),
  'waitAsync, of a write lock': () => again(notify, waitOnce, { lock: rwlock.write, of: rwlock }),
  'waitForAsync, notified': () => again(notify, waitFor),
  lockAllAsync: () => oneByOne(mutexes, () => lockAllAsync(mutexes, { ref })),
  'lockAllAsync with a signal': () =>
    oneByOne(mutexes, () => lockAllAsync(mutexes, { ref, signal: new AbortController().signal })),
  'lockAllAsync of a read lock': () =>
    oneByOne([mutexes[0], rwlock.write], () => lockAllAsync([mutexes[0], rwlock.read], { ref }), [mutexes[0], rwlock]),
  'lockAllAsync of a table': () => oneByOne([table.at(1), table.at(3)], () => table.lockAllAsync([1, 3], { ref })),
};
for (const [verb, ask] of Object.entries(ASKS)) {
  cases[`${verb} of several names`] = () => names(ask, locks, false);
  cases[`${verb} of several names of the machine`] = () => names(ask, new LockManager({ directory }), false);
  cases[`${verb} of several names, the last elsewhere`] = () => names(ask, new LockManager({ directory }), true);
}

const main = async () => {
  process.on('exit', () => console.log('exit'));
  // It ends while it waits.
  if (!ref) endsWaiting(process.env);
  for (const each of chosen) await run(each);
};

if (require.main === module) main();

exports.CASES = Object.keys(cases);
exports.lastOf = (which) => namesOf(which).at(-1);
