// Waits for names on the channels `sablock:contended` and `sablock:long-hold`: among threads, and among processes.

const assert = require('node:assert/strict');
const { AsyncLocalStorage } = require('node:async_hooks');
const { subscribe, unsubscribe } = require('node:diagnostics_channel');
const { test } = require('node:test');
const vm = require('node:vm');
const { threadId } = require('node:worker_threads');
const { HeldLock, LockManager, locks } = require('../..');
const { binding } = require('../../lib/engine/thread.js');
const { processBackend } = require('../../lib/named/backend.js');
const { obtainBlocking } = require('../../lib/named/blocking.js');
const { toOptions } = require('../../lib/named/options.js');
const { obtain } = require('../../lib/named/requests.js');
const { startActors } = require('../helpers/actors.js');
const { collector } = require('../helpers/collect.js');
const { hold, pendingFor } = require('../helpers/names.js');
const { startPeers } = require('../helpers/peers.js');
const { needs } = require('../helpers/runtime.js');
const { watched } = require('../helpers/threads.js');

/** Collects what is published from now on until the end of the test. */
const listen = (t, channel, note = (message) => message) => {
  const messages = [];
  const listener = (message) => messages.push(note(message));
  subscribe(channel, listener);
  t.after(() => unsubscribe(channel, listener));
  return messages;
};

const contended = (t, note) => listen(t, 'sablock:contended', note);
const blocking = new LockManager({ allowMainThread: true });
const short = ({ name, kind, outcome, ownerThreadId }) => ({ name, kind, outcome, ownerThreadId });

test('a request that is served at once is not published, nor is one that must not wait', async (t) => {
  const messages = contended(t);
  await locks.request('free', () => {});
  blocking.requestSync('free', () => {});
  const held = await hold('taken');
  assert.equal(await locks.request('taken', { ifAvailable: true }, (lock) => lock), null);
  assert.equal(blocking.acquire('taken', { ifAvailable: true }), null);
  held.release();
  await held.request;
  assert.deepEqual(messages, []);
});

test('a request that waits is published when it has the lock, before its callback runs, in its own context', async (t) => {
  const storage = new AsyncLocalStorage();
  const order = [];
  const messages = contended(t, (message) => {
    order.push(['told', storage.getStore(), message.lock.locked]);
    return message;
  });
  const held = await hold('busy');
  const next = storage.run('asker', () => locks.request('busy', () => order.push(['in'])));
  setTimeout(held.release, 20);
  await next;
  assert.deepEqual(order, [['told', 'asker', true], ['in']]);
  const [{ lock, waitedMs, ...rest }] = messages;
  assert.ok(lock instanceof HeldLock);
  assert.ok(waitedMs >= 15, `${waitedMs} ms`);
  const place = { lockKind: 'HeldLock', mutex: null, name: 'busy', byteOffset: -1 };
  assert.deepEqual(rest, { ...place, kind: 'async', ownerThreadId: threadId, outcome: 'acquired' });
});

test('one that times out or is aborted is published as such; those who share are nobody who holds it alone', async (t) => {
  const messages = contended(t, short);
  const held = await hold('busy', { mode: 'shared' });
  await assert.rejects(
    locks.request('busy', { timeout: 5 }, () => {}),
    { code: 'ERR_LOCK_TIMEOUT' },
  );
  const controller = new AbortController();
  const aborted = locks.request('busy', { signal: controller.signal }, () => {});
  controller.abort();
  await assert.rejects(aborted, { name: 'AbortError' });
  await assert.rejects(async () => blocking.acquire('busy', { timeout: 5 }), { code: 'ERR_LOCK_TIMEOUT' });
  const seen = { name: 'busy', ownerThreadId: null };
  assert.deepEqual(messages, [
    { ...seen, kind: 'async', outcome: 'timed-out' },
    { ...seen, kind: 'async', outcome: 'aborted' },
    { ...seen, kind: 'blocking', outcome: 'timed-out' },
  ]);
  held.release();
  await held.request;
});

test('a request that is aborted between its grant and its callback is published as aborted, once', async (t) => {
  const messages = contended(t, short);
  const runs = new Set();
  for (let moments = 0; moments < 8; moments++) {
    messages.length = 0;
    const held = await hold('busy');
    const controller = new AbortController();
    let hasRun = false;
    const request = locks.request('busy', { signal: controller.signal }, () => {
      hasRun = true;
    });
    held.lock.unlock();
    for (let moment = 0; moment < moments; moment++) await undefined;
    runs.add(hasRun);
    const outcome = hasRun ? 'acquired' : 'aborted';
    controller.abort();
    await request.catch(({ name }) => assert.equal(name, 'AbortError'));
    const seen = messages.map((message) => message.outcome);
    assert.deepEqual(seen, [outcome], `${moments} microtasks`);
    held.release();
    await held.request;
  }
  assert.deepEqual([...runs], [false, true]);
});

test(
  'a thread that blocks publishes its wait and the long hold of another thread, which it sees in its sleep',
  needs('short slices'),
  watched(async (_t, threads) => {
    const [actor] = await startActors(threads, 1);
    const held = await hold('long');
    const LONG = 0;
    const waiting = actor.do((here, flag) => {
      const { subscribe } = here.require('node:diagnostics_channel');
      const seen = [];
      const note = (message) => {
        const { name, kind, outcome, ownerThreadId, heldAtLeastMs } = message;
        if (heldAtLeastMs !== undefined) here.raise(flag);
        seen.push({ name, kind, outcome, ownerThreadId, isLong: heldAtLeastMs >= 100 });
      };
      subscribe('sablock:long-hold', note);
      subscribe('sablock:contended', note);
      here.sablock.locks.requestSync('long', () => {});
      return seen;
    }, LONG);
    await threads.raised(LONG);
    held.release();
    await held.request;
    const seen = await waiting;
    const wait = { name: 'long', kind: 'blocking', outcome: 'acquired', ownerThreadId: 0, isLong: false };
    assert.deepEqual(seen.at(-1), wait);
    assert.ok(seen.length >= 2);
    for (const { name, ownerThreadId, isLong } of seen.slice(0, -1)) {
      assert.deepEqual([name, ownerThreadId, isLong], ['long', 0, true]);
    }
  }),
);

test(
  'what was waited for is not kept, however its waits ended, though somebody has subscribed',
  needs('complete collection', 'termination when busy'),
  watched(async (t, threads) => {
    contended(t);
    const collect = collector();
    /** Waits for a name of a space of its own; returns a weak reference to that. */
    const wait = async (how) => {
      const backend = { ...processBackend, space: binding.nameSpace(`collected: ${how}`) };
      const ask = (options) => obtain(backend, 'name', toOptions('name', options), (lock) => lock, 'acquireAsync');
      const held = await ask({});
      const controller = new AbortController();
      const others = [ask({ signal: controller.signal }), ask({ timeout: how === 'granted' ? 60_000 : 5 })];
      others[0].catch(() => {});
      if (how === 'aborted') controller.abort();
      if (how === 'granted') {
        held.unlock();
        (await others[0]).unlock();
        (await others[1]).unlock();
      } else {
        await assert.rejects(others[1], { code: 'ERR_LOCK_TIMEOUT' });
        const block = (timeout) => obtainBlocking(backend, 'name', toOptions('name', { timeout }), 'acquire');
        assert.throws(() => block(5), { code: 'ERR_LOCK_TIMEOUT' });
        if (how === 'cut off') {
          const limit = () => vm.runInNewContext('block(60_000)', { block }, { timeout: 20 });
          assert.throws(limit, { code: 'ERR_SCRIPT_EXECUTION_TIMEOUT' });
        }
        held.unlock();
        if (how !== 'aborted') (await others[0]).unlock();
        else await assert.rejects(others[0], { name: 'AbortError' });
      }
      return new WeakRef(backend);
    };
    for (const how of ['granted', 'timed out', 'aborted', 'cut off']) {
      const reference = await wait(how);
      await threads.until(`what was ${how} is collected`, () => {
        collect();
        return reference.deref() === undefined;
      });
    }
  }),
);

for (const [how, end] of [
  ['is unlocked', (holder) => holder.do((here) => here.lock.unlock())],
  ['is left by a thread that ends', (holder) => holder.terminate()],
]) {
  test(
    `a thread that blocks for a name that ${how} is told of its wait once, with the lock held`,
    needs('prompt ends'),
    watched(async (_t, threads) => {
      const [holder, blocked] = await startActors(threads, 2);
      await holder.do(async (here) => {
        here.lock = await here.sablock.locks.acquireAsync('blocked for');
      });
      const told = blocked.do((here) => {
        const { subscribe } = here.require('node:diagnostics_channel');
        const seen = [];
        const note = ({ lock, outcome }) => seen.push([outcome, lock.locked]);
        subscribe('sablock:contended', note);
        here.sablock.locks.acquire('blocked for').unlock();
        return seen;
      });
      await pendingFor(threads, 'blocked for', 1);
      await end(holder);
      assert.deepEqual(await told, [['acquired', true]]);
      await locks.request('blocked for', (lock) => lock.markConsistent());
    }),
  );
}

for (const [what, ask] of [
  ['a promise', (manager) => manager.request('a', () => {})],
  ['a thread that blocks', (manager) => manager.acquire('a', { timeout: 30_000 }).unlock()],
]) {
  test(
    `${what} waits for another process: what holds the lock there is published, and that the wait is over`,
    what === 'a promise' ? {} : needs('short slices'),
    watched(async (t) => {
      const { directory, peers } = await startPeers(t, 1);
      const manager = new LockManager({ directory, allowMainThread: true });
      await peers[0].do(async (here) => {
        here.lock = await here.manager.acquireAsync('a');
        setTimeout(() => here.lock.unlock(), 1_000);
      });
      const pick = ({ name, kind, ownerThreadId, ownerPid, outcome, waitedMs, heldAtLeastMs }) => {
        const ms = waitedMs ?? heldAtLeastMs;
        return { name, kind, ownerThreadId, ownerPid, outcome, isLong: ms >= 100 };
      };
      const waits = contended(t, pick);
      const long = listen(t, 'sablock:long-hold', pick);
      await ask(manager);
      const owner = { name: 'a', ownerThreadId: 0, ownerPid: peers[0].pid, isLong: true };
      const kind = what === 'a promise' ? 'async' : 'blocking';
      assert.deepEqual(waits, [{ ...owner, kind, outcome: 'acquired' }]);
      assert.ok(long.length >= 1);
      for (const message of long) assert.deepEqual(message, { ...owner, kind: undefined, outcome: undefined });
      await ask(manager);
      assert.equal(waits.length, 1, 'it was free');
    }),
  );
}

test(
  'several waits of a thread for one name publish a long hold together',
  watched(async (t) => {
    const messages = listen(t, 'sablock:long-hold', ({ heldAtLeastMs }) => heldAtLeastMs);
    const startedAt = performance.now();
    const held = await hold('crowd');
    const waiting = Array.from({ length: 5 }, () => locks.request('crowd', () => {}));
    while (messages.length < 2) await new Promise((resolve) => setTimeout(resolve, 10));
    assert.ok(performance.now() - startedAt >= messages[1], 'it was held no longer than it can have been');
    assert.ok(messages[0] >= 100 && messages[1] >= 200, `${messages}`);
    held.release();
    await Promise.all([held.request, ...waiting]);
  }),
);

for (const verb of ['request', 'acquireAsync', 'requestSync', 'acquire']) {
  test(
    `${verb} of several names publishes a message for each that it had to wait for, with what came of that`,
    watched(async (_, threads) => {
      const [actor] = await startActors(threads, 1);
      for (const isInTime of [true, false]) {
        const names = ['a', 'b', 'c'].map((name) => `${verb}, ${isInTime}: ${name}`);
        const [first, , last] = names;
        const held = [await hold(first), await hold(last)];
        const seen = actor.do(
          async (here, verb, names, timeout) => {
            const { subscribe, unsubscribe } = here.require('node:diagnostics_channel');
            const told = [];
            const note = ({ name, kind, outcome }) => told.push([name, kind, outcome]);
            subscribe('sablock:contended', note);
            try {
              const run = /^request/.test(verb) ? [() => {}] : [];
              (await here.sablock.locks[verb](names, { timeout }, ...run))?.unlock();
            } catch ({ code }) {
              told.push(code);
            }
            unsubscribe('sablock:contended', note);
            return told;
          },
          verb,
          names.toReversed?.() ?? [...names].reverse(),
          isInTime ? 60_000 : 1_000,
        );
        await pendingFor(threads, first, 1);
        held[0].release();
        if (isInTime) {
          await pendingFor(threads, last, 1);
          held[1].release();
        }
        const kind = /Sync$|^acquire$/.test(verb) ? 'blocking' : 'async';
        const ends = isInTime ? [[last, kind, 'acquired']] : [[last, kind, 'timed-out'], 'ERR_LOCK_TIMEOUT'];
        assert.deepEqual(await seen, [[first, kind, 'acquired'], ...ends]);
        held[1].release();
        await Promise.all(held.map(({ request }) => request));
      }
    }),
  );
}
