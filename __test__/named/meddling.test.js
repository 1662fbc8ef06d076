// Code of users that runs while a name goes back unlocks it first, and locks another, which gets the number of the first.

const assert = require('node:assert/strict');
const { createHook } = require('node:async_hooks');
const { unsubscribe } = require('node:diagnostics_channel');
const fs = require('node:fs');
const path = require('node:path');
const { test } = require('node:test');
const { LockManager, locks } = require('../..');
const { startActors } = require('../helpers/actors.js');
const { createFolder } = require('../helpers/folder.js');
const { subscribe } = require('../helpers/messages.js');
const { hold } = require('../helpers/names.js');
const { startPeers } = require('../helpers/peers.js');
const { needs } = require('../helpers/runtime.js');
const { watched } = require('../helpers/threads.js');

const blocking = new LockManager({ allowMainThread: true });
const NEEDS = {
  skip: needs('prompt ends').skip || (process.platform === 'win32' && 'the file of a lock cannot be removed'),
};

/** Runs `release`, in which `lock` is unlocked first by a replaced `emitWarning`: the file of the name is gone. */
const inWarning = async (t, directory, lock, release) => {
  let other;
  t.mock.method(process, 'emitWarning', () => {
    if (other !== undefined) return;
    other = null;
    assert.equal(lock.unlock(), true);
    other = blocking.acquire('other');
  });
  fs.rmSync(path.join(directory, `v1-${lock.name}.lock`));
  await release();
  return other;
};

/** Each way in which a lock of a file goes back. */
const WAYS = {
  'unlock()': async (t, directory) => {
    const lock = new LockManager({ directory, allowMainThread: true }).acquire('file');
    return inWarning(t, directory, lock, () => lock.unlock());
  },
  'the end of a request': async (t, directory) => {
    const { lock, release, request } = await hold('file', {}, new LockManager({ directory }));
    return inWarning(t, directory, lock, async () => {
      release();
      await request;
    });
  },
  'a repair that fails for another name': async (t, directory, threads) => {
    const [doomed] = await startActors(threads, 1);
    await doomed.do(async (here, directory) => {
      here.manager = new here.sablock.LockManager({ directory });
      here.kept = await here.manager.acquireAsync(['file', 'last']);
    }, directory);
    await doomed.terminate();
    await doomed.exited;
    let failed;
    let fail;
    const repairing = new LockManager({
      directory,
      onAbandoned: (lock) => {
        if (lock.name === 'file') {
          failed = lock;
          return undefined;
        }
        return new Promise((_, reject) => {
          fail = reject;
        });
      },
    });
    const request = repairing.request(['file', 'last'], () => assert.fail('must not run'));
    await threads.until('the second is repaired', () => fail !== undefined);
    return inWarning(t, directory, failed, async () => {
      fail(new Error('on purpose'));
      await assert.rejects(request, /on purpose/);
    });
  },
  'a wait that times out, by a subscriber': async (t) => {
    const { directory, peers } = await startPeers(t, 1);
    await peers[0].do(async (here) => {
      here.lock = await here.manager.acquireAsync('file');
    });
    let other;
    const meddle = ({ lock }) => {
      if (lock.unlock()) other = blocking.acquire('other');
    };
    subscribe('sablock:contended', meddle);
    const manager = new LockManager({ directory, allowMainThread: true });
    assert.throws(() => manager.acquire('file', { timeout: 5 }), { code: 'ERR_LOCK_TIMEOUT' });
    unsubscribe('sablock:contended', meddle);
    return other;
  },
  'unlock(), in a hook of promises': async () => {
    const lock = blocking.acquire('name');
    // Of a thread that waits itself, the release makes a promise.
    const held = await hold('waited for');
    const waiting = locks.request('waited for', () => {});
    let other;
    const hook = createHook({
      init() {
        if (other !== undefined) return;
        other = null;
        lock.unlock();
        other = blocking.acquire('other');
      },
    });
    hook.enable();
    lock.unlock();
    hook.disable();
    held.release();
    await waiting;
    return other;
  },
};

for (const [how, release] of Object.entries(WAYS)) {
  test(
    `${how}: a lock that is acquired in there stays held, alone`,
    how.includes('a hook of promises') && needs('async hooks').skip ? needs('async hooks') : NEEDS,
    watched(async (t, threads) => {
      const other = await release(t, createFolder(t), threads);
      assert.equal(other.locked, true);
      assert.equal(await locks.request('other', { ifAvailable: true }, (lock) => lock), null);
      assert.equal(other.unlock(), true);
      assert.deepEqual(await locks.query(), { held: [], pending: [] });
    }),
  );
}
