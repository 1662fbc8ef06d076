// Threads end anywhere: what they held goes to others, marked; what they asked for is withdrawn.

const assert = require('node:assert/strict');
const diagnostics = require('node:diagnostics_channel');
const { once } = require('node:events');
const { test } = require('node:test');
const { HeldLock, locks } = require('../..');
const { startActors } = require('../helpers/actors.js');
const { endings } = require('../helpers/endings.js');
const { subscribe } = require('../helpers/messages.js');
const { hold, modesOf, pendingFor, turns } = require('../helpers/names.js');
const { holdIn: holdInPeer, startPeers, unlockIn } = require('../helpers/peers.js');
const { needs } = require('../helpers/runtime.js');
const { watched } = require('../helpers/threads.js');

/** Collects what is published in this thread about ended threads that held this name: each once, as the warnings, but all. */
const listen = (t, name) => {
  const ended = [];
  const note = ({ lock, lockKind, mutex, byteOffset, ...message }) => {
    if (message.name !== name) return;
    assert.deepEqual([lock instanceof HeldLock, lockKind, mutex, byteOffset], [true, 'HeldLock', null, -1]);
    ended.push([message.ownerThreadId, message.mode]);
  };
  subscribe('sablock:abandoned', note);
  t.after(() => diagnostics.unsubscribe('sablock:abandoned', note));
  return ended;
};

/** Holds the name in a thread of its own, for ever. */
const holdIn = async (threads, name, mode, options) => {
  const [doomed] = await startActors(threads, 1, undefined, options);
  await doomed.do(
    async (here, name, mode) => {
      here.lock = await here.sablock.locks.acquireAsync(name, { mode });
    },
    name,
    mode,
  );
  return doomed;
};

test(
  'the thread that gets the name of an ended one is warned, with the name',
  needs('prompt ends'),
  watched(async (_, threads) => {
    const doomed = await holdIn(threads, 'warned', 'exclusive');
    const warned = once(process, 'warning');
    await doomed.terminate();
    await doomed.exited;
    await locks.request('warned', () => {});
    const [{ code, name, message }] = await warned;
    assert.deepEqual([code, name], ['SABLOCK_ABANDONED', 'AbandonedLockWarning']);
    assert.match(message, new RegExp(`^Thread ${doomed.threadId} ended while it held the named lock 'warned'`));
    await locks.request('warned', (lock) => lock.markConsistent());
  }),
);

for (const { name: ending, end, options, needs: needed } of endings) {
  test(
    `a name whose holder ends by ${ending} goes to the next, marked, and is published once`,
    needs(...needed),
    watched(async (t, threads) => {
      const ended = listen(t, 'doomed');
      const doomed = await holdIn(threads, 'doomed', 'exclusive', options);
      const next = locks.request('doomed', ({ abandoned }) => abandoned);
      await pendingFor(threads, 'doomed', 1);
      await end(doomed);
      assert.equal(await next, true);
      assert.deepEqual(ended, [[doomed.threadId, 'exclusive']]);
      await locks.request('doomed', (lock) => lock.markConsistent());
      assert.equal(await locks.request('doomed', ({ abandoned }) => abandoned), false);
    }),
  );
}

for (const [way, verb, isHeldElsewhere] of [
  ['an awaited request for a free name', 'acquireAsync', false],
  ['an awaited request, for which another process has made room', 'acquireAsync', true],
  ['a blocking request for a free name', 'acquire', false],
  ['a blocking request, for which another process has made room', 'acquire', true],
]) {
  test(
    `a name of the machine whose holder has got it by ${way} goes to the next, marked`,
    needs('prompt ends'),
    watched(async (t, threads) => {
      const { directory, manager, peers } = await startPeers(t, 1);
      const [doomed] = await startActors(threads, 1);
      if (isHeldElsewhere) await holdInPeer(peers[0], 'doomed');
      const got = doomed.do(
        async (here, directory, verb) => {
          here.lock = await new here.sablock.LockManager({ directory })[verb]('doomed');
        },
        directory,
        verb,
      );
      if (isHeldElsewhere) {
        while ((await manager.query()).pending.length === 0);
        await unlockIn(peers[0]);
      }
      await got;
      await doomed.do(() => true);
      await doomed.terminate();
      await doomed.exited;
      assert.equal(await manager.request('doomed', ({ abandoned }) => abandoned), true);
    }),
  );
}

test(
  'the end of a holder for whom nobody waits is reported by the next to come, and the mark stays',
  needs('prompt ends'),
  watched(async (t, threads) => {
    const ended = listen(t, 'nobody waits');
    const doomed = await holdIn(threads, 'nobody waits', 'exclusive');
    await doomed.terminate();
    await doomed.exited;
    assert.deepEqual(await modesOf('nobody waits'), { held: [], pending: [] });
    const seen = ({ abandoned }) => abandoned;
    assert.equal(await locks.request('nobody waits', { ifAvailable: true }, seen), true);
    assert.equal(await locks.request('nobody waits', { mode: 'shared' }, seen), true);
    await locks.request('nobody waits', (lock) => lock.markConsistent());
    assert.equal(await locks.request('nobody waits', seen), false);
    assert.deepEqual(ended, [[doomed.threadId, 'exclusive']]);
  }),
);

test(
  'the end of one who shares a name marks nothing, and lets the next in',
  needs('prompt ends'),
  watched(async (t, threads) => {
    const ended = listen(t, 'sharer');
    const doomed = await holdIn(threads, 'sharer', 'shared');
    const other = await hold('sharer', { mode: 'shared' });
    const next = locks.request('sharer', ({ abandoned }) => abandoned);
    await doomed.terminate();
    await doomed.exited;
    assert.deepEqual(await modesOf('sharer'), { held: ['shared'], pending: ['exclusive'] });
    other.release();
    assert.equal(await next, false);
    assert.deepEqual(ended, []);
  }),
);

test(
  'a thread that ends gives back all that it held, of many names',
  needs('prompt ends'),
  watched(async (_, threads) => {
    const [doomed] = await startActors(threads, 1);
    await doomed.do(async (here) => {
      here.kept = await Promise.all(
        Array.from({ length: 1_000 }, (_, index) => here.sablock.locks.acquireAsync(`of many ${index}`)),
      );
    });
    assert.equal((await locks.query()).held.length, 1_000);
    await doomed.terminate();
    await doomed.exited;
    assert.equal((await locks.query()).held.length, 0);
    for (let index = 0; index < 1_000; index++) {
      await locks.request(`of many ${index}`, (lock) => lock.markConsistent());
    }
  }),
);

test(
  'a thread that ends while it waits, blocked or by a promise, leaves the queue to those behind it',
  needs('termination when busy'),
  watched(async (_, threads) => {
    const reader = await hold('waiting', { mode: 'shared' });
    const [blocked, awaits] = await startActors(threads, 2);
    blocked.do((here) => void here.sablock.locks.acquire('waiting'));
    await pendingFor(threads, 'waiting', 1);
    awaits.do((here) => void here.sablock.locks.acquireAsync('waiting'));
    await pendingFor(threads, 'waiting', 2);
    const late = locks.request('waiting', { mode: 'shared' }, ({ abandoned }) => abandoned);
    await Promise.all([blocked.terminate(), awaits.terminate()]);
    assert.equal(await late, false);
    reader.release();
    await reader.request;
  }),
);

test(
  'a name that was granted to a thread that ends before its code learns of it passes on unmarked',
  needs('termination when busy'),
  watched(async (t, threads) => {
    const ended = listen(t, 'never knew');
    const held = await hold('never knew');
    const [busy] = await startActors(threads, 1);
    busy.do((here) => {
      here.sablock.locks.request('never knew', () => process._rawDebug('never'));
      here.raise(0);
      for (;;);
    });
    await threads.raised(0);
    const next = locks.request('never knew', ({ abandoned }) => abandoned);
    held.release();
    await turns();
    assert.deepEqual(await modesOf('never knew'), { held: ['exclusive'], pending: ['exclusive'] });
    await busy.terminate();
    assert.equal(await next, false);
    assert.deepEqual(ended, []);
  }),
);

test(
  'a thread that is terminated inside requestSync() has ended inside',
  needs('termination when busy'),
  watched(async (_, threads) => {
    const [doomed] = await startActors(threads, 1);
    doomed.do((here) =>
      here.sablock.locks.requestSync('inside', () => {
        here.raise(0);
        for (;;);
      }),
    );
    await threads.raised(0);
    const next = locks.request('inside', (lock) => {
      lock.markConsistent();
      return 'went on';
    });
    await doomed.terminate();
    assert.equal(await next, 'went on');
  }),
);

test(
  'a thread whose lock was stolen ends, and its end marks nothing',
  needs('prompt ends'),
  watched(async (t, threads) => {
    const ended = listen(t, 'stolen before');
    const doomed = await holdIn(threads, 'stolen before', 'exclusive');
    await locks.request('stolen before', { steal: true }, (lock) => lock.markConsistent());
    const held = await hold('stolen before');
    await doomed.terminate();
    await doomed.exited;
    assert.equal(held.lock.locked, true);
    held.release();
    await held.request;
    assert.equal(await locks.request('stolen before', ({ abandoned }) => abandoned), false);
    assert.deepEqual(ended, []);
  }),
);

test(
  'threads that ask, hold and end at random leave nothing behind',
  needs('termination when busy'),
  watched(async (_, threads) => {
    for (let round = 0; round < 8; round++) {
      const actors = await startActors(threads, 2);
      for (const actor of actors) {
        actor.do((here) => {
          const names = ['a', 'b', 'c'];
          const ask = async (index) => {
            for (;;) {
              const mode = index % 3 === 0 ? 'shared' : 'exclusive';
              await here.sablock.locks.request(names[index % names.length], { mode }, () => {}).catch(() => {});
              index += 7;
            }
          };
          for (let index = 0; index < 6; index++) ask(index);
          setInterval(() => here.sablock.locks.request('a', { steal: true }, () => {}).catch(() => {}), 1);
          here.raise(0);
        });
      }
      await threads.raised(0);
      const mine = ['a', 'b', 'c'].map((name) => locks.request(name, () => {}).catch(({ name }) => name));
      await Promise.all(mine);
      await Promise.all(actors.map((actor) => actor.terminate()));
      await Promise.all(actors.map((actor) => actor.exited));
      assert.deepEqual(await locks.query(), { held: [], pending: [] });
    }
  }),
);
