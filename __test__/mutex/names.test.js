// The name of a lock stands wherever the package speaks of it.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { Condition, Mutex } = require('../..');
const { endings } = require('../helpers/endings.js');
const expected = require('../helpers/expected.js');
const { createHeld } = require('../helpers/held.js');
const { BYTES, OFFSET, overwrite } = require('../helpers/memory.js');
const { subscribe } = require('../helpers/messages.js');
const { needs } = require('../helpers/runtime.js');
const { watched } = require('../helpers/threads.js');

const terminate = endings.find(({ name }) => name === 'terminate()');
const NAME = 'jobs of today';
const PLACE = `the mutex '${NAME}' at byte offset ${OFFSET}`;

const createNamed = (buffer = new SharedArrayBuffer(BYTES)) =>
  new Mutex(buffer, OFFSET, { name: NAME, allowMainThread: true });

const errorOf = async (call) => {
  try {
    await call();
  } catch (error) {
    return error;
  }
  return assert.fail('nothing was thrown');
};

test('a lock knows its name, and null without one', () => {
  const buffer = new SharedArrayBuffer(8);
  assert.equal(new Mutex(buffer, 0, { name: NAME }).name, NAME);
  assert.equal(new Condition(buffer, 4, { name: NAME }).name, NAME);
  assert.equal(new Mutex(buffer).name, null);
  assert.equal(new Condition(buffer).name, null);
  assert.equal(new Mutex(buffer, 0, { name: undefined }).name, null);
});

test('a name is that of one object, and not of the memory', () => {
  const mutex = createNamed();
  assert.equal(new Mutex(mutex.buffer, OFFSET).name, null);
  assert.equal(Reflect.set(mutex, 'name', 'another'), false);
});

test(
  'every error names the lock',
  watched(async () => {
    const mutex = createNamed();
    const onMain = new Mutex(mutex.buffer, OFFSET, { name: NAME });
    const condition = new Condition(mutex.buffer, OFFSET + 4);
    mutex.tryLock();
    const guard = new Mutex(mutex.buffer, OFFSET + 8, { name: 'another' }).tryAcquire();
    const held = {
      'lock() of what is held here': () => mutex.lock(),
      'acquireAsync() in vain': () => mutex.acquireAsync(5),
      'executeLocked() in vain': () => mutex.executeLocked(() => {}, { timeout: 0 }),
      'executeLockedSync() in vain': () => mutex.executeLockedSync(() => {}, { timeout: 0 }),
      'lock() on the main thread': () => onMain.lock(),
      'a bad timeout': () => mutex.lock('5'),
      'a bad signal': () => mutex.lockAsync({ signal: 5 }),
      'a bad function': () => mutex.executeLocked(5),
      'a bad predicate': () => condition.waitFor(mutex, 5),
      'wait() on the main thread': () => condition.wait(onMain),
      'a bad token': () => mutex.leave(guard),
    };
    const free = {
      'unlock()': () => mutex.unlock(),
      'markConsistent()': () => mutex.markConsistent(),
      'wait() without the mutex': () => condition.wait(mutex),
      'a promise where none may be': () => mutex.executeLockedSync(async () => {}),
    };
    const overwritten = {
      'tryLock()': () => mutex.tryLock(),
      'lockAsync()': () => mutex.lockAsync(),
    };
    const check = async (calls) => {
      for (const [what, call] of Object.entries(calls)) {
        const { message } = await errorOf(call);
        assert.ok(message.includes(PLACE), `${what}: ${message}`);
      }
    };
    await check(held);
    mutex.unlock();
    await check(free);
    overwrite(mutex, 1);
    await check(overwritten);
    overwrite(mutex, 0);
  }),
);

test(
  'warnings, channels and inspect() name the lock',
  needs('prompt ends'),
  watched(async (t, threads) => {
    const { buffer, holder } = await createHeld(threads);
    const mutex = createNamed(buffer);
    const names = {};
    for (const channel of ['contended', 'long-hold', 'abandoned', 'deadlock']) {
      const note = ({ name }) => {
        names[channel] = name;
      };
      subscribe(`sablock:${channel}`, note);
      t.after(() => require('node:diagnostics_channel').unsubscribe(`sablock:${channel}`, note));
    }
    const warned = new Promise((resolve) => process.once('warning', resolve));
    const waiting = mutex.lockAsync();
    assert.equal(mutex.inspect().name, NAME);
    await threads.until('the long hold is published', () => names['long-hold'] !== undefined);
    await terminate.end(holder);
    assert.equal(await waiting, true);
    assert.throws(() => mutex.lock(), expected.deadlock(OFFSET));
    assert.deepEqual(names, { 'long-hold': NAME, contended: NAME, abandoned: NAME, deadlock: NAME });
    assert.ok((await warned).message.includes(PLACE));
    mutex.unlock();
  }),
);
