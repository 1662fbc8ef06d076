// Each verb that returns a promise, called so that it rejects and nobody awaits it; prints the events of the process.

const { once } = require('node:events');
const { setImmediate: turn } = require('node:timers/promises');
const { Worker, isMainThread, workerData } = require('node:worker_threads');
const {
  Barrier,
  Condition,
  Exchanger,
  Latch,
  LockManager,
  LockTable,
  ManualResetEvent,
  Mutex,
  Once,
  RwLock,
  Semaphore,
  lockAllAsync,
} = require('../../index.js');

const memory = (bytes = 64) => new SharedArrayBuffer(bytes);
const fails = () => {
  throw new Error('fails');
};
const rejects = async () => fails();

/** Each makes what is locked, free or held, and the verbs that lock it. */
const KINDS = {
  mutex: (isHeld) => verbsOfLock(new Mutex(memory()), isHeld),
  write: (isHeld) => verbsOfLock(new RwLock(memory()).write, isHeld),
  read(isHeld) {
    const { read, write } = new RwLock(memory());
    if (isHeld) write.tryLock();
    return verbsOfLock(read, false);
  },
  row(isHeld) {
    const table = new LockTable(memory(), 0, 2);
    if (isHeld) table.tryLock(1);
    return verbsOf(table, [1], ['lockAsync', 'acquireAsync'], ['executeLocked']);
  },
  semaphore(isHeld) {
    const pool = new Semaphore(memory(), 0, 1);
    if (isHeld) pool.tryAcquire();
    return { ...verbsOf(pool, [1], ['acquireAsync'], []), ...verbsOf(pool, [], [], ['execute']) };
  },
  once: () => verbsOf(new Once(memory()), [], [], ['run']),
  condition(isHeld) {
    const mutex = new Mutex(memory());
    if (isHeld) mutex.tryLock();
    const all = verbsOf(new Condition(memory()), [mutex], ['waitAsync'], ['waitForAsync']);
    return { ...all, inside: (options) => mutex.executeLocked(() => all.waitAsync(options)) };
  },
  event: () => verbsOf(new ManualResetEvent(memory()), [], ['waitAsync'], []),
  barrier: () => verbsOf(new Barrier(memory(), 0, 2), [], ['waitAsync'], []),
  exchanger: () => verbsOf(new Exchanger(memory()), [7], ['exchangeAsync'], []),
  latch() {
    const latch = new Latch(memory());
    latch.add();
    return verbsOf(latch, [], ['waitAsync'], []);
  },
  several(isHeld) {
    const [one, other] = [new Mutex(memory()), new Mutex(memory())];
    if (isHeld) other.tryLock();
    return { lockAllAsync: (options) => lockAllAsync([one, other], options) };
  },
  name() {
    const manager = new LockManager();
    return {
      request: (options) => manager.request('one', options, rejects),
      throws: (options) => manager.request('other', options, fails),
      both: (options) => manager.request(['one', 'other'], options, rejects),
    };
  },
};

function verbsOf(lock, first, waiting, running) {
  const verbs = {};
  for (const verb of waiting) verbs[verb] = (options) => lock[verb](...first, options);
  for (const verb of running) {
    verbs[verb] = (options) => lock[verb](...first, fails, options);
    verbs[`${verb} async`] = (options) => lock[verb](...first, rejects, options);
  }
  return verbs;
}

function verbsOfLock(lock, isHeld) {
  if (isHeld) lock.tryLock();
  return verbsOf(lock, [], ['lockAsync', 'acquireAsync'], ['executeLocked']);
}

const OPTIONS = {
  none: {},
  'no time': { timeout: 0 },
  aborted: { signal: AbortSignal.abort(new Error('aborted')) },
  bad: { timeout: 'soon' },
  throwing: {
    get timeout() {
      return fails();
    },
  },
};

let call = '';
const print = (...what) => console.log(call, ...what);
const told = (error) => `${error?.name} ${error?.code} ${error?.message}`;

async function unawaited(name, start) {
  call = name;
  try {
    start();
  } catch (error) {
    print('throws', told(error));
  }
  await turn();
  await turn();
}

async function main() {
  process.on('unhandledRejection', (error) => print('unhandledRejection', told(error)));
  process.on('rejectionHandled', () => print('rejectionHandled'));
  for (const [kind, make] of Object.entries(KINDS)) {
    for (const [asked, options] of Object.entries(OPTIONS)) {
      for (const isHeld of [false, true]) {
        for (const verb of Object.keys(make(isHeld))) {
          await unawaited(`${kind}.${verb}, ${asked}, ${isHeld}:`, () => make(isHeld)[verb](options));
        }
      }
    }
  }
  // A lock that is had at once, and goes back since its repair fails.
  const left = memory();
  await once(new Worker(__filename, { workerData: left }), 'exit');
  const onAbandoned = () => {
    throw new Error('no repair');
  };
  for (const verb of ['lockAsync', 'acquireAsync', 'executeLocked']) {
    const mutex = new Mutex(left, 0, { onAbandoned });
    await unawaited(`abandoned mutex.${verb}:`, () => mutex[verb](...(verb === 'executeLocked' ? [fails] : [])));
    const { write } = new RwLock(left, 8, { onAbandoned });
    await unawaited(`abandoned write.${verb}:`, () => write[verb](...(verb === 'executeLocked' ? [fails] : [])));
  }
  process.exit();
}

if (isMainThread) {
  main();
} else {
  new Mutex(workerData).lock();
  new RwLock(workerData, 8).write.lock();
}
