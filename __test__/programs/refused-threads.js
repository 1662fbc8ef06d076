// Waits in each way that needs a thread of this package's own, first while the system refuses it, then again. Prints, as JSON, how each
// wait ended both times, what the store and the doctor said of their threads, and whether the doctor's report is there. `DIRECTORY`: of
// locks that another process holds.

const { once } = require('node:events');
const { LockManager, stats } = require('../..');
const { start } = require('../../lib/doctor/index.js');
const { redis } = require('../../lib/stores/redis.js');
const { BYTES } = require('../helpers/memory.js');
const WAYS = require('../helpers/late.js');

const [directory] = process.argv.slice(2);
const machine = new LockManager({ scope: 'machine', directory });

/** Ways that need the thread that waits for the kernel. The first has a time too, and no clock. */
const OF_FILES = {
  'a lock of a machine': { late: () => machine.acquireAsync('held', { timeout: 50 }), ends: 'ERR_LOCK_TIMEOUT' },
  'several locks of a machine': {
    late: () => machine.acquireAsync(['free', 'held'], { timeout: 50 }),
    ends: 'ERR_LOCK_TIMEOUT',
  },
  'a lock of a machine that a signal aborts': {
    late: () => machine.acquireAsync('held', { signal: AbortSignal.timeout(50) }),
    ends: 23,
  },
};

/** The result of a wait, or the code of its error. */
const outcome = (promise) =>
  promise.then(
    (value) => value,
    (error) => error.code ?? error.message,
  );

/** Waits in each way, one after the other; returns how each ended, and what it was to end with. */
async function waitInEachWay() {
  const results = [];
  for (const [way, { make, hold, late, ends }] of Object.entries({ ...WAYS, ...OF_FILES })) {
    const made = make?.(new SharedArrayBuffer(BYTES));
    const held = await hold?.(made);
    results.push([way, await outcome(late(made)), ends]);
    held?.unlock?.();
  }
  return results;
}

/** The code of the cause with which a store fails that nobody serves. */
async function causeOfStore() {
  const manager = new LockManager({ store: redis('redis://127.0.0.1:1') });
  const { cause } = await manager.request('name', () => {}).catch((error) => error);
  await manager.close();
  return cause.code;
}

/** The code of the warning with which the doctor starts, and a part of its report. */
async function startDoctor() {
  const warned = once(process, 'warning');
  const doctor = start();
  const [{ code }] = await warned;
  const { deadlocks } = doctor.report();
  doctor.stop();
  return { code, deadlocks };
}

async function main() {
  process.env.REFUSE_THREADS = '1';
  const doctor = await startDoctor();
  const stores = [await causeOfStore()];
  const refused = await waitInEachWay();
  const free = await machine.request('free', ({ name }) => name);
  delete process.env.REFUSE_THREADS;
  const { pending } = stats();
  const granted = await waitInEachWay();
  stores.push(await causeOfStore());
  console.log(JSON.stringify({ refused, free, pending, granted, stores, doctor }));
}

main();
