// An option that nobody knows is an error where it is near one that is: a misspelt timeout would wait for ever.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { postgres } = require('../../lib/stores/postgres.js');
const { redis } = require('../../lib/stores/redis.js');
const { Condition, LockManager, Mutex, RwLock, lockAllAsync, locks, waitAsync } = require('../..');

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

const MISSPELT = { timeoutMs: 'timeout', timeOut: 'timeout', timout: 'timeout', abortSignal: 'signal', Ref: 'ref' };

for (const [verb, call] of Object.entries(CALLS)) {
  test(`${verb}: a misspelt option is refused with the one that was meant, and nothing is locked`, async () => {
    for (const [wrong, meant] of Object.entries(MISSPELT)) {
      await assert.rejects(async () => call({ [wrong]: 100 }), {
        code: 'ERR_INVALID_ARG_TYPE',
        message: new RegExp(`There is no option '${wrong}'.*Did you mean '${meant}'\\?`),
      });
    }
    assert.deepEqual([mutex.isLocked, await locks.query()], [false, { held: [], pending: [] }]);
  });
}

test('the options of constructors, and of waitAsync, are looked at too', () => {
  const refused = (meant) => ({ code: 'ERR_INVALID_ARG_TYPE', message: new RegExp(`Did you mean '${meant}'\\?`) });
  assert.throws(() => new Mutex(buffer, 0, { allowmainThread: true }), refused('allowMainThread'));
  assert.throws(() => new Condition(buffer, 8, { names: 'a' }), refused('name'));
  assert.throws(() => new LockManager({ onAbandonned: never }), refused('onAbandoned'));
  assert.throws(() => new LockManager({ dir: '/nowhere', directroy: '/tmp' }), refused('directory'));
  assert.throws(() => postgres('postgres://host/a', { nameSpace: 'a' }), refused('namespace'));
  assert.throws(() => postgres('postgres://host/a', { conections: 3 }), refused('connections'));
  assert.throws(() => redis('redis://host', { leaseMs: 3_000 }), refused('lease'));
  assert.throws(() => waitAsync(new Int32Array(buffer), 8, 0, 0, { signals: null }), refused('signal'));
});

test('what is near to nothing means nothing, and what is known by others is known', async () => {
  assert.equal(await mutex.lockAsync({ timeout: 0, retries: 5, comment: 'x', mode: 'r', t: 1 }), true);
  mutex.unlock();
  assert.equal(await locks.request('near', { retries: 5, mode: 'shared', label: 'x' }, ({ mode }) => mode), 'shared');
});
