// Every verb that asks a store for a lock; and, as a worker, all of them at a store that does not answer.

const assert = require('node:assert/strict');
const { once } = require('node:events');
const { isMainThread, parentPort, workerData } = require('node:worker_threads');
const { LockManager } = require('../..');

const never = () => assert.fail('must not run');

/** Every verb that asks for a lock. */
exports.VERBS = {
  request: (manager, options) => manager.request('job', options, never),
  'request, shared': (manager, options) => manager.request('job', { ...options, mode: 'shared' }, never),
  'request of several names': (manager, options) => manager.request(['job', 'too'], options, never),
  acquireAsync: (manager, options) => manager.acquireAsync('job', options),
  requestSync: async (manager, options) => manager.requestSync('job', options, never),
  acquire: async (manager, options) => manager.acquire('job', options),
};

const UNKNOWN = ({ code, cause, message }) => code === 'ERR_LOCK_STORE' && cause instanceof Error && message.length > 0;
const TIMED = { timeout: 200 };
const TRIED = { ifAvailable: true, timeout: 200 };

/** Returns the verbs that this kind of store does not refuse. */
exports.verbsOf = (kind) =>
  Object.entries(exports.VERBS).filter(([verb]) => kind !== 'mysql' || !verb.includes('shared'));

/** Each verb, timed or tried, first or behind another. */
async function askInVain(kind, manager) {
  for (const [verb, ask] of exports.verbsOf(kind)) {
    await assert.rejects(ask(manager, TIMED), UNKNOWN, verb);
    await assert.rejects(ask(manager, TRIED), UNKNOWN, verb);
    // This thread's own request has no answer either.
    const first = assert.rejects(manager.acquireAsync('job', { timeout: 1500 }), UNKNOWN, verb);
    await assert.rejects(ask(manager, TIMED), UNKNOWN, verb);
    await assert.rejects(ask(manager, TRIED), UNKNOWN, verb);
    await first;
  }
}

/** Waits until a lock worker has begun: who asks before that hears of main, which is too busy to start one, and not of the store. */
async function lockWorkerBegun(make, url) {
  const nowhere = new LockManager({ store: make(Object.assign(new URL(url), { port: '1' }).href) });
  const refused = () => nowhere.check().catch(({ cause }) => cause);
  while (!((await refused()) instanceof Error));
  await nowhere.close();
}

/** A worker, so that the others are not kept waiting while its verbs block. Says `ready`, and begins when it is told to. */
async function work({ kind, url, options, isReached }) {
  const make = require(`../../lib/stores/${kind}.js`)[kind];
  const manager = new LockManager({ store: make(url, options) });
  await lockWorkerBegun(make, url);
  if (isReached) await manager.request('before', () => {});
  parentPort.postMessage('ready');
  await once(parentPort, 'message');
  await askInVain(kind, manager);
  await manager.close();
  parentPort.postMessage('done');
}

if (!isMainThread) work(workerData);
