// The diagnostics channels' messages about each kind of primitive: which lock it was, and what.

const assert = require('node:assert/strict');
const diagnostics = require('node:diagnostics_channel');
const { test } = require('node:test');
const { threadId } = require('node:worker_threads');
const sablock = require('../..');
const { endings } = require('../helpers/endings.js');
const { OFFSET } = require('../helpers/memory.js');
const { plain, subscribe } = require('../helpers/messages.js');
const { create, users } = require('../helpers/primitives.js');
const { needs } = require('../helpers/runtime.js');
const { watched } = require('../helpers/threads.js');

const CONTENDED = 'sablock:contended';
const LONG_HOLD = 'sablock:long-hold';
const ABANDONED = 'sablock:abandoned';
const DEADLOCK = 'sablock:deadlock';
const RUNNING = 1;
const terminate = endings.find(({ name }) => name === 'terminate()');
const NAME = 'the thing';

/** Collects the messages of a channel whole; `plain` checks what they say of their lock. */
const listen = (t, channel) => {
  const messages = [];
  const note = (message) => {
    plain(message);
    messages.push(message);
  };
  subscribe(channel, note);
  t.after(() => diagnostics.unsubscribe(channel, note));
  return messages;
};
const subjectOf = (lock, lockKind) => ({
  lock,
  lockKind,
  mutex: lockKind === 'Mutex' ? lock : null,
  name: NAME,
  byteOffset: OFFSET,
});
const endOf = async (user) => {
  await terminate.end(user);
  return user.threadId;
};

/**
 * The ways in which another thread holds something for good, and in which this one waits for it, blocking or not. `owner`: the
 * messages tell the holder's thread, since it shuts all others out.
 */
const cases = {
  'a Mutex': { type: 'Mutex', hold: ['lock'], verb: ['lock', 'lockAsync'], owner: true, mode: 'exclusive' },
  'a writer, to read': {
    type: 'RwLock',
    hold: ['write.lock'],
    verb: ['lock', 'lockAsync'],
    of: 'read',
    owner: true,
    mode: 'exclusive',
  },
  'a writer, to write': {
    type: 'RwLock',
    hold: ['write.acquire'],
    verb: ['lock', 'lockAsync'],
    of: 'write',
    owner: true,
    mode: 'exclusive',
  },
  'a reader, to write': {
    type: 'RwLock',
    hold: ['read.lock'],
    verb: ['lock', 'lockAsync'],
    of: 'write',
    mode: 'shared',
  },
  'guarded readers': {
    type: 'RwLock',
    hold: ['read.acquire'],
    verb: ['lock', 'lockAsync'],
    of: 'write',
    mode: 'shared',
  },
  permits: {
    type: 'Semaphore',
    args: [2],
    hold: ['acquire', 2],
    verb: ['acquire', 'acquireAsync'],
    before: [1],
    isGuarded: true,
    mode: 'permits',
  },
  'a Once': {
    type: 'Once',
    // It is called once: the thread ends while it runs.
    begin: ['callOnce', 'run', 'hang', undefined, RUNNING],
    verb: ['runSync', 'run'],
    before: [() => {}],
    isGuarded: true,
    owner: true,
    mode: 'exclusive',
  },
};

/** Somebody else holds it; `wait(isAsync, limit)` waits for it here, and returns a promise of whether it got it. */
const createCase = async (threads, { type, args = [], hold, begin, of, verb, before = [], isGuarded }) => {
  const { object } = create(type, { allowMainThread: true, name: NAME }, ...args);
  const [holder] = await users(threads, 1, object, {}, args);
  if (begin) {
    holder.call(...begin);
    await threads.raised(RUNNING);
  } else {
    await holder.call('hold', ...hold);
  }
  const wait = async (isAsync, limit) => {
    try {
      const got = await (of ? object[of] : object)[verb[Number(isAsync)]](...before, limit);
      return isGuarded ? true : got;
    } catch (error) {
      if (error.code !== 'ERR_LOCK_TIMEOUT') throw error;
      return false;
    }
  };
  return { object, holder, wait };
};

for (const [name, one] of Object.entries(cases)) {
  const { type, owner = false, mode } = one;

  test(
    `a wait for ${name} is published as contended, with the ${type} that was waited for`,
    needs('prompt ends'),
    watched(async (t, threads) => {
      const { object, holder, wait } = await createCase(threads, one);
      const messages = listen(t, CONTENDED);
      for (const isAsync of [false, true]) assert.equal(await wait(isAsync, 20), false);
      const acquired = wait(true);
      await threads.queued(object, 1);
      const ended = await endOf(holder);
      assert.equal(await acquired, true);
      const expected = [
        ['blocking', 'timed-out'],
        ['async', 'timed-out'],
        ['async', 'acquired'],
      ].map(([kind, outcome]) => ({
        ...subjectOf(object, type),
        kind,
        outcome,
        ownerThreadId: owner ? ended : null,
      }));
      assert.deepEqual(
        messages.map(({ waitedMs, ...rest }) => rest),
        expected,
      );
      assert.ok(messages.every(({ waitedMs }) => waitedMs >= 0 && waitedMs < 40_000));
    }),
  );

  test(
    `a hold of ${name} that lasts is ${owner ? 'published as long, with' : 'no long hold of'} the ${type}`,
    watched(async (t, threads) => {
      const { object, holder, wait } = await createCase(threads, one);
      const messages = listen(t, LONG_HOLD);
      const waiting = wait(true, owner ? undefined : 300);
      if (!owner) {
        assert.equal(await waiting, false);
        assert.deepEqual(messages, []);
        return;
      }
      await threads.until('the hold is published', () => messages.length > 0);
      const [{ heldAtLeastMs, ...rest }] = messages;
      assert.deepEqual(rest, { ...subjectOf(object, type), ownerThreadId: holder.threadId });
      assert.ok(heldAtLeastMs >= 100);
      waiting.catch(() => {});
      await terminate.end(holder);
      assert.equal(await waiting, true);
    }),
  );

  for (const isWaiting of [true, false]) {
    test(
      `the end of a thread with ${name} is published once, ${isWaiting ? 'by who gets in' : 'by the next call that reaches the core'}, with the ${type}`,
      needs('prompt ends'),
      watched(async (t, threads) => {
        const { object, holder, wait } = await createCase(threads, one);
        const messages = listen(t, ABANDONED);
        const first = isWaiting ? wait(true) : undefined;
        if (isWaiting) await threads.queued(object, 1);
        const ended = await endOf(holder);
        assert.equal(await (first ?? wait(true, 1000)), true);
        // A free one is had without the core; these are not served by the word alone.
        for (const isAsync of [false, true]) await wait(isAsync, 1).catch(() => {});
        // Messages of this end only: the memory of an earlier test may have been here, whose end was not published.
        const published = () => messages.filter(({ ownerThreadId }) => ownerThreadId === ended);
        assert.deepEqual(published(), [{ ...subjectOf(object, type), ownerThreadId: ended, mode }]);
        for (const isAsync of [false, true]) await wait(isAsync, 1).catch(() => {});
        assert.equal(published().length, 1);
      }),
    );
  }
}

for (const [type, args, verb, mode] of [
  ['Latch', [], 'enter', 'entry'],
  ['Barrier', [2], 'join', 'member'],
]) {
  test(
    `the end of a thread in a ${type} is published, with the ${type}`,
    needs('prompt ends'),
    watched(async (t, threads) => {
      const { object } = create(type, { name: NAME }, ...args);
      const [doomed] = await users(threads, 1, object, {}, args);
      const messages = listen(t, ABANDONED);
      await doomed.call('hold', verb);
      const waiting = object.waitAsync().catch(({ code }) => code);
      await threads.queued(object, 1);
      const ended = await endOf(doomed);
      assert.equal(await waiting, type === 'Latch' ? true : 'ERR_LOCK_BROKEN');
      assert.deepEqual(messages, [{ ...subjectOf(object, type), ownerThreadId: ended, mode }]);
    }),
  );
}

test(
  'a lock of a table is published as a mutex, with the name of the table',
  needs('prompt ends'),
  watched(async (t, threads) => {
    const { buffer, object } = create('Mutex', {});
    const table = new sablock.LockTable(buffer, OFFSET - 8, 8, { name: NAME });
    const [holder] = await users(threads, 1, object);
    await holder.call('hold', 'lock');
    const messages = [CONTENDED, LONG_HOLD, ABANDONED].map((channel) => listen(t, channel));
    const waiting = table.lockAsync(2);
    await threads.until('the hold is published', () => messages[1].length > 0);
    await terminate.end(holder);
    assert.equal(await waiting, true);
    for (const [message] of messages) {
      assert.ok(message.lock instanceof sablock.Mutex);
      const { lock, lockKind, mutex, name, byteOffset } = message;
      assert.deepEqual(
        [lockKind, mutex === lock, name, byteOffset, message.ownerThreadId],
        ['Mutex', true, NAME, OFFSET, holder.threadId],
      );
    }
  }),
);

for (const [type, verbs] of Object.entries({
  Mutex: [(mutex) => mutex.lock(), (mutex) => mutex.lock()],
  'RwLock to write': [(rw) => rw.read.lock(), (rw) => rw.write.lock()],
  'RwLock to read': [(rw) => rw.write.lock(), (rw) => rw.read.acquire()],
  Once: [(once) => once.run(() => new Promise(() => {})), (once) => once.runSync(() => {})],
  'RwLock by lockAll': [(rw) => rw.write.lock(), (rw) => sablock.lockAll([rw.read])],
})) {
  test(`a deadlock at a ${type} is published, with the object`, (t) => {
    const kind = type.split(' ')[0];
    const { object } = create(kind, { allowMainThread: true, name: NAME });
    const messages = listen(t, DEADLOCK);
    const [hold, wait] = verbs;
    hold(object);
    assert.throws(() => wait(object), { code: 'ERR_LOCK_DEADLOCK', message: new RegExp(`'${NAME}'`) });
    assert.deepEqual(messages, [{ ...subjectOf(object, kind), cycle: [{ threadId, byteOffset: OFFSET }] }]);
  });
}
