const assert = require('node:assert/strict');
const { test } = require('node:test');
const { setImmediate: nextTurn } = require('node:timers/promises');
const { endings } = require('../helpers/endings.js');
const { createMutex } = require('../helpers/memory.js');
const { needs } = require('../helpers/runtime.js');
const { watched } = require('../helpers/threads.js');

for (const [who, verb] of [
  ['a worker', 'lock'],
  ['another event loop', 'lockAsync'],
]) {
  test(
    `${who} queued behind a busy event loop gets the lock while that loop is busy`,
    watched(async (_, threads) => {
      const { buffer, mutex } = createMutex();
      const [holder, next] = await threads.puppets(2, buffer);
      await holder.call('lock');
      const pending = mutex.lockAsync();
      await threads.queued(mutex, 1);
      const served = next.run([[verb], ['raise', 0], ['unlock']]);
      await threads.queued(mutex, 2);
      holder.call('unlock');
      assert.equal(threads.spinUntilRaised(0), true, 'the busy loop held it back');
      assert.equal(await pending, true);
      mutex.unlock();
      await served;
    }),
  );
}

test(
  'a worker that comes when a busy event loop has been offered the lock gets it',
  watched(async (_, threads) => {
    const { buffer, mutex } = createMutex();
    const [holder, worker] = await threads.puppets(2, buffer);
    await holder.call('lock');
    const pending = mutex.lockAsync();
    await threads.queued(mutex, 1);
    const served = holder.run([['unlock'], ['raise', 0]]);
    assert.equal(threads.spinUntilRaised(0), true);
    const late = worker.run([['lock'], ['raise', 1], ['unlock']]);
    assert.equal(threads.spinUntilRaised(1), true, 'the worker was held back by the busy loop');
    assert.equal(await pending, true);
    mutex.unlock();
    await Promise.all([served, late]);
  }),
);

test(
  'a worker queued behind a loop whose thread is blocked elsewhere gets the lock',
  watched(async (_, threads) => {
    const { buffer, mutex } = createMutex();
    const [blockedLoop, worker] = await threads.puppets(2, buffer);
    mutex.tryLock();
    const theirs = blockedLoop.run([['lockAsync'], ['unlock']]);
    await threads.queued(mutex, 1);
    blockedLoop.call('waitForFlag', 0);
    const served = worker.run([['lock'], ['unlock']]);
    await threads.queued(mutex, 2);
    mutex.unlock();
    assert.deepEqual(await served, [true, undefined]);
    threads.raise(0);
    assert.deepEqual(await theirs, [true, undefined]);
  }),
);

test(
  'a timeout against an unlock: whoever is next is served, in any order of the two',
  watched(async (_, threads) => {
    const { buffer, mutex } = createMutex();
    const [leaver, stayer] = await threads.puppets(2, buffer);
    for (let round = 0; round < 60; round++) {
      mutex.tryLock();
      const unlockAt = performance.now() + 1 + (round % 10) / 10;
      const left = leaver.call('timedHold', 1 + (round % 7) / 5);
      const served = stayer.run([['lock'], ['unlock']]);
      const pending = round % 2 === 0 ? mutex.lockAsync() : undefined;
      while (performance.now() < unlockAt) await nextTurn();
      mutex.unlock();
      if (pending) {
        assert.equal(await pending, true);
        mutex.unlock();
      }
      assert.equal((await served)[0], true);
      assert.equal(typeof (await left).value, 'boolean');
    }
    assert.equal(mutex.isLocked, false);
  }),
);

test(
  'waiters with timeouts in every thread lose no wake-up',
  watched(async (_, threads) => {
    const { buffer, mutex } = createMutex();
    const rounds = 300;
    const workers = [0.02, 0.2, 1].map((timeout) =>
      threads.start('gives-up', { buffer, byteOffset: mutex.byteOffset, timeout, rounds }),
    );
    const [patient] = await threads.puppets(1, buffer);
    let isOver = false;
    const done = Promise.all(workers.map((worker) => worker.result)).finally(() => {
      isOver = true;
    });
    while (!isOver) {
      await patient.run([['lock'], ['unlock']]);
      if (await mutex.lockAsync(0.5)) mutex.unlock();
      assert.equal(await mutex.lockAsync(), true);
      mutex.unlock();
    }
    for (const { held, gaveUp } of await done) assert.equal(held + gaveUp, rounds);
    assert.equal(mutex.isLocked, false);
  }),
);

test(
  'aborts against grants from another thread lose no wake-up',
  watched(async (_, threads) => {
    const { buffer, mutex } = createMutex();
    const [worker] = await threads.puppets(1, buffer);
    const churning = worker.call('holdAgainAndAgain', 0);
    for (let round = 0; round < 150; round++) {
      const controllers = Array.from({ length: 4 }, () => new AbortController());
      const waits = controllers.map(async ({ signal }) => {
        try {
          await mutex.lockAsync({ signal });
        } catch (reason) {
          return assert.equal(reason, 'aborted');
        }
        assert.equal(mutex.isHeldByThisThread, true);
        mutex.unlock();
      });
      for (let turn = 0; turn < round % 3; turn++) await nextTurn();
      controllers[round % 4].abort('aborted');
      controllers[(round + 1) % 4].abort('aborted');
      await Promise.all(waits);
    }
    threads.raise(0);
    await churning;
    assert.equal(mutex.isLocked, false);
    assert.deepEqual(mutex.inspect().waiters, []);
  }),
);

for (const ending of endings.filter(({ name }) => name !== 'its resource limits')) {
  test(
    `a waiting thread that ends by ${ending.name} leaves the queue, and the next one is served`,
    needs('prompt ends', ...ending.needs),
    watched(async (_, threads) => {
      const { buffer, mutex } = createMutex();
      const [leaver, stayer] = await threads.puppets(2, buffer);
      mutex.tryLock();
      leaver.call('lockAsync', { ref: false });
      await threads.queued(mutex, 1);
      const served = stayer.run([['lock'], ['unlock']]);
      await threads.queued(mutex, 2);
      await ending.end(leaver);
      assert.deepEqual(
        mutex.inspect().waiters.map(({ threadId }) => threadId),
        [stayer.threadId],
      );
      mutex.unlock();
      assert.deepEqual(await served, [true, undefined]);
    }),
  );
}

test(
  'a blocked thread that is terminated at the moment of the unlock passes the lock on',
  watched(async (_, threads) => {
    const { buffer, mutex } = createMutex();
    const [stayer] = await threads.puppets(1, buffer);
    for (let round = 0; round < 15; round++) {
      const [leaver] = await threads.puppets(1, buffer);
      mutex.tryLock();
      leaver.call('lock');
      await threads.queued(mutex, 1);
      const served = stayer.run([['lock'], ['unlock']]);
      await threads.queued(mutex, 2);
      const steps = [() => mutex.unlock(), () => leaver.terminate()];
      if (round % 2 === 1) steps.reverse();
      const results = steps.map((step) => step());
      assert.deepEqual(await served, [true, undefined]);
      await Promise.all(results);
      assert.equal(await mutex.lockAsync(), true);
      mutex.unlock();
    }
  }),
);

test(
  'an awaiting thread that is terminated at the moment of the unlock passes the lock on',
  watched(async (_, threads) => {
    const { buffer, mutex } = createMutex();
    for (let round = 0; round < 15; round++) {
      const [leaver] = await threads.puppets(1, buffer);
      mutex.tryLock();
      for (let count = 0; count < 5; count++) leaver.call('lockAsync');
      await threads.queued(mutex, 5);
      const pending = mutex.lockAsync();
      const steps = [() => mutex.unlock(), () => leaver.terminate()];
      if (round % 2 === 1) steps.reverse();
      const results = steps.map((step) => step());
      assert.equal(await pending, true);
      mutex.unlock();
      await Promise.all(results);
      assert.equal(mutex.tryLock(), true);
      mutex.unlock();
    }
  }),
);
