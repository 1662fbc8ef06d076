// As stack-ends.js, for permits: calls the verb, the first argument, at each of the last depths before the stack overflows, and
// prints at how many it failed, and after how many of them the number of available permits was not the right one.

const { Semaphore } = require('../..');
const { atEachDepth } = require('../helpers/stack.js');

const [, , verb] = process.argv;
const TURNS = 10;
const PERMITS = 4;

const semaphore = new Semaphore(new SharedArrayBuffer(4), 0, PERMITS, { allowMainThread: true });
const nothing = () => {};
const release = (permits) => permits?.release();

/** The promises of acquireAsync() inside. */
const waits = [];
const wait = () => {
  waits[waits.length] = semaphore.acquireAsync(PERMITS);
};

const verbs = {
  tryAcquire: [() => semaphore.tryAcquire(2), release],
  'tryAcquire with a waiter': [() => semaphore.tryAcquire(2), release],
  acquire: [() => semaphore.acquire(2), release],
  acquireAsync: [() => semaphore.acquireAsync(2), release],
  'acquireAsync with options': [() => semaphore.acquireAsync(2, {}), release],
  executeSync: [() => semaphore.executeSync(nothing, { permits: 2 }), nothing],
  'executeSync for which somebody waits': [() => semaphore.executeSync(wait, { permits: 2 }), nothing],
  execute: [() => semaphore.execute(nothing, { permits: 2 }), nothing],
};
const [act, free] = verbs[verb];

const main = async () => {
  // A promise that a verb could not even reject properly is no subject here.
  process.on('unhandledRejection', nothing);
  const result = { called: 0, failed: 0, leaked: 0 };
  await atEachDepth(act, async (at) => {
    let held;
    if (verb === 'tryAcquire with a waiter') {
      // The word is the core's by that.
      held = semaphore.acquire(1);
      wait();
    }
    const outcome = await at();
    result.called += 1;
    if (outcome) free(outcome.value);
    else result.failed += 1;
    held?.release();
    for (const wait of waits.splice(0)) release(await wait.catch(nothing));
    // A wait that was queued and whose promise nobody got is granted in one of the next turns, and given back.
    for (let turn = 0; turn < TURNS && semaphore.available < PERMITS; turn++) await new Promise(setImmediate);
    const { holders, waiters } = semaphore.inspect();
    if (semaphore.available !== PERMITS || holders.length + waiters.length > 0) {
      result.leaked += 1;
      console.error(`available: ${semaphore.available}, ${JSON.stringify({ holders, waiters })}`);
      process.exit(1);
    }
  });
  console.log(JSON.stringify(result));
};

main();
