// Locks that the clock gives back when a wait of several ends are in nobody's way for ever: a thread that blocks behind its own
// wait with a timeout is in no deadlock, though whoever holds the rest waits for what it has.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { startActors } = require('../helpers/actors.js');
const { holdIn, startPeers, unlockIn } = require('../helpers/peers.js');
const { needs } = require('../helpers/runtime.js');
const { watched } = require('../helpers/threads.js');

const TIMEOUT = 300;

/** By name: `block(index)` is the one or the other of two locks, `both(options)` a promise of both. */
const KINDS = {
  'locks of memory': (here) => {
    const locks = [0, 4].map((offset) => new here.sablock.Mutex(here.buffer, offset));
    return {
      block: (index) => locks[index].acquire(),
      both: (options) => here.sablock.lockAllAsync(locks, options),
    };
  },
  names: (here) => {
    const names = ['goes back, first', 'goes back, last'];
    return {
      block: (index) => here.sablock.locks.acquire(names[index]),
      both: (options) => here.sablock.locks.acquireAsync(names, options),
    };
  },
};

for (const [kind, make] of Object.entries(KINDS)) {
  for (const [what, options, expected] of [
    ['a timeout', { timeout: TIMEOUT }, ['has it', 'ERR_LOCK_TIMEOUT']],
    ['a signal', {}, ['ERR_LOCK_DEADLOCK', 'ABORT_ERR']],
  ]) {
    test(
      `${kind}: behind its own wait with ${what} a thread ${expected[0] === 'has it' ? 'is in no deadlock' : 'is in one'}`,
      needs('termination when busy'),
      watched(async (_t, threads) => {
        const buffer = new SharedArrayBuffer(8);
        const [one, other] = await startActors(
          threads,
          2,
          buffer,
          {
            prepare: (here, source) => {
              here.of = new Function(`return ${source};`)()(here);
              return true;
            },
          },
          String(make),
        );
        await other.do((here) => {
          here.last = here.of.block(1);
        });
        await one.do(async (here, options) => {
          here.controller = new AbortController();
          const { signal } = here.controller;
          here.asked = here.of.both({ signal, ...options }).catch(({ code }) => (code === 20 ? 'ABORT_ERR' : code));
          // In the next turn the first is its own, and the last is asked for.
          await new Promise((resolve) => setImmediate(resolve));
        }, options);
        const blocked = other.do((here) => {
          here.raise(0);
          here.of.block(0).unlock();
          here.last.unlock();
          return 'went on';
        });
        const got = await one.do((here) => {
          here.waitForFlag(0);
          // It blocks by now.
          Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100);
          try {
            here.of.block(1).unlock();
            return 'has it';
          } catch (error) {
            here.controller.abort();
            return error.code;
          }
        });
        assert.deepEqual([got, await one.do((here) => here.asked), await blocked], [...expected, 'went on']);
      }),
    );
  }
}

for (const [what, options, expected] of [
  ['a timeout', { timeout: TIMEOUT }, ['has it', 'ERR_LOCK_TIMEOUT']],
  ['a signal', {}, ['ERR_LOCK_DEADLOCK', 'ABORT_ERR']],
]) {
  test(
    `names of the machine: so it is where another process has the last, and the wait for its file has ${what}`,
    needs('termination when busy'),
    watched(async (t, threads) => {
      const { directory, peers } = await startPeers(t, 1);
      await holdIn(peers[0], 'last');
      const [one] = await startActors(threads, 1);
      const asked = await one.do(
        async (here, directory, options) => {
          const manager = new here.sablock.LockManager({ directory });
          const controller = new AbortController();
          const { signal } = controller;
          const both = manager
            .acquireAsync(['first', 'last'], { signal, ...options })
            .catch(({ code }) => (code === 20 ? 'ABORT_ERR' : code));
          const isPending = async () => (await manager.query()).pending.some(({ name }) => name === 'last');
          while (!(await isPending()));
          let got = 'has it';
          try {
            manager.acquire('first').unlock();
          } catch ({ code }) {
            got = code;
            controller.abort();
          }
          return [got, await both];
        },
        directory,
        options,
      );
      assert.deepEqual(asked, expected);
      await unlockIn(peers[0]);
    }),
  );
}
