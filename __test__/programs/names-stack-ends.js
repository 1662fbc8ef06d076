// As stack-ends.js, for names: calls the verb, the first argument, at each of the last depths before the stack overflows, and
// prints at how many it failed. It ends with code 1 if anything is held or waited for afterwards. With a directory as the
// second argument the names are those of the machine.

const { LockManager } = require('../..');
const { DEPTHS, atDepth } = require('../helpers/stack.js');

const [, , verb, directory] = process.argv;
const TURNS = 10;

const manager = new LockManager({ allowMainThread: true, directory });
const nothing = () => {};
const { signal } = new AbortController();

/** The requests that were made inside. */
const waits = [];
const wait = () => {
  waits[waits.length] = manager.request('name', nothing);
};

const verbs = {
  request: () => manager.request('name', nothing),
  'request with a signal': () => manager.request('name', { signal }, nothing),
  'request that waits': () => manager.request('name', nothing),
  'request that waits, with a time limit': () => manager.request('name', { timeout: 60_000 }, nothing),
  'request that steals': () => manager.request('name', { steal: true }, nothing),
  acquireAsync: () => manager.acquireAsync('name'),
  acquire: () => manager.acquire('name'),
  requestSync: () => manager.requestSync('name', nothing),
  'requestSync for which somebody waits': () => manager.requestSync('name', wait),
};
const act = verbs[verb];
const waitsForHolder = verb.startsWith('request that waits');

const main = async () => {
  // A promise that a verb could not even reject properly is no subject here.
  process.on('unhandledRejection', nothing);
  const result = { called: 0, failed: 0 };
  const call = async (at) => {
    const held = waitsForHolder ? await manager.acquireAsync('name') : undefined;
    let hasFailed = true;
    let value;
    try {
      const answer = at();
      held?.unlock();
      value = await answer?.value;
      hasFailed = answer === undefined;
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
    }
    result.called += 1;
    result.failed += hasFailed ? 1 : 0;
    value?.unlock?.();
    for (const asked of waits.splice(0)) await asked.catch(nothing);
    // A request that was queued and whose promise nobody got is granted in one of the next turns, and given back.
    let seen = await manager.query();
    for (let turn = 0; turn < TURNS && seen.held.length + seen.pending.length > 0; turn++) {
      await new Promise(setImmediate);
      seen = await manager.query();
    }
    if (seen.held.length + seen.pending.length > 0) {
      console.error(JSON.stringify(seen));
      process.exit(1);
    }
  };
  // Functions that were never called need far more stack, to be compiled.
  for (let count = 0; count < 3; count++) await call(() => ({ value: act() }));
  for (let depth = 0; depth < DEPTHS; depth++) await call(() => atDepth(act, depth));
  console.log(JSON.stringify(result));
};

main();
