// As stack-ends.js, for names: calls the verb, the first argument, at each of the last depths before the stack overflows, and
// prints at how many it failed. It ends with code 1 if anything is held or waited for afterwards. With a directory as the
// second argument the names are those of the machine. A thread has ended that held the names which are marked, one for each call.

const { once } = require('node:events');
const { Worker, isMainThread } = require('node:worker_threads');
const { LockManager } = require('../..');
const { DEPTHS, atEachDepth } = require('../helpers/stack.js');

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

const repairing = new LockManager({ allowMainThread: true, onAbandoned: nothing });
const marked = Array.from({ length: DEPTHS + 3 }, (_, index) => `marked ${index}`);
let markedAt = 0;
const nextMarked = () => marked[markedAt++ % marked.length];
for (const [how, taker] of Object.entries({ warned: manager, repairing })) {
  verbs[`acquire of a marked name, ${how}`] = () => taker.acquire(nextMarked());
  verbs[`acquire of names, one of them marked, ${how}`] = () => taker.acquire(['name', nextMarked()]);
  verbs[`acquireAsync of a marked name, ${how}`] = () => taker.acquireAsync(nextMarked());
  verbs[`requestSync of a marked name, ${how}`] = () => taker.requestSync(nextMarked(), nothing);
  verbs[`requestSync of names, one of them marked, ${how}`] = () => taker.requestSync(['name', nextMarked()], nothing);
}

const act = verbs[verb];
const waitsForHolder = verb.startsWith('request that waits');

const main = async () => {
  // A promise that a verb could not even reject properly is no subject here.
  process.on('unhandledRejection', nothing);
  if (verb.includes('marked')) await once(new Worker(__filename, { argv: [verb] }), 'exit');
  const result = { called: 0, failed: 0 };
  await atEachDepth(act, async (at) => {
    const held = waitsForHolder ? await manager.acquireAsync('name') : undefined;
    // It has called by now, and awaits what came of it.
    const called = at();
    held?.unlock();
    const outcome = await called;
    result.called += 1;
    result.failed += outcome ? 0 : 1;
    outcome?.value?.unlock?.();
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
  });
  console.log(JSON.stringify(result));
};

if (isMainThread) main();
else for (const name of marked) manager.acquire(name);
