// Interrupts JS inside lockAsync() or unlock(), the second argument, by a `vm` timeout or by a stack overflow, the first
// argument, until that has hit often enough. Who calls lockAsync() may never get the promise then: such a wait is lost, and
// must be given back. All others must be granted the mutex, once. Prints how many were which.

const vm = require('node:vm');
const { Mutex } = require('../..');

const [, , interruption, verb] = process.argv;
const ROUNDS = 150;
const ENOUGH_LOST = 3;
const WAITS = 20;
const FRAMES = 300;

const mutex = new Mutex(new SharedArrayBuffer(4));
const result = { granted: 0, answered: 0, failed: 0, lost: 0, interrupted: 0 };
/** The promises of lockAsync(). */
let promises = [];

// Stored without a call, before which JS could be interrupted: what was returned is there.
const actions = {
  lockAsync() {
    promises[promises.length] = mutex.lockAsync();
  },
  // Once only: a second call might wake whom the first has forgotten.
  unlock() {
    if (mutex.isHeldByThisThread) mutex.unlock();
  },
};

const scripts = {
  lockAsync: new vm.Script('for (;;) promises[promises.length] = mutex.lockAsync();'),
  unlock: new vm.Script('for (;;) { if (mutex.isHeldByThisThread) mutex.unlock(); mutex.tryLock(); }'),
};

const interruptions = {
  timeout() {
    const context = vm.createContext({ mutex, promises });
    try {
      scripts[verb].runInContext(context, { timeout: 1 });
    } catch ({ code }) {
      if (code === 'ERR_SCRIPT_EXECUTION_TIMEOUT') result.interrupted += 1;
    }
  },
  /** Acts at the end of the stack, then with one frame more room, and so on. */
  overflow() {
    let frames = 0;
    const dive = (...padding) => {
      try {
        dive(...padding);
      } catch {
        // Here the stack ended.
      }
      if (frames++ > FRAMES) return;
      try {
        actions[verb]();
      } catch (error) {
        if (error instanceof RangeError) result.interrupted += 1;
      }
    };
    dive(...new Array(result.interrupted % 7));
  },
};

const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

const round = async (isHeld) => {
  if (isHeld) mutex.tryLock();
  if (verb === 'unlock') for (let count = 0; count < WAITS; count++) actions.lockAsync();
  interruptions[interruption]();
  const isGrantedAtOnce = !isHeld && mutex.isHeldByThisThread;
  const queued = mutex.inspect().waiters.length + Number(isGrantedAtOnce);
  let granted = 0;
  const hold = () => {
    if (!mutex.isHeldByThisThread) throw new Error('Granted, and not held');
    granted += 1;
    mutex.unlock();
  };
  const fail = (error) => {
    if (!(error instanceof RangeError)) throw error;
    result.failed += 1;
  };
  result.answered += promises.length;
  const served = Promise.all(promises.map((promise) => promise.then(hold, fail)));
  promises = [];
  // Only what this round has locked itself: a hold that nobody got would stand here for ever.
  if (isHeld && mutex.isHeldByThisThread) mutex.unlock();
  await served;
  result.granted += granted;
  result.lost += queued - granted;
  // Lost ones may come last.
  while (mutex.inspect().waiters.length > 0 || mutex.isLocked) await nextTurn();
};

const waitOnce = async () => {
  mutex.tryLock();
  const pending = mutex.lockAsync();
  mutex.unlock();
  await pending;
  mutex.unlock();
};

const main = async () => {
  // At the end of the stack there is no room to load what the first wait needs. A timeout may well come while that loads
  // (but Bun keeps the piece that was loaded, and says nothing).
  if (interruption === 'overflow' || process.versions.bun) await waitOnce();
  for (let count = 0; count < ROUNDS; count++) {
    // The first lockAsync() that returns gets a mutex that nobody holds at once.
    await round(verb === 'unlock' || count % 2 === 0);
    if (result.lost >= ENOUGH_LOST) break;
  }
  // The fast path and the queue work as before, and nothing keeps the process alive.
  await waitOnce();
  if (mutex.isLocked) throw new Error('Locked');
  console.log(JSON.stringify(result));
};

main();
