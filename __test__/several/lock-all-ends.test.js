// Threads that end while they wait for several locks, or hold them.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { setImmediate: nextTurn } = require('node:timers/promises');
const { lockAll, lockAllAsync, Mutex } = require('../..');
const { binding } = require('../../lib/engine/thread.js');
const { endings } = require('../helpers/endings.js');
const { BYTES } = require('../helpers/memory.js');
const { needs } = require('../helpers/runtime.js');
const { OFFSETS, createMutexes } = require('../helpers/several.js');
const { watched } = require('../helpers/threads.js');

const terminate = endings.find(({ name }) => name === 'terminate()');

/** Takes all, and says which are marked. */
const marks = async (mutexes) => {
  const guard = await lockAllAsync(mutexes);
  const marked = guard.abandoned.map(({ byteOffset }) => byteOffset);
  for (const mutex of guard.abandoned) mutex.markConsistent();
  assert.deepEqual(guard.abandoned, []);
  guard.unlock();
  return marked;
};

for (const ending of endings) {
  test(
    `the end by ${ending.name} of a thread that awaits several locks frees those that it had, unmarked`,
    needs(...ending.needs),
    watched(async (_, threads) => {
      const { buffer, mutexes } = createMutexes();
      const [doomed] = await threads.puppets(1, buffer, ending.options);
      mutexes[2].lock();
      doomed.call('lockAllAsync', OFFSETS, { ref: false });
      await threads.queued(mutexes[2], 1);
      assert.equal(mutexes[1].tryLock(), false);
      const pending = mutexes[1].lockAsync();
      await ending.end(doomed);
      assert.equal(await pending, true);
      assert.equal(mutexes[1].abandoned, false);
      assert.equal(mutexes[2].inspect().waiters.length, 0);
      mutexes[1].unlock();
      mutexes[2].unlock();
      assert.deepEqual(await marks(mutexes), []);
    }),
  );

  test(
    `the end by ${ending.name} of a thread that holds several locks marks all of them`,
    needs('prompt ends', ...ending.needs),
    watched(async (_, threads) => {
      const { buffer, mutexes } = createMutexes();
      const [doomed] = await threads.puppets(1, buffer, ending.options);
      await doomed.call('lockAll', OFFSETS.slice(1));
      const pending = marks(mutexes);
      await ending.end(doomed);
      assert.deepEqual(await pending, OFFSETS.slice(1));
    }),
  );
}

test(
  'terminate() ends a blocked lockAll(), and frees what it had, unmarked',
  needs('termination when busy'),
  watched(async (_, threads) => {
    const { buffer, mutexes } = createMutexes();
    const [doomed] = await threads.puppets(1, buffer);
    mutexes[3].lock();
    doomed.call('lockAll', OFFSETS);
    await threads.queued(mutexes[3], 1);
    assert.equal(mutexes[0].tryLock(), false);
    await terminate.end(doomed);
    mutexes[3].unlock();
    assert.deepEqual(await marks(mutexes), []);
  }),
);

test(
  'all that were abandoned are reported and repaired, whoever blocks or awaits',
  needs('prompt ends'),
  watched(async (_, threads) => {
    for (const form of [lockAll, lockAllAsync]) {
      const repaired = [];
      const onAbandoned = (mutex) => repaired.push(mutex.byteOffset);
      const { buffer, mutexes } = createMutexes({ onAbandoned });
      const [doomed] = await threads.puppets(1, buffer);
      await doomed.call('lockAll', [16, 32]);
      await terminate.end(doomed);
      const guard = await form(mutexes);
      assert.deepEqual([repaired, guard.abandoned], [[16, 32], []]);
      guard.unlock();
    }
  }),
);

for (const [name, form] of Object.entries({ lockAll, lockAllAsync })) {
  test(
    `${name}() repairs what was reported before and not repaired, though only one of its locks has onAbandoned, in whatever place`,
    needs('prompt ends'),
    watched(async (_, threads) => {
      for (const place of OFFSETS.keys()) {
        const { buffer, mutexes } = createMutexes();
        const [doomed] = await threads.puppets(1, buffer);
        await doomed.call(OFFSETS[place], 'lock');
        await terminate.end(doomed);
        assert.deepEqual([mutexes[place].tryLock(), mutexes[place].abandoned], [true, true]);
        mutexes[place].unlock();
        const repaired = [];
        const onAbandoned = (mutex) => repaired.push([mutex, mutex.isHeldByThisThread, mutex.abandoned]);
        const one = new Mutex(buffer, OFFSETS[place], { allowMainThread: true, onAbandoned });
        const guard = await form(mutexes.map((mutex, index) => (index === place ? one : mutex)));
        assert.deepEqual([repaired, guard.abandoned], [[[one, true, true]], []], `place ${place}`);
        guard.unlock();
      }
    }),
  );
}

test(
  'without onAbandoned there is a warning for each, in the thread that gets them',
  needs('prompt ends'),
  watched(async (_, threads) => {
    const { buffer } = createMutexes();
    const [doomed, next] = await threads.puppets(2, buffer);
    await doomed.call('lockAll', [16, 32]);
    await terminate.end(doomed);
    assert.deepEqual(await next.call('lockAll', OFFSETS), [16, 32]);
    await next.call('unlockAll');
    const offsets = (await next.call('warnings')).map(({ message }) => Number(/offset (\d+)/.exec(message)[1]));
    assert.deepEqual(offsets, [16, 32]);
    assert.deepEqual(await next.call('lockAll', OFFSETS), [16, 32], 'the mark stays until markConsistent()');
    assert.equal((await next.call('warnings')).length, 2, 'and is reported once');
  }),
);

test(
  'who gets many marked locks looks at each report a few times, in whatever order the locks are named',
  needs('prompt ends'),
  watched(async (t, threads) => {
    const offsets = Array.from({ length: 100 }, (_, index) => 4 * index);
    const buffer = new SharedArrayBuffer(BYTES);
    const repaired = [];
    const onAbandoned = ({ byteOffset }) => repaired.push(byteOffset);
    const mutexes = offsets
      .map((offset) => new Mutex(buffer, offset, { allowMainThread: true, onAbandoned }))
      .reverse();
    const [doomed] = await threads.puppets(1, buffer);
    await doomed.call('lockAll', offsets);
    await terminate.end(doomed);
    let looks = 0;
    const { foundAll } = binding;
    t.mock.method(binding, 'foundAll', () => {
      const found = foundAll();
      const count = ({ index, ended }) => ({
        get index() {
          looks += 1;
          return index;
        },
        ended,
      });
      return { ...found, reports: found.reports.map(count) };
    });
    const guard = lockAll(mutexes);
    assert.deepEqual([repaired, guard.abandoned], [[...offsets].reverse(), []]);
    guard.unlock();
    assert.ok(looks >= offsets.length && looks <= 3 * offsets.length, `${looks}`);
  }),
);

test(
  'what is given back before its code could ask who has ended is for the next to report',
  needs('prompt ends'),
  watched(async (_, threads) => {
    const { buffer } = createMutexes();
    const [doomed] = await threads.puppets(1, buffer);
    await doomed.call('lockAll', [16, 32]);
    await terminate.end(doomed);
    const words = OFFSETS.map((offset) => new Int32Array(buffer, offset, 1));
    const asks = words.map(() => binding.Ask.MutexGuarded);
    for (let round = 0; round < 2; round++) {
      assert.equal(binding.lockAll(words, asks, 0), binding.GRANTED_ABANDONED, `round ${round}`);
      binding.giveBackAll(words, asks);
    }
  }),
);

for (const [name, form] of Object.entries({ lockAll, lockAllAsync })) {
  test(
    `if onAbandoned throws, ${name}() holds none, and the marks stay for the next`,
    needs('prompt ends'),
    watched(async (_, threads) => {
      let isThrowing = true;
      const repaired = [];
      const onAbandoned = (mutex) => {
        if (isThrowing && mutex.byteOffset === 24) throw new Error('cannot repair');
        repaired.push(mutex.byteOffset);
      };
      const { buffer, mutexes } = createMutexes({ onAbandoned });
      const [doomed, witness] = await threads.puppets(2, buffer);
      await doomed.call('lockAll', [16, 24, 32]);
      await terminate.end(doomed);
      await assert.rejects(async () => form(mutexes), /cannot repair/);
      assert.ok(mutexes.every(({ isHeldByThisThread }) => !isHeldByThisThread));
      assert.deepEqual(repaired, [16]);
      assert.deepEqual(await witness.call('lockAll', OFFSETS), [24, 32]);
      await witness.call('unlockAll');
      const warnings = await witness.call('warnings');
      // That of 24 was published when it was to be repaired; that of 32 is still to be published.
      assert.deepEqual(
        warnings.map(({ message }) => Number(/offset (\d+)/.exec(message)[1])),
        [32],
      );
      isThrowing = false;
      const guard = await form(mutexes);
      assert.deepEqual(repaired, [16, 24, 32]);
      guard.unlock();
    }),
  );
}

test(
  'a timeout of lockAll() leaves a mark that it had come across to be reported by the next',
  needs('prompt ends'),
  watched(async (_, threads) => {
    const { buffer, mutexes } = createMutexes();
    const [doomed, holder, next] = await threads.puppets(3, buffer);
    await doomed.call(8, 'lock');
    await holder.call(32, 'lock');
    await terminate.end(doomed);
    assert.throws(() => lockAll(mutexes, 5), { code: 'ERR_LOCK_TIMEOUT' });
    const pending = lockAllAsync(mutexes, 5);
    await assert.rejects(pending, { code: 'ERR_LOCK_TIMEOUT' });
    await nextTurn();
    assert.equal(await next.call('tryLock', 0).catch(() => null), true);
    assert.equal(await next.call(8, 'tryLock'), true);
    assert.equal(await next.call(8, 'get', 'abandoned'), true);
    const [{ message }] = await next.call('warnings');
    assert.match(message, /Thread \d+ ended while it held the mutex at byte offset 8/);
  }),
);
