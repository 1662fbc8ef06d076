// An option that nobody knows is an error where it is near one that is: a misspelt timeout would wait for ever. So is one that
// something else of the package has: it would be believed.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { postgres } = require('../../lib/stores/postgres.js');
const { redis } = require('../../lib/stores/redis.js');
const {
  AutoResetEvent,
  Barrier,
  Condition,
  Exchanger,
  Latch,
  LockManager,
  ManualResetEvent,
  Mutex,
  Once,
  RwLock,
  Semaphore,
  lockAllAsync,
  locks,
  notify,
  wait,
  waitAsync,
} = require('../..');

const buffer = new SharedArrayBuffer(64);
const mutex = new Mutex(buffer, 0, { allowMainThread: true });
const rwlock = new RwLock(buffer, 16, { allowMainThread: true });
const blocking = new LockManager({ allowMainThread: true });
const never = () => assert.fail('must not run');

/** Each way to give options, which fails in whatever way. */
const CALLS = {
  'mutex.lock': (options) => mutex.lock(options),
  'mutex.lockAsync': (options) => mutex.lockAsync(options),
  'mutex.acquire': (options) => mutex.acquire(options),
  'mutex.executeLocked': (options) => mutex.executeLocked(never, options),
  'read.lockAsync': (options) => rwlock.read.lockAsync(options),
  lockAllAsync: (options) => lockAllAsync([mutex], options),
  'locks.request': (options) => locks.request('unknown', options, never),
  'locks.acquireAsync': (options) => locks.acquireAsync(['unknown', 'options'], options),
  requestSync: (options) => blocking.requestSync('unknown', options, never),
};

const BLOCKING = ['mutex.lock', 'mutex.acquire', 'requestSync'];

const MISSPELT = {
  timeoutMs: 'timeout',
  timeoutMillis: 'timeout',
  timeOut: 'timeout',
  timout: 'timeout',
  timmeout: 'timeout',
  timeuot: 'timeout',
  abortSignal: 'signal',
  Ref: 'ref',
  rev: 'ref',
};

for (const [verb, call] of Object.entries(CALLS)) {
  test(`${verb}: a misspelt option is refused with the one that was meant, and nothing is locked`, async () => {
    for (const [wrong, meant] of Object.entries(MISSPELT)) {
      const isRefused = BLOCKING.includes(verb) && meant !== 'timeout';
      const advice = `Did you mean '${meant}'\\?${isRefused ? ' That is for the verbs that return promises\\.' : ''}`;
      await assert.rejects(async () => call({ [wrong]: 100 }), {
        code: 'ERR_INVALID_ARG_TYPE',
        message: new RegExp(`There is no option '${wrong}'.*${advice} Nothing was changed\\.$`),
      });
    }
    assert.deepEqual([mutex.isLocked, await locks.query()], [false, { held: [], pending: [] }]);
  });
}

test('the error of an option names the lock that it was given to', async () => {
  const message = /^There is no option 'timout' for the mutex at byte offset 0\. /;
  assert.throws(() => mutex.lock({ timout: 1 }), { message });
  await assert.rejects(mutex.lockAsync({ timout: 1 }), { message });
});

test('the options of constructors, and of waitAsync, are looked at too', () => {
  const refused = (meant) => ({ code: 'ERR_INVALID_ARG_TYPE', message: new RegExp(`Did you mean '${meant}'\\?`) });
  assert.throws(() => new Mutex(buffer, 0, { allowmainThread: true }), refused('allowMainThread'));
  assert.throws(() => new Condition(buffer, 8, { names: 'a' }), refused('name'));
  assert.throws(() => new LockManager({ onAbandonned: never }), refused('onAbandoned'));
  assert.throws(() => new LockManager({ dir: '/nowhere', directroy: '/tmp' }), refused('directory'));
  assert.throws(() => postgres('postgres://host/a', { nameSpace: 'a' }), refused('namespace'));
  assert.throws(() => postgres('postgres://host/a', { conections: 3 }), refused('connections'));
  assert.throws(() => new LockManager({ socpe: 'machine' }), refused('scope'));
  assert.throws(() => redis('redis://host', { leaseMs: 3_000 }), refused('lease'));
  assert.throws(() => waitAsync(new Int32Array(buffer), 8, 0, 0, { signals: null }), refused('signal'));
});

test('an option of something else of the package is refused with what it is for, and nothing is locked', async () => {
  const refused = (name, what) => ({
    code: 'ERR_INVALID_ARG_TYPE',
    message: new RegExp(`There is no option '${name}'.*It is an option of .*${what}`),
  });
  for (const create of [
    (options) => new Mutex(buffer, 0, options),
    (options) => new RwLock(buffer, 16, options),
    (options) => new LockManager(options),
  ]) {
    assert.throws(() => create({ fair: true }), refused('fair', 'Semaphore'));
    assert.throws(() => create({ timeout: 100 }), refused('timeout', 'methods that wait'));
  }
  assert.throws(() => new LockManager({ maySleep: false }), refused('maySleep', 'Mutex'));
  // An object that is never marked has nothing to repair, and for what is never kept free a loop does not sleep.
  for (const create of [
    (options) => new Semaphore(buffer, 24, 1, options),
    (options) => new Condition(buffer, 28, options),
    (options) => new ManualResetEvent(buffer, 32, options),
    (options) => new AutoResetEvent(buffer, 32, options),
    (options) => new Latch(buffer, 32, options),
    (options) => new Barrier(buffer, 32, 2, options),
    (options) => new Exchanger(buffer, 32, options),
    (options) => new Once(buffer, 32, options),
  ]) {
    assert.throws(() => create({ onAbandoned: never }), refused('onAbandoned', 'Mutex'));
    assert.throws(() => create({ maySleep: false }), refused('maySleep', 'Mutex'));
  }
  assert.throws(() => redis('redis://host', { heartbeat: 5000 }), refused('heartbeat', 'postgres\\(\\) and mysql'));
  assert.throws(() => postgres('postgres://host/a', { lease: 5000 }), refused('lease', 'redis\\(\\) and etcd'));
  assert.throws(() => new LockManager({ namespace: 'a' }), refused('namespace', 'postgres\\(\\) and its like'));
  assert.throws(() => new Mutex(buffer, 0, { wait: true }), refused('wait', 'close\\(\\) of a LockManager'));
  for (const [verb, call] of Object.entries(CALLS)) {
    await assert.rejects(async () => call({ onAbandoned: never }), refused('onAbandoned', 'constructors'), verb);
    await assert.rejects(async () => call({ scope: 'machine' }), refused('scope', 'LockManager'), verb);
  }
  await assert.rejects(mutex.lockAsync({ ifAvailable: true }), refused('ifAvailable', 'LockManager'));
  assert.deepEqual([mutex.isLocked, await locks.query()], [false, { held: [], pending: [] }]);
  assert.equal(new Semaphore(buffer, 24, 1, { fair: true }).fair, true);
});

/** By option: what other libraries call it, and who takes it. */
const WORDS = {
  timeout: [
    [
      'ms',
      'millis',
      'milliseconds',
      'ttl',
      'wait',
      'waitTime',
      'maxWait',
      'deadline',
      'timeLimit',
      'acquireTimeout',
    ].concat('lockTimeout', 'timeoutSeconds', 'timeout_s', 'timeoutInMs', 'timeoutMsecs'),
    (options) => mutex.lockAsync(options),
  ],
  signal: [
    ['abortSignal', 'abort', 'abortController', 'controller', 'cancelToken', 'cancellationToken'],
    (options) => mutex.lockAsync(options),
  ],
  ref: [['unref', 'keepAlive'], (options) => mutex.lockAsync(options)],
  ifAvailable: [['nonBlocking', 'nowait', 'noWait'], (options) => locks.request('unknown', options, never)],
  lease: [['ttl', 'expiry', 'expire', 'leaseTime'], (options) => redis('redis://host', options)],
  permits: [['weight'], (options) => new Semaphore(buffer, 24, 1).execute(never, options)],
  fair: [['fairness'], (options) => new Semaphore(buffer, 24, 1, options)],
};

for (const [meant, [words, call]] of Object.entries(WORDS)) {
  test(`the words of other libraries for ${meant} are refused with it`, async () => {
    for (const word of words) {
      const message = new RegExp(`There is no option '${word}'.* Did you mean '${meant}'\\?`);
      await assert.rejects(async () => call({ [word]: 1 }), { code: 'ERR_INVALID_ARG_TYPE', message }, word);
    }
    assert.deepEqual([mutex.isLocked, await locks.query()], [false, { held: [], pending: [] }]);
  });
}

test('each option of the package is refused, where it means nothing, with whose it is', async () => {
  const ofLock = (options) => mutex.lockAsync(options);
  const ofManager = (options) => new LockManager(options);
  const primitives = 'the constructors of Mutex, RwLock';
  for (const [names, whose, call] of [
    [['fair'], 'new Semaphore()', ofLock],
    [['timeout', 'signal', 'ref'], 'the methods that wait', ofManager],
    [['maySleep'], `${primitives} and LockTable`, ofLock],
    [['onAbandoned'], `${primitives}, LockTable and LockManager`, ofLock],
    [['allowMainThread'], 'the constructors', ofLock],
    [['scope', 'directory', 'store'], 'new LockManager()', ofLock],
    [['mode', 'fence', 'ifAvailable', 'steal'], 'request() and its like of a LockManager', ofManager],
    [['permits'], 'execute() and executeSync() of a Semaphore', ofLock],
    [['name'], 'the constructors of what is on shared memory', ofLock],
    [['wait'], 'close() of a LockManager', ofManager],
    [['namespace', 'connectTimeout'], 'postgres() and its like', ofLock],
    [['connections', 'heartbeat'], 'postgres() and mysql()', ofLock],
    [['lease', 'renew'], 'redis() and etcd()', ofLock],
    [['replicas'], 'redis()', ofLock],
  ]) {
    for (const name of names) {
      const isRight = ({ message }) =>
        message.includes(`There is no option '${name}'`) && message.includes(` ${whose}. `);
      await assert.rejects(async () => call({ [name]: 1 }), isRight, name);
    }
  }
  assert.equal(mutex.isLocked, false);
});

test('options in the place of the timeout of wait() and waitAsync(), and a timeout in options, are refused by name', (t) => {
  const array = new Int32Array(new SharedArrayBuffer(4));
  t.after(() => notify(array, 0));
  const refused = (name) => ({
    code: 'ERR_INVALID_ARG_TYPE',
    message: new RegExp(`no option '${name}'.*waitAsync\\(typedArray, index, value, timeout, \\{ signal, ref \\}\\)`),
  });
  for (const name of ['timeout', 'timeoutMs', 'signal', 'ref']) {
    assert.throws(() => waitAsync(array, 0, 0, { [name]: 100 }), refused(name));
    assert.throws(() => wait(array, 0, 0, { [name]: 100 }), refused(name));
  }
  for (const name of ['timeout', 'timeoutMs']) {
    assert.throws(() => waitAsync(array, 0, 0, undefined, { [name]: 100 }), refused(name));
  }
  for (const { signal } of [new AbortController(), { signal: AbortSignal.abort() }]) {
    const advised = { code: 'ERR_INVALID_ARG_TYPE', message: /^The "timeout" argument .* Pass \{ signal \}\.$/ };
    assert.throws(() => waitAsync(array, 0, 0, signal), advised);
    assert.throws(() => wait(array, 0, 0, signal), advised);
  }
  // As in Atomics: what becomes a number is one.
  assert.deepEqual(waitAsync(array, 0, 0, { timeout: 100, valueOf: () => 0 }), { async: false, value: 'timed-out' });
  assert.equal(notify(array, 0), 0);
});

test('what is near to nothing means nothing, and what is known by others is known', async () => {
  assert.equal(await mutex.lockAsync({ timeout: 0, retries: 5, comment: 'x', flags: 'r', t: 1, key: 'a' }), true);
  mutex.unlock();
  assert.equal(new Mutex(buffer, 0, { node: 1 }).name, null);
  assert.equal(await locks.request('near', { retries: 5, mode: 'shared', label: 'x' }, ({ mode }) => mode), 'shared');
});
