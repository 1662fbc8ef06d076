// The binding changes and knows of holds, beside acquiring and releasing: changes, marks, lent holds, circles, notifications.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { setImmediate: nextTurn } = require('node:timers/promises');
const { threadId } = require('node:worker_threads');
const { binding } = require('../../lib/engine/thread.js');
const { BYTES } = require('../helpers/memory.js');
const { collector } = require('../helpers/collect.js');
const { needs } = require('../helpers/runtime.js');
const { asks, isIdle, listen, named, newWords, ownerOf, record, settled, testRows } = require('../helpers/seam.js');
const { watched } = require('../helpers/threads.js');

const { Ask, Change } = binding;
const changes = Object.getOwnPropertyNames(Change);

listen();

/** The changes that can be made of zeroed memory, and of what this thread holds; no others can. */
const CAN = {
  Mutex: { held: ['MarkConsistent'] },
  MutexGuarded: { held: ['MarkConsistent'] },
  Write: { held: ['Downgrade', 'MarkConsistent'] },
  WriteGuarded: { held: ['Downgrade', 'MarkConsistent'] },
  Read: { held: ['Upgrade'] },
  ReadGuarded: { held: ['Upgrade'] },
  Permits: { free: ['Add'], held: ['Add'] },
  FairPermits: { free: ['Add'], held: ['Add'] },
  LatchPassage: { free: ['Add'] },
  LatchEntry: { free: ['Add'], held: ['Add'] },
  ManualResetEvent: { free: ['Set', 'Reset'] },
  AutoResetEvent: { free: ['Set', 'Reset'] },
  BarrierParty: { free: ['Reset', 'Break'] },
  BarrierMember: { free: ['Reset', 'Break'], held: ['Reset', 'Break'] },
  Exchange: {},
  Once: { held: ['Finish'] },
};
/** The changes that nobody can see. */
const STAYS = new Set(['Reset', 'MarkConsistent']);

testRows(CAN);

for (const name of asks) {
  for (const state of ['free', 'held'].filter((each) => each === 'free' || CAN[name].held !== undefined)) {
    test(`${name}, ${state}: what cannot be changed is not, and says so`, () => {
      for (const each of changes) {
        const [words, slot] = [newWords(), newWords()];
        binding.addSlot(words, Ask[name], slot);
        if (state === 'held') assert.equal(named(binding.tryAcquire(words, Ask[name], 1, 2)), 'GRANTED');
        const before = [...words, ...slot];
        const can = CAN[name][state]?.includes(each) === true;
        assert.equal(named(binding.change(words, Ask[name], Change[each], 1, 2)), can ? 'RELEASED' : 'NOT_OWNER', each);
        if (can && !STAYS.has(each)) assert.notDeepEqual([...words, ...slot], before, each);
        else assert.deepEqual([...words, ...slot], before, each);
      }
    });
  }
}

test('a hold becomes shared and exclusive again, by the thread and by a guard', () => {
  for (const [write, read, slotOf] of [
    [Ask.Write, Ask.Read, [1, 0]],
    [Ask.WriteGuarded, Ask.ReadGuarded, [0, 1]],
  ]) {
    const [words, slot] = [newWords(), newWords()];
    binding.addSlot(words, Ask.Read, slot);
    binding.tryAcquire(words, write, 1, 0);
    assert.equal(named(binding.change(words, write, Change.Downgrade, 0, 0)), 'RELEASED');
    assert.deepEqual([...slot], slotOf);
    assert.deepEqual(
      binding.holders(words, read).map(({ mode, count }) => [mode, count]),
      [['shared', 1]],
    );
    assert.equal(named(binding.change(words, read, Change.Upgrade, 0, 0)), 'RELEASED');
    assert.deepEqual([...slot], [0, 0]);
    assert.equal(named(binding.release(words, write, 1, 0)), 'RELEASED');
  }
});

test(
  'what an ended thread held is granted with the thread, or with its count, and marked until that is taken off',
  watched(async (_t, threads) => {
    for (const [name, ask] of [
      ['mutex', Ask.Mutex],
      ['guard', Ask.MutexGuarded],
      ['write', Ask.Write],
      ['once', Ask.Once],
    ]) {
      const words = newWords();
      const there = threads.start('seam');
      assert.equal(named(await there.call('acquire', words, ask, 0, 1, 0)), 'GRANTED', name);
      assert.equal(ownerOf(words), there.threadId, name);
      await there.terminate();
      await there.exited;
      const status = named(binding.acquire(words, ask, Infinity, 1, 0));
      assert.equal(status, 'GRANTED_ABANDONED', name);
      assert.equal(record('EndedThread'), there.threadId, name);
      if (ask === Ask.Once) continue;
      assert.equal((words[0] & binding.ABANDONED) !== 0, true, name);
      assert.equal(named(binding.change(words, ask, Change.MarkConsistent, 0, 0)), 'RELEASED', name);
      assert.equal(words[0] & binding.ABANDONED, 0, name);
      assert.equal(named(binding.release(words, ask, 1, 0)), 'RELEASED', name);
      assert.equal(ownerOf(words), null, name);
    }
  }),
);

/**
 * The ways in which what was acquired goes back, though its code does not learn of it: asks, and gives back. Resolves to who
 * ended, as it was told.
 */
const WAYS_BACK = {
  async giveBack(words, ask) {
    assert.equal(named(binding.acquire(words, ask, Infinity, 1, 0)), 'GRANTED_ABANDONED');
    const ended = record('EndedThread');
    binding.giveBack(words, ask, 1, 0);
    return ended;
  },
  async giveBackAll(words, ask) {
    assert.equal(named(binding.lockAll([words], [ask], Infinity)), 'GRANTED_ABANDONED');
    const { reports } = binding.foundAll();
    binding.setReport(reports[0].ended);
    binding.setReport(0);
    binding.giveBackAll([words], [ask], reports);
    return null;
  },
  async 'giveBackAll, whose code has not asked for reports'(words, ask) {
    assert.equal(named(binding.lockAllAsync([words], [ask], Infinity, false)), 'GRANTED_ABANDONED');
    binding.giveBackAll([words], [ask]);
    return null;
  },
  async refuse(words, ask, end) {
    assert.equal(named(binding.acquireAsync(words, ask, Infinity, false, 1, 0)), 'PENDING');
    await end();
    assert.equal((await settled())[0], 'GRANTED_ABANDONED');
    const ended = record('EndedThread');
    binding.refuse();
    assert.equal(binding.next(), binding.NOTHING);
    return ended;
  },
};

for (const [way, goBack] of Object.entries(WAYS_BACK)) {
  for (const name of ['Mutex', 'MutexGuarded', 'Write', 'WriteGuarded', 'Once']) {
    if (name === 'Once' && /All/.test(way)) continue;
    test(
      `${name}: who ended inside is told to the next, if it goes back by ${way}`,
      watched(async (_t, threads) => {
        const [words, ask] = [newWords(), Ask[name]];
        const there = threads.start('seam');
        assert.equal(named(await there.call('acquire', words, ask, 0, 1, 0)), 'GRANTED');
        const end = async () => {
          await there.terminate();
          await there.exited;
        };
        if (way !== 'refuse') await end();
        const told = await goBack(words, ask, end);
        if (told !== null) assert.equal(told, there.threadId);
        for (let round = 0; round < 2; round += 1) {
          assert.equal(named(binding.tryAcquire(words, ask, 1, 0)), 'GRANTED_ABANDONED');
          assert.equal(record('EndedThread'), there.threadId);
          binding.giveBack(words, ask, 1, 0);
        }
        assert.equal(named(binding.tryAcquire(words, ask, 1, 0)), 'GRANTED_ABANDONED');
        assert.equal(named(binding.release(words, ask, 1, 0)), 'RELEASED');
        // Told: the mark stays, and is no news.
        assert.equal(named(binding.tryAcquire(words, ask, 1, 0)), 'GRANTED');
        assert.equal(named(binding.release(words, ask, 1, 0)), 'RELEASED');
      }),
    );
  }
}

test(
  'what went back of an ended thread is told once, to whoever knew the memory before',
  watched(async (_t, threads) => {
    const words = newWords();
    const since = binding.moment();
    const there = threads.start('seam');
    assert.equal(named(await there.call('acquire', words, Ask.Permits, 0, 2, 2)), 'GRANTED');
    // Without a slot nobody knows whose they are.
    assert.deepEqual(binding.takeEnded(words, Ask.Permits, since), []);
    const [kept, slot] = [newWords(), newWords()];
    await there.call('addSlot', kept, Ask.Permits, slot);
    await there.call('acquire', kept, Ask.Permits, 0, 2, 2);
    assert.deepEqual([...slot], [0, 2]);
    await there.terminate();
    await there.exited;
    assert.equal(named(binding.acquire(kept, Ask.Permits, Infinity, 1, 2)), 'GRANTED');
    assert.equal(record('HasEnded'), 1);
    assert.deepEqual(binding.takeEnded(kept, Ask.Permits, binding.moment()), []);
    assert.deepEqual(
      binding.takeEnded(kept, Ask.Permits, since).map(({ threadId }) => threadId),
      [there.threadId],
    );
    assert.deepEqual(binding.takeEnded(kept, Ask.Permits, since), []);
  }),
);

test('to block for what one holds oneself is a deadlock of one step', () => {
  for (const [held, asked, kind] of [
    [Ask.Mutex, Ask.Mutex, 'Mutex'],
    [Ask.MutexGuarded, Ask.Mutex, 'Mutex'],
    [Ask.Write, Ask.Read, 'RwLock'],
    [Ask.Read, Ask.Write, 'RwLock'],
    [Ask.Once, Ask.Once, 'Once'],
  ]) {
    const [words, slot] = [newWords(), newWords()];
    if (kind === 'RwLock') binding.addSlot(words, Ask.Read, slot);
    assert.equal(named(binding.tryAcquire(words, held, 1, 0)), 'GRANTED');
    assert.equal(named(binding.acquire(words, asked, Infinity, 1, 0)), 'DEADLOCK');
    assert.deepEqual([record('CycleLength'), binding.cycleKinds()], [1, [kind]]);
    assert.equal(binding.nameOf(words.byteOffset), null);
    assert.equal(binding.inspect(words, asked).waiters.length, 0);
    assert.equal(named(binding.release(words, held, 1, 0)), 'RELEASED');
  }
});

test(
  'the kinds of a circle are in the order of its steps',
  watched(async (_t, threads) => {
    const there = threads.start('seam');
    const [mutex, once] = [newWords(), newWords()];
    const places = { [Ask.Mutex]: new Int32Array(mutex.buffer, 0, 1), [Ask.Once]: once };
    assert.equal(named(binding.tryAcquire(places[Ask.Mutex], Ask.Mutex, 1, 0)), 'GRANTED');
    assert.equal(named(await there.call('acquire', once, Ask.Once, 0, 1, 0)), 'GRANTED');
    const blocked = there.call('acquire', places[Ask.Mutex], Ask.Mutex, Infinity, 1, 0);
    await threads.until('it waits', () => binding.inspect(places[Ask.Mutex], Ask.Mutex).waiters.length === 1);
    assert.equal(named(binding.acquire(once, Ask.Once, Infinity, 1, 0)), 'DEADLOCK');
    const steps = [0, 1].map((step) => [record('Cycle', 2 * step), record('Cycle', 2 * step + 1)]);
    assert.deepEqual(steps, [
      [threadId, once.byteOffset],
      [there.threadId, 0],
    ]);
    assert.deepEqual(binding.cycleKinds(), ['Once', 'Mutex']);
    assert.equal(named(binding.release(places[Ask.Mutex], Ask.Mutex, 1, 0)), 'RELEASED');
    assert.equal(named(await blocked), 'GRANTED');
  }),
);

const unlockGuard = (word, era) => binding.release(word, Ask.MutexGuarded, 1, 0, era);
const endGuard = (word, era) => binding.endGuard(word, Ask.MutexGuarded, era);
const downgradeGuard = (words, era) => binding.change(words, Ask.WriteGuarded, Change.Downgrade, 0, 0, era);
const whereIs = (word, key) => [named(binding.whereabouts(word, key)), record('Number')];

/** The guard that holds the word, which is of this era, lends its hold to a wait. Returns the number of the hold. */
function lend(word, era) {
  assert.equal(named(binding.waitUnlockedAsync(newWords(), word, Ask.MutexGuarded, Infinity, era)), 'PENDING');
  assert.equal(binding.cancel(record('Token')), true);
  return record('Number');
}

test('a hold that is lent is away until it arrives, and lost if it does not', () => {
  const word = newWords();
  const take = () => assert.equal(named(binding.tryAcquire(word, Ask.MutexGuarded, 1, 0)), 'GRANTED');
  take();
  assert.equal(record('HasAway'), 0);
  const number = lend(word, 7);
  assert.deepEqual(
    [record('HasAway'), whereIs(word, number), whereIs(word, 7)],
    [1, ['AWAY', number], ['AWAY', number]],
  );
  take();
  assert.equal(named(unlockGuard(word, 7)), 'AWAY');
  assert.equal(named(downgradeGuard(word, 7)), 'AWAY');
  assert.equal(named(unlockGuard(word, 8)), 'RELEASED');
  take();
  binding.settleHold(word, number, true);
  assert.deepEqual([record('HasAway'), whereIs(word, number)], [0, ['HERE', 0]]);
  // The era of the guard is over, not that of its hold.
  assert.equal(named(unlockGuard(word, 8)), 'RELEASED');
  assert.equal(named(unlockGuard(word, 8)), 'NOT_OWNER');
  take();
  const lost = binding.watchHold(word, 9);
  binding.settleHold(word, lost, false);
  assert.deepEqual([record('HasAway'), whereIs(word, 9)], [1, ['LOST', lost]]);
  assert.equal(named(downgradeGuard(word, 9)), 'LOST');
  assert.equal(named(unlockGuard(word, 9)), 'LOST');
  assert.deepEqual([record('HasAway'), whereIs(word, 9)], [0, ['HERE', 0]]);
  const away = lend(word, 10);
  assert.equal(named(endGuard(word, 10)), 'AWAY');
  assert.equal(record('Number'), away);
  assert.deepEqual(whereIs(word, away), ['HERE', 0]);
  binding.settleHold(word, away, false);
  assert.equal(record('HasAway'), 0);
  take();
  assert.equal(named(endGuard(word, 11)), 'RELEASED');
});

test('a guard that is watched is here while it holds', () => {
  const word = newWords();
  binding.tryAcquire(word, Ask.MutexGuarded, 1, 0);
  const watched = binding.watchHold(word, 20);
  assert.deepEqual([record('HasAway'), whereIs(word, watched)], [1, ['HERE', watched]]);
  const [held] = word;
  word[0] = -1;
  for (const end of [unlockGuard, endGuard]) assert.equal(named(end(word, 20)), 'CORRUPT', end.name);
  assert.deepEqual(whereIs(word, watched), ['HERE', watched]);
  word[0] = held;
  assert.equal(named(unlockGuard(word, 20)), 'RELEASED');
  assert.deepEqual(whereIs(word, watched), ['HERE', 0]);
  binding.unwatchHold(word, watched);
  assert.equal(record('HasAway'), 0);
});

test('a guarded write hold becomes shared while it is here', () => {
  const [words, slot] = [newWords(), newWords()];
  binding.addSlot(words, Ask.Read, slot);
  binding.tryAcquire(words, Ask.WriteGuarded, 1, 0);
  assert.equal(named(downgradeGuard(words, 30)), 'RELEASED');
  assert.deepEqual([...slot], [0, 1]);
  assert.equal(named(downgradeGuard(words, 30)), 'NOT_OWNER');
  assert.equal(named(binding.release(words, Ask.ReadGuarded, 1, 0)), 'RELEASED');
});

test(
  'a notification is for whoever waits for the value that is there',
  watched(async (_t, threads) => {
    const there = threads.start('seam');
    const cell = newWords();
    assert.equal(named(binding.wait(cell, 0, 1, 5)), 'REFUSED');
    assert.equal(named(binding.waitAsync(cell, 0, 1, 5)), 'REFUSED');
    assert.equal(named(binding.wait(cell, 0, 0, 5)), 'TIMED_OUT');
    assert.equal(binding.notify(cell, 0, Infinity), 0);
    assert.equal(named(binding.waitAsync(cell, 0, 0, 5)), 'PENDING');
    assert.deepEqual(await settled(), ['TIMED_OUT', record('Token')]);
    const tokens = [0, 1].map(() => {
      assert.equal(named(binding.waitAsync(cell, 0, 0, Infinity)), 'PENDING');
      return record('Token');
    });
    const blocked = there.call('wait', cell, 0, 0, Infinity);
    await threads.until('three wait', () => binding.waiting(cell, 0) === 3);
    assert.deepEqual([binding.waiting(cell, 1), binding.notify(cell, 1, 9)], [0, 0]);
    assert.equal(binding.notify(cell, 0, 2), 2);
    assert.deepEqual(
      [await settled(), await settled()],
      [
        ['GRANTED', tokens[0]],
        ['GRANTED', tokens[1]],
      ],
    );
    assert.equal(binding.notify(cell, 0, Infinity), 1);
    assert.equal(named(await blocked), 'GRANTED');
    assert.ok(isIdle());
  }),
);

test('who waits for an element is shown at its place in the buffer', () => {
  const start = 4 * BYTES;
  for (const [Type, value] of [
    [Int32Array, 0],
    [BigInt64Array, 0n],
  ]) {
    const array = new Type(new SharedArrayBuffer(8 * BYTES), start, 4);
    assert.equal(named(binding.waitAsync(array, 3, value, Infinity)), 'PENDING');
    assert.deepEqual(
      binding.inspectAll().map(({ byteOffset, inspection }) => [byteOffset, inspection.waiters.length]),
      [[start + 3 * Type.BYTES_PER_ELEMENT, 1]],
    );
    assert.equal(binding.cancel(record('Token')), true);
  }
});

test(
  'who waits for a condition holds again, notified or not',
  watched(async (_t, threads) => {
    const there = threads.start('seam');
    const [condition, word] = [newWords(), newWords()];
    assert.equal(named(binding.waitUnlocked(condition, word, Ask.Mutex, 5, 0)), 'NOT_OWNER');
    assert.equal(named(binding.waitUnlockedAsync(condition, word, Ask.Mutex, 5, 0)), 'NOT_OWNER');
    for (const verb of ['waitUnlocked', 'waitUnlockedAsync']) {
      assert.equal(named(binding[verb](condition, word, Ask.MutexGuarded, 5, 60)), 'NOT_OWNER', verb);
      assert.deepEqual([record('HasAway'), whereIs(word, 60)], [0, ['HERE', 0]], `${verb}: nothing was lent`);
    }
    for (const value of [-1, 0x5a5a5a5a]) {
      const spoiled = newWords().fill(value);
      assert.equal(named(binding.waitUnlocked(condition, spoiled, Ask.Mutex, 5, 0)), 'CORRUPT');
      assert.equal(named(binding.waitUnlockedAsync(condition, spoiled, Ask.Mutex, 5, 0)), 'CORRUPT');
      assert.deepEqual([spoiled[0], binding.waiting(condition, 0), isIdle()], [value, 0, true]);
    }
    binding.tryAcquire(word, Ask.Mutex, 1, 0);
    assert.match(named(binding.waitUnlocked(condition, word, Ask.Mutex, 5, 0)), /GRANTED/);
    assert.deepEqual([record('IsNotified'), ownerOf(word)], [0, require('node:worker_threads').threadId]);
    // The wait of a loop is over first; its word is asked for after that.
    assert.equal(named(binding.waitUnlockedAsync(condition, word, Ask.Mutex, Infinity, 0)), 'PENDING');
    const token = record('Token');
    assert.deepEqual([word[0], binding.inspect(condition).waiters.length], [0, 1]);
    await there.call('acquire', word, Ask.Mutex, 0, 1, 0);
    const waiting = there.call('waitUnlocked', condition, word, Ask.Mutex, Infinity, 0);
    await threads.until('both wait', () => binding.waiting(condition, 0) === 2);
    assert.equal(binding.notify(condition, 0, 1), 1);
    assert.deepEqual(await settled(), ['GRANTED', token]);
    assert.equal(record('IsForHold'), 0);
    // Its code does not get the word: the notification goes to the next.
    binding.accept(token, false);
    assert.match(named(await waiting), /GRANTED/);
    assert.equal(ownerOf(word), there.threadId);
    assert.equal(named(await there.call('release', word, Ask.Mutex, 1, 0)), 'RELEASED');
    assert.ok(isIdle());
  }),
);

test(
  'the hold of a guard that is lent to a blocking wait is back, or lost if its word cannot be locked again',
  watched(async (_t, threads) => {
    const there = threads.start('seam');
    await there.call('wake');
    const [condition, word] = [newWords(), newWords()];
    const take = () => assert.equal(named(binding.tryAcquire(word, Ask.MutexGuarded, 1, 0)), 'GRANTED');
    take();
    assert.match(named(binding.waitUnlocked(condition, word, Ask.MutexGuarded, 5, 40)), /GRANTED/);
    assert.deepEqual(
      [record('HasAway'), whereIs(word, 40), named(unlockGuard(word, 41))],
      [0, ['HERE', 0], 'RELEASED'],
    );
    take();
    const other = there.run([
      ['acquire', word, Ask.Mutex, Infinity, 1, 0],
      ['store', word, -1],
      ['notify', condition, 0, 1],
    ]);
    await threads.until('it waits', () => binding.inspect(word, Ask.Mutex).waiters.length === 1);
    assert.equal(named(binding.waitUnlocked(condition, word, Ask.MutexGuarded, Infinity, 42)), 'CORRUPT');
    await other;
    assert.deepEqual([record('HasAway'), whereIs(word, 42)[0]], [1, 'LOST']);
    assert.equal(named(unlockGuard(word, 42)), 'LOST');
    assert.equal(record('HasAway'), 0);
  }),
);

test(
  'memory that somebody waits for stays until the last of its waits is over',
  needs('complete collection', "V8's flags"),
  async () => {
    const collect = collector();
    const begun = () => {
      const words = new Int32Array(new SharedArrayBuffer(8), 0, 1);
      assert.equal(named(binding.tryAcquire(words, Ask.Mutex, 1, 0)), 'GRANTED');
      const tokens = [0, 1].map(() => {
        assert.equal(named(binding.acquireAsync(words, Ask.Mutex, Infinity, false, 1, 0)), 'PENDING');
        return record('Token');
      });
      return { tokens, words: new WeakRef(words) };
    };
    const { tokens, words } = begun();
    const isThere = async () => {
      for (let round = 0; round < 3; round += 1) {
        await nextTurn();
        collect();
      }
      return words.deref() !== undefined;
    };
    assert.equal(await isThere(), true);
    assert.equal(binding.cancel(tokens[0]), true);
    assert.equal(await isThere(), true);
    assert.equal(binding.cancel(tokens[1]), true);
    assert.equal(await isThere(), false);
  },
);
