// A marked name that is granted and whose code does not run with it: it goes back, and the next holder learns of the end inside.

const assert = require('node:assert/strict');
const { unsubscribe } = require('node:diagnostics_channel');
const { test } = require('node:test');
const { LockManager, locks } = require('../..');
const { thread } = require('../../lib/engine/thread.js');
const { startActors, startBusyActor } = require('../helpers/actors.js');
const { createFolder } = require('../helpers/folder.js');
const { subscribe, warningsOf } = require('../helpers/messages.js');
const { abandon, abandonIn, pendingFor, turns } = require('../helpers/names.js');
const { needs } = require('../helpers/runtime.js');
const { watched } = require('../helpers/threads.js');

const never = () => assert.fail('must not run');

/** Collects the ends that are published during the test, as `name: thread`. */
const endsOf = (t) => {
  const told = [];
  const note = ({ name, ownerThreadId }) => told.push(`${name}: ${ownerThreadId}`);
  subscribe('sablock:abandoned', note);
  t.after(() => unsubscribe('sablock:abandoned', note));
  return told;
};

const VERBS = {
  request: (manager, names, fn) => manager.request(names, fn),
  acquireAsync: (manager, names) => manager.acquireAsync(names),
  requestSync: async (manager, names, fn) => manager.requestSync(names, fn),
  acquire: async (manager, names) => manager.acquire(names),
};

const error = new Error('on purpose');

/** The ways in which a repair fails, and whether only verbs that await have it. */
const FAILURES = {
  throws: [
    () => {
      throw error;
    },
    false,
  ],
  'returns a promise that is rejected': [() => Promise.reject(error), true],
};

for (const [verb, ask] of Object.entries(VERBS)) {
  for (const [what, [fail, isAsync]] of Object.entries(FAILURES)) {
    if (isAsync && (verb === 'requestSync' || verb === 'acquire')) continue;
    test(
      `${verb} of several names: when onAbandoned ${what} for the first, the next holder of the second publishes its end`,
      needs('prompt ends'),
      watched(async (t, threads) => {
        warningsOf(t, 'SABLOCK_ABANDONED');
        const told = endsOf(t);
        const [a, b] = ['a', 'b'].map((name) => `${verb}, ${what}: ${name}`);
        const ended = await abandon(threads, a, b);
        const manager = new LockManager({ allowMainThread: true, onAbandoned: fail });
        await assert.rejects(ask(manager, [a, b], never), error);
        assert.deepEqual([told, await locks.query()], [[`${a}: ${ended}`], { held: [], pending: [] }]);
        const isMarked = (name) =>
          locks.request(name, (lock) => {
            const { abandoned } = lock;
            lock.markConsistent();
            return abandoned;
          });
        assert.deepEqual([await isMarked(b), await isMarked(a)], [true, true]);
        assert.deepEqual(told, [`${a}: ${ended}`, `${b}: ${ended}`]);
      }),
    );
  }

  for (const names of ['a', ['a'], ['a', 'b']]) {
    test(
      `${verb} of ${JSON.stringify(names)}: when the warning fails for want of stack, nothing stays held`,
      needs('prompt ends'),
      watched(async (t, threads) => {
        const told = endsOf(t);
        const [a, b] = ['a', 'b'].map((name) => `${verb} of ${names}: ${name}`);
        const ended = await abandon(threads, a, b);
        const manager = new LockManager({ allowMainThread: true });
        const asked = Array.isArray(names) ? [a, b].slice(0, names.length) : a;
        // It leaves no warning out.
        thread.warnings = undefined;
        const refuse = () => {
          throw new RangeError('Maximum call stack size exceeded');
        };
        t.mock.method(process, 'emitWarning', refuse);
        await assert.rejects(
          ask(manager, asked, () => {}),
          RangeError,
        );
        process.emitWarning.mock.restore();
        assert.deepEqual(await locks.query(), { held: [], pending: [] });
        const warnings = warningsOf(t, 'SABLOCK_ABANDONED');
        for (const name of [a, b]) await locks.request(name, { ifAvailable: true }, () => {});
        for (const name of [a, b]) await locks.request(name, { ifAvailable: true }, (lock) => lock.markConsistent());
        await turns();
        // One who got the lock has published the end; whoever did not has left that to the next.
        assert.deepEqual(told.sort(), [`${a}: ${ended}`, `${b}: ${ended}`]);
        if (verb.startsWith('acquire')) assert.equal(warnings.length, 2);
      }),
    );
  }
}

test(
  'what a busy thread has of several names goes back when their time is over, each with the end that it has to report',
  needs('prompt ends'),
  watched(async (t, threads) => {
    warningsOf(t, 'SABLOCK_ABANDONED');
    const told = endsOf(t);
    const names = ['busy 1', 'busy 2', 'busy 3', 'busy 4'];
    const ended = [await abandon(threads, names[0]), null, await abandon(threads, names[2])];
    const held = await locks.acquireAsync(names[3]);
    const ask = async (here, names, timeout) => {
      const request = here.sablock.locks.request(names, { timeout }, () => 'had');
      // They are asked for one after the other.
      while ((await here.sablock.locks.query()).pending.every(({ name }) => name !== names[3]));
      return [request];
    };
    const { asked, goOn } = await startBusyActor(threads, ask, names, 500);
    for (const [index, name] of names.slice(0, 3).entries()) {
      const isMarked = await locks.request(name, (lock) => {
        const { abandoned } = lock;
        lock.markConsistent();
        return abandoned;
      });
      assert.equal(isMarked, ended[index] !== null, name);
    }
    assert.deepEqual(told, [`${names[0]}: ${ended[0]}`, `${names[2]}: ${ended[2]}`]);
    goOn();
    assert.equal(await asked, 'ERR_LOCK_TIMEOUT');
    held.unlock();
    assert.deepEqual(await locks.query(), { held: [], pending: [] });
  }),
);

test(
  'an end inside that several names have to report is published though the name is stolen before all are there',
  needs('prompt ends'),
  watched(async (t, threads) => {
    warningsOf(t, 'SABLOCK_ABANDONED');
    const told = endsOf(t);
    const ended = await abandon(threads, 'stolen');
    const other = await locks.acquireAsync('wanted');
    const several = locks.request(['stolen', 'wanted'], never);
    await turns();
    const thief = await locks.acquireAsync('stolen', { steal: true });
    other.unlock();
    await assert.rejects(several, { name: 'AbortError' });
    assert.deepEqual(told, [`stolen: ${ended}`]);
    thief.markConsistent();
    thief.unlock();
  }),
);

test(
  'the end inside is published though the name is stolen, and its request aborted, before its code runs',
  needs('prompt ends'),
  watched(async (t, threads) => {
    warningsOf(t, 'SABLOCK_ABANDONED');
    const told = endsOf(t);
    const ended = await abandon(threads, 'aborted');
    const controller = new AbortController();
    const reason = new Error('the reason');
    const request = locks.request('aborted', { signal: controller.signal }, never);
    const thief = await locks.acquireAsync('aborted', { steal: true });
    controller.abort(reason);
    await assert.rejects(request, reason);
    assert.deepEqual(told, [`aborted: ${ended}`]);
    thief.markConsistent();
    thief.unlock();
  }),
);

test(
  'code that throws since not all of several names are available: the next holder reports the end inside, nobody before',
  needs('prompt ends'),
  watched(async (t, threads) => {
    warningsOf(t, 'SABLOCK_ABANDONED');
    const told = endsOf(t);
    const ended = await abandon(threads, 'first of two');
    const other = await locks.acquireAsync('the second is held');
    const names = ['first of two', 'the second is held'];
    const fail = (all) => {
      if (all === null) throw error;
    };
    await assert.rejects(locks.request(names, { ifAvailable: true }, fail), error);
    assert.deepEqual(told, []);
    other.unlock();
    await locks.request('first of two', (lock) => lock.markConsistent());
    assert.deepEqual(told, [`first of two: ${ended}`]);
  }),
);

/** By scope: what a manager is made with. */
const SCOPES = { process: () => ({}), machine: (t) => ({ directory: createFolder(t) }) };

for (const [scope, optionsOf] of Object.entries(SCOPES)) {
  test(
    `an end inside that a thread did not report, since it ended while it waited for the others, is reported by the next: ${scope}`,
    needs('prompt ends'),
    watched(async (t, threads) => {
      warningsOf(t, 'SABLOCK_ABANDONED');
      const told = endsOf(t);
      const options = optionsOf(t);
      const manager = new LockManager(options);
      const other = await manager.acquireAsync('z');
      const ended = await abandonIn(threads, options, 'a');
      const [second] = await startActors(threads, 1);
      const ask = (here, options) => {
        here.manager = new here.sablock.LockManager(options);
        here.request = here.manager.acquireAsync(['a', 'z']);
      };
      await second.do(ask, options);
      await pendingFor(threads, 'z', 1, manager);
      await second.terminate();
      const lock = await manager.acquireAsync('a');
      assert.deepEqual([lock.abandoned, told], [true, [`a: ${ended}`]]);
      lock.markConsistent();
      for (const each of [lock, other]) each.unlock();
    }),
  );

  for (const names of [['a'], ['a', 'z']]) {
    test(
      `an end inside that a thread has reported, which ends then with ${names.join(' and ')}, is reported once: ${scope}`,
      needs('prompt ends'),
      watched(async (t, threads) => {
        const told = endsOf(t);
        const options = optionsOf(t);
        await abandonIn(threads, options, 'a');
        const [second] = await startActors(threads, 1);
        const share = async (here, options, names) => {
          const seen = [];
          here.require('node:diagnostics_channel').subscribe('sablock:abandoned', ({ name }) => seen.push(name));
          here.held = await new here.sablock.LockManager(options).acquireAsync(names, { mode: 'shared' });
          return seen;
        };
        assert.deepEqual(await second.do(share, options, names), ['a']);
        await second.terminate();
        const lock = await new LockManager(options).acquireAsync('a', { mode: 'shared' });
        assert.deepEqual([lock.abandoned, told], [true, []]);
        lock.unlock();
      }),
    );
  }
}
