// Loads the package again and again, each time in a context of its own that is dropped, as test runners do with each file, and uses it
// in each of the ways below. Prints of each how many of the contexts between the first and the last are still there. Needs --expose-gc.

const path = require('node:path');
const { inContext } = require('../surroundings/surroundings.js');

const LOADS = 6;
const memory = () => new SharedArrayBuffer(64);

const USES = {
  nothing: () => {},
  'a mutex': (S) => new S.Mutex(memory()).executeLocked(() => {}, { signal: new AbortController().signal }),
  'an abandoned mutex': (S) => new S.Mutex(memory(), 0, { onAbandoned() {} }).lockAsync({ timeout: 5 }),
  'a read lock': (S) => new S.RwLock(memory()).read.executeLocked(() => {}),
  permits: (S) => new S.Semaphore(memory(), 0, 1).execute(() => {}),
  'a name': (S) => S.locks.request('loaded again', () => {}),
  'several names': (S) => S.locks.request(['loaded', 'again'], () => {}),
  'a manager of the machine': (S) =>
    new S.LockManager({ directory: process.argv[2] }).request('loaded again', () => {}),
  'a timed wait': (S) => new S.Latch(memory()).waitAsync({ timeout: 1 }),
  'every export': (S) => void { ...S },
};

const turn = () => new Promise((resolve) => setTimeout(resolve, 5));

async function loadOnce(use) {
  let globals;
  const load = inContext((made) => {
    globals = new WeakRef(made);
  });
  await use(load(path.join(__dirname, '..', '..', 'index.js')));
  return globals;
}

async function run(use) {
  const loads = [];
  for (let load = 0; load < LOADS; load++) loads.push(await loadOnce(use));
  const between = loads.slice(1, -1);
  const count = () => between.filter((globals) => globals.deref() !== undefined).length;
  // To look at a reference keeps what it leads to until the turn is over: so there is a turn between a look and a collection.
  for (let look = 0; look < 20; look++) {
    for (let collection = 0; collection < 5; collection++) {
      await turn();
      globalThis.gc();
    }
    if (count() === 0) break;
  }
  return count();
}

exports.USES = USES;

async function runAll() {
  const counts = {};
  for (const [name, use] of Object.entries(USES)) counts[name] = await run(use);
  console.log(JSON.stringify(counts));
}

if (require.main === module) runAll();
