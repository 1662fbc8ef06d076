// The main thread waits for something that takes several steps, with the option `ref` of the second argument, and does nothing else
// once the last step is pending. What that waits for comes 200 ms later, by a timer that keeps nothing alive: if the wait is to keep
// the process alive. Of names of a directory, the third argument, another process holds the last.

const { Condition, LockManager, LockTable, Mutex, RwLock, lockAllAsync, locks } = require('../..');
const { endsWaiting } = require('../helpers/audited.js');

const [, , name, how, directory] = process.argv;
const ref = how === 'true';

const until = async (isThere) => {
  while (!(await isThere())) await new Promise((resolve) => setTimeout(resolve, 1));
};
const isAwaited = (lock) => lock.inspect().waiters.length > 0;
const granted = () => console.log('granted');

/** The last step is pending: from here on nothing but the wait keeps the process alive. `free` lets it go on. */
const lastStep = (free) => {
  console.log('waiting');
  if (ref && free !== undefined) setTimeout(free, 200).unref();
};

const buffer = new SharedArrayBuffer(64);
const mutexes = [0, 4, 8].map((byteOffset) => new Mutex(buffer, byteOffset));
const rwlock = new RwLock(buffer, 16);
const condition = new Condition(buffer, 24);
const table = new LockTable(buffer, 32, 4);

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

const NAMES = ['first', 'middle', 'then the last'];
/** The same for names, the last of which this process holds, or another. */
const names = async (ask, manager, isLastElsewhere) => {
  const held = [];
  for (const each of isLastElsewhere ? NAMES.slice(0, -1) : NAMES) held.push(await manager.acquireAsync(each));
  ask(manager, NAMES).then(granted);
  for (const each of NAMES) {
    await until(async () => (await manager.query()).pending.some((row) => row.name === each));
    const lock = held.shift();
    if (each !== NAMES.at(-1)) lock.unlock();
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

if (require.main === module) {
  process.on('exit', () => console.log('exit'));
  // It ends while it waits.
  if (!ref) endsWaiting(process.env);
  cases[name]();
}

exports.CASES = Object.keys(cases);
