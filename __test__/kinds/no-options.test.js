// Values in the place of options that are none, and options that mean nothing where they stand: refused by every verb, before
// anything is changed.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const vm = require('node:vm');
const sablock = require('../..');
const { mysql } = require('../../lib/stores/mysql.js');
const { postgres } = require('../../lib/stores/postgres.js');
const { redis } = require('../../lib/stores/redis.js');
const { etcd } = require('../../lib/stores/etcd.js');
const { start } = require('../../lib/doctor/index.js');
const {
  AutoResetEvent,
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
  lockAll,
  lockAllAsync,
  waitAsync,
} = sablock;

const OPTIONS = { allowMainThread: true };
const invalid = { code: 'ERR_INVALID_ARG_TYPE' };
const never = () => assert.fail('must not run');
const memory = () => new SharedArrayBuffer(64);
const names = new LockManager(OPTIONS);

const exclusive = {
  lock: ['blocks', (lock, options) => lock.lock(options)],
  acquire: ['blocks', (lock, options) => lock.acquire(options)],
  executeLockedSync: ['blocks', (lock, options) => lock.executeLockedSync(never, options)],
  lockAsync: ['awaits', (lock, options) => lock.lockAsync(options)],
  acquireAsync: ['awaits', (lock, options) => lock.acquireAsync(options)],
  executeLocked: ['awaits', (lock, options) => lock.executeLocked(never, options)],
};
const passages = {
  wait: ['blocks', (place, options) => place.wait(options)],
  waitAsync: ['awaits', (place, options) => place.waitAsync(options)],
};

/** By class: how one is made, and every verb that takes options. */
const CLASSES = {
  Mutex: [() => new Mutex(memory(), 0, OPTIONS), exclusive],
  ReadLock: [() => new RwLock(memory(), 0, OPTIONS).read, exclusive],
  WriteLock: [() => new RwLock(memory(), 0, OPTIONS).write, exclusive],
  LockTable: [
    () => new LockTable(memory(), 0, 4, OPTIONS),
    {
      ...Object.fromEntries(
        Object.entries(exclusive)
          .filter(([verb]) => !verb.startsWith('execute'))
          .map(([verb, [kind]]) => [verb, [kind, (table, options) => table[verb](1, options)]]),
      ),
      executeLocked: ['awaits', (table, options) => table.executeLocked(1, never, options)],
      executeLockedSync: ['blocks', (table, options) => table.executeLockedSync(1, never, options)],
      lockAll: ['blocks', (table, options) => table.lockAll([1, 2], options)],
      lockAllAsync: ['awaits', (table, options) => table.lockAllAsync([1, 2], options)],
    },
  ],
  Semaphore: [
    () => new Semaphore(memory(), 0, 2, OPTIONS),
    {
      acquire: ['blocks', (semaphore, options) => semaphore.acquire(1, options)],
      executeSync: ['blocks', (semaphore, options) => semaphore.executeSync(never, options)],
      acquireAsync: ['awaits', (semaphore, options) => semaphore.acquireAsync(1, options)],
      execute: ['awaits', (semaphore, options) => semaphore.execute(never, options)],
    },
  ],
  Latch: [() => new Latch(memory(), 0, OPTIONS), passages],
  Barrier: [() => new Barrier(memory(), 0, 1, OPTIONS), passages],
  ManualResetEvent: [() => new ManualResetEvent(memory(), 0, OPTIONS), passages],
  AutoResetEvent: [() => new AutoResetEvent(memory(), 0, OPTIONS), passages],
  Exchanger: [
    () => new Exchanger(memory(), 0, OPTIONS),
    {
      exchange: ['blocks', (exchanger, options) => exchanger.exchange(1, options)],
      exchangeAsync: ['awaits', (exchanger, options) => exchanger.exchangeAsync(1, options)],
    },
  ],
  Once: [
    () => new Once(memory(), 0, OPTIONS),
    {
      run: ['awaits', (once, options) => once.run(never, options)],
      runSync: ['blocks', (once, options) => once.runSync(never, options)],
    },
  ],
  Condition: [
    () => {
      const mutex = new Mutex(memory(), 8, OPTIONS);
      mutex.lock();
      return { condition: new Condition(memory(), 0, OPTIONS), mutex };
    },
    {
      wait: ['blocks', ({ condition, mutex }, options) => condition.wait(mutex, options)],
      waitFor: ['blocks', ({ condition, mutex }, options) => condition.waitFor(mutex, never, options)],
      waitAsync: ['awaits', ({ condition, mutex }, options) => condition.waitAsync(mutex, options)],
      waitForAsync: ['awaits', ({ condition, mutex }, options) => condition.waitForAsync(mutex, never, options)],
    },
  ],
  LockManager: [
    () => names,
    {
      request: ['awaits', (manager, options) => manager.request('no options', options, never)],
      acquireAsync: ['awaits', (manager, options) => manager.acquireAsync('no options', options)],
      requestSync: ['blocks', (manager, options) => manager.requestSync('no options', options, never)],
      acquire: ['blocks', (manager, options) => manager.acquire('no options', options)],
      'request of several': ['awaits', (manager, options) => manager.request(['no', 'options'], options, never)],
      'acquire of several': ['blocks', (manager, options) => manager.acquire(['no', 'options'], options)],
    },
  ],
  functions: [
    () => new Mutex(memory(), 0, OPTIONS),
    {
      lockAll: ['blocks', (mutex, options) => lockAll([mutex], options)],
      lockAllAsync: ['awaits', (mutex, options) => lockAllAsync([mutex], options)],
    },
  ],
};

/** The verbs that take options and do not wait. */
const CREATORS = {
  Mutex: (options) => new Mutex(memory(), 0, options),
  RwLock: (options) => new RwLock(memory(), 0, options),
  Semaphore: (options) => new Semaphore(memory(), 0, 1, options),
  Latch: (options) => new Latch(memory(), 0, options),
  Barrier: (options) => new Barrier(memory(), 0, 1, options),
  ManualResetEvent: (options) => new ManualResetEvent(memory(), 0, options),
  AutoResetEvent: (options) => new AutoResetEvent(memory(), 0, options),
  Exchanger: (options) => new Exchanger(memory(), 0, options),
  Once: (options) => new Once(memory(), 0, options),
  LockTable: (options) => new LockTable(memory(), 0, 1, options),
  Condition: (options) => new Condition(memory(), 0, options),
  LockManager: (options) => new LockManager(options),
  'mysql()': (options) => mysql('mysql://host/a', options),
  'postgres()': (options) => postgres('postgres://host/a', options),
  'redis()': (options) => redis('redis://host', options),
  'etcd()': (options) => etcd('http://host:2379', options),
  'start() of the doctor': (options) => start(options),
  'waitAsync()': (options) => waitAsync(new Int32Array(memory()), 0, 0, 1, options),
};

const handMade = { aborted: false, reason: undefined, addEventListener() {}, removeEventListener() {} };
const NO_OPTIONS = {
  'an AbortSignal': new AbortController().signal,
  'an AbortController': new AbortController(),
  'a signal made by hand': handMade,
  'a signal of a class of its own': Object.create(handMade, { aborted: { value: false, enumerable: true } }),
  'a signal with getters, of a class without a tag': new (class {
    get aborted() {
      return false;
    }
    addEventListener() {}
    removeEventListener() {}
  })(),
  'an array': [50],
  'a Date': new Date(),
  'a Map': new Map([['timeout', 5]]),
  'a Set': new Set(['timeout']),
  'a Promise': Promise.resolve(),
  'a RegExp': /5/,
  'an Error': new Error('5'),
  'a number object': Object(5),
  'a typed array': new Uint8Array(1),
  'shared memory': memory(),
  'an array of another realm': vm.runInNewContext('[5]'),
  'a Date of another realm': vm.runInNewContext('new Date()'),
};

/** Its own properties count; those that are inherited do so where the Web Locks API has it. */
class Limits {
  timeout = 0;
}

/** Options that some verbs have, or some constructors. */
const OF_SOME = [
  'permits',
  'mode',
  'fence',
  'ifAvailable',
  'steal',
  'fair',
  'name',
  'allowMainThread',
  'maySleep',
  'onAbandoned',
  'scope',
  'directory',
  'store',
  'namespace',
  'connectTimeout',
  'connections',
  'heartbeat',
  'lease',
  'renew',
  'replicas',
];

/** The ones of these that a verb has. */
function knownTo(name, verb) {
  if (name === 'LockManager') return ['mode', 'fence', 'ifAvailable', 'steal'];
  return name === 'Semaphore' && verb.startsWith('execute') ? ['permits'] : [];
}

for (const [name, [make, verbs]] of Object.entries(CLASSES)) {
  test(`each verb of ${name} that takes options has a row here`, () => {
    const { prototype } = sablock[name] ?? Object.getPrototypeOf(make()).constructor;
    if (name === 'functions') return;
    const methods = Object.getOwnPropertyNames(prototype).filter((each) => {
      const { value } = Object.getOwnPropertyDescriptor(prototype, each);
      return typeof value === 'function' && /^(?:lock|acquire|execute|wait|exchange|run|request)/.test(each);
    });
    assert.deepEqual(
      methods.filter((method) => !(method in verbs)),
      [],
    );
  });

  for (const [verb, [kind, call]] of Object.entries(verbs)) {
    test(`${name}: ${verb} refuses what is no options object`, async () => {
      for (const [what, value] of Object.entries(NO_OPTIONS)) {
        await assert.rejects(async () => call(make(), value), invalid, what);
      }
    });

    if (verb.startsWith('execute')) {
      test(`${name}: ${verb} refuses a number, which would be a weight or a time elsewhere`, async () => {
        await assert.rejects(async () => call(make(), 2), { ...invalid, message: /"options".* \{ timeout: / });
      });
    }

    if (kind === 'blocks') {
      test(`${name}: ${verb}, which blocks, refuses signal and ref`, () => {
        const { signal } = new AbortController();
        for (const options of [
          { signal },
          { signal: AbortSignal.abort(), timeout: 1 },
          { ref: false },
          { ref: true },
        ]) {
          assert.throws(() => call(make(), options), { ...invalid, message: /'(?:signal|ref)'.* promise/ });
        }
        // The option that would be meant by it is refused too.
        assert.throws(() => call(make(), { abortSignal: signal }), { ...invalid, message: /'signal'.* promise/ });
      });
    }

    test(`${name}: ${verb} refuses the words of other libraries, and passes over what only begins or ends like an option`, async () => {
      for (const word of [
        'ms',
        'ttl',
        'wait',
        'deadline',
        'timeoutMs',
        'timeout_ms',
        'timeoutMillis',
        'timeouts',
        'abortSignal',
      ]) {
        await assert.rejects(async () => call(make(), { [word]: 5 }), { ...invalid, message: new RegExp(`'${word}'`) });
      }
      const odd = { referrer: 1, killSignal: 1, minTimeout: 1, refresh: 1, signalling: 1, timeout: 'no number' };
      // The last of these alone is refused.
      await assert.rejects(async () => call(make(), odd), { ...invalid, message: /"options\.timeout"/ });
    });

    test(`${name}: ${verb} refuses the options of other verbs`, async () => {
      for (const option of OF_SOME.filter((each) => !knownTo(name, verb).includes(each))) {
        const message = new RegExp(`no option '${option}'.* It is an option of `);
        await assert.rejects(async () => call(make(), { [option]: 1 }), { ...invalid, message }, option);
      }
    });

    const inherits = name === 'LockManager';
    test(`${name}: ${verb} counts own options, enumerable or not, and ${inherits ? '' : 'no '}inherited ones`, async () => {
      const hide = (own, inherited = {}) => {
        const hidden = Object.entries(own).map(([key, value]) => [key, { value }]);
        return Object.create(inherited, Object.fromEntries(hidden));
      };
      const refused = (option) => ({ ...invalid, message: new RegExp(`"options\\.${option}"`) });
      await assert.rejects(async () => call(make(), hide({ timeout: 'no number' })), refused('timeout'));
      const both = hide({ timeout: 'no number' }, { signal: 'no signal' });
      await assert.rejects(async () => call(make(), both), refused(inherits ? 'signal' : 'timeout'));
      if (kind === 'awaits') {
        await assert.rejects(async () => call(make(), hide({ signal: 'no signal' })), refused('signal'));
        await assert.rejects(async () => call(make(), hide({ ref: 'no boolean' })), refused('ref'));
        return;
      }
      const { signal } = new AbortController();
      for (const options of [{ signal }, { ref: true }]) {
        const forPromises = { ...invalid, message: /'(?:signal|ref)'.* promise/ };
        assert.throws(() => call(make(), hide(options)), forPromises);
        if (inherits) assert.throws(() => call(make(), Object.create(options)), forPromises);
      }
    });

    test(`${name}: ${verb} does not mind what Object.prototype has`, async () => {
      Object.assign(Object.prototype, { references: 1, timeoutMs: 1 });
      try {
        await assert.rejects(async () => call(make(), { timeout: 'no number' }), { message: /"options\.timeout"/ });
      } finally {
        for (const key of ['references', 'timeoutMs']) delete Object.prototype[key];
      }
    });
  }
}

/** An option of the verbs that do not wait; of the others `name`. */
const OPTION_OF = {
  LockManager: 'directory',
  'mysql()': 'namespace',
  'postgres()': 'namespace',
  'redis()': 'namespace',
  'etcd()': 'namespace',
  'start() of the doctor': 'trace',
  'waitAsync()': 'signal',
};

for (const [name, create] of Object.entries(CREATORS)) {
  test(`${name} counts an option that is not enumerable`, () => {
    const option = OPTION_OF[name] ?? 'name';
    const hidden = Object.defineProperty({}, option, { value: 5 });
    assert.throws(() => create(hidden), { ...invalid, message: new RegExp(`"options\\.${option}"`) });
  });

  test(`${name} counts no option that is inherited`, () => {
    const created = create(Object.create({ [OPTION_OF[name] ?? 'name']: 5 }));
    created.stop?.();
  });

  test(`${name} refuses what is no options object`, () => {
    for (const [what, value] of Object.entries({ null: null, 'a string': '5', 'a number': 5, ...NO_OPTIONS })) {
      assert.throws(() => create(value), invalid, what);
    }
  });
}

test('objects without a prototype, of another realm, and of a class are options', async () => {
  const mutex = new Mutex(memory(), 0, OPTIONS);
  mutex.tryLock();
  for (const options of [
    Object.assign(Object.create(null), { timeout: 0 }),
    vm.runInNewContext('({ timeout: 0 })'),
    new Limits(),
    new Proxy({ timeout: 0 }, {}),
    Object.freeze({ timeout: 0, signal: undefined, ref: undefined }),
  ]) {
    assert.equal(mutex.lock(options), false);
    assert.equal(await mutex.lockAsync(options), false);
  }
  mutex.unlock();
});

test('undefined is no name, alone or among others; null and numbers are', async () => {
  const refused = { ...invalid, message: /"name"/ };
  for (const name of [undefined, [undefined], ['a', undefined]]) {
    await assert.rejects(names.request(name, never), refused);
    await assert.rejects(names.request(name, {}, never), refused);
    await assert.rejects(names.acquireAsync(name), refused);
    assert.throws(() => names.requestSync(name, never), refused);
    assert.throws(() => names.acquire(name), refused);
  }
  assert.deepEqual(await names.query(), { held: [], pending: [] });
  for (const name of [null, 7]) assert.equal(await names.request(name, (lock) => lock.name), `${name}`);
});
