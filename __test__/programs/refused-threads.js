// Waits in each way that needs a thread of this package's own, first while the system refuses it, then again. Prints, as JSON, how each
// wait ended both times. `DIRECTORY`: of locks that another process holds.

const { LockManager, stats } = require('../..');
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

async function main() {
  process.env.REFUSE_THREADS = '1';
  const refused = await waitInEachWay();
  const free = await machine.request('free', ({ name }) => name);
  delete process.env.REFUSE_THREADS;
  const { pending } = stats();
  const granted = await waitInEachWay();
  console.log(JSON.stringify({ refused, free, pending, granted }));
}

main();
