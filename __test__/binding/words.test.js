// The binding's verbs on words, called as `lib` calls them: each ask, in each state that its words can be in. A row for each ask.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { binding } = require('../../lib/engine/thread.js');
const { asks, listen, named, newWords, record, settled, testRows } = require('../helpers/seam.js');
const { watched } = require('../helpers/threads.js');

const { Ask, Change } = binding;

listen();

const release = (ask, count = 1, of = 2) => ['release', ask, count, of];
const take = (ask, count = 1, of = 2) => ['acquire', ask, 0, count, of];
const change = (ask, what, count = 0, of = 0) => ['change', ask, what, count, of];

/**
 * The ways in which another thread makes that it cannot be had, `shut`, and can again, `open`; `first` is what makes it so that it
 * can be had at
 * all. `holds`: what is had is released. `over`: what a release of nobody's hold is. `slot`: which count of its slot a hold is in.
 */
const exclusive = (by) => ({ shut: take(by), open: release(by), holds: true, over: 'NOT_OWNER' });
const ROWS = {
  Mutex: exclusive(Ask.Mutex),
  MutexGuarded: exclusive(Ask.Mutex),
  Write: exclusive(Ask.Write),
  WriteGuarded: exclusive(Ask.Write),
  Read: { ...exclusive(Ask.Write), slot: 0 },
  ReadGuarded: { ...exclusive(Ask.Write), slot: 1 },
  Permits: { shut: take(Ask.Permits, 2), open: release(Ask.Permits, 2), holds: true, over: 'RELEASED', slot: 1 },
  FairPermits: {
    shut: take(Ask.FairPermits, 2),
    open: release(Ask.FairPermits, 2),
    holds: true,
    over: 'RELEASED',
    slot: 1,
  },
  LatchPassage: { shut: take(Ask.LatchEntry), open: release(Ask.LatchEntry) },
  LatchEntry: {
    shut: change(Ask.LatchEntry, Change.Add, binding.MAX_COUNT),
    open: change(Ask.LatchEntry, Change.Add, -binding.MAX_COUNT),
    holds: true,
    over: 'NOT_OWNER',
    slot: 1,
    // A wait could only be for what a fault would bring about.
    waits: false,
  },
  ManualResetEvent: {
    first: change(Ask.ManualResetEvent, Change.Set),
    shut: change(Ask.ManualResetEvent, Change.Reset),
    open: change(Ask.ManualResetEvent, Change.Set),
  },
  AutoResetEvent: {
    first: change(Ask.AutoResetEvent, Change.Set),
    shut: change(Ask.AutoResetEvent, Change.Reset),
    open: change(Ask.AutoResetEvent, Change.Set),
  },
  // One party of one passes; of two, it waits for the other.
  BarrierParty: { of: 1, ofShut: 2, open: ['acquire', Ask.BarrierParty, 1000, 1, 2], breaks: true },
  BarrierMember: { holds: true, over: 'RELEASED', slot: 1, waits: false },
  // It meets another only.
  Exchange: { of: 7, isNeverFree: true, open: ['acquire', Ask.Exchange, 1000, 1, 8] },
  Once: exclusive(Ask.Once),
};

const waitersOf = (words, ask) => binding.inspect(words, ask).waiters.length;

/** Each verb that asks: at once, and with a wait. */
const tryAcquire = (words, ask, of) => named(binding.tryAcquire(words, ask, 1, of));
const WAITS = Object.entries({
  acquire: (words, ask, of, timeout) => named(binding.acquire(words, ask, timeout, 1, of)),
  acquireAsync: (words, ask, of, timeout) => named(binding.acquireAsync(words, ask, timeout, false, 1, of)),
});
const VERBS = [['tryAcquire', tryAcquire], ...WAITS];

testRows(ROWS);

for (const name of asks) {
  const ask = Ask[name];
  const { shut, open, first, holds = false, over, slot, waits = true, of = 2, ofShut = of } = ROWS[name];
  const { isNeverFree = false, breaks = false } = ROWS[name];
  const heldOnce = slot === undefined ? [0, 0] : [1 - slot, slot];
  const step = (there, words, [verb, ...args]) => there.call(verb, words, ...args).then(named);
  const prepared = () => {
    const words = newWords();
    const counts = newWords();
    binding.addSlot(words, ask, counts);
    if (first !== undefined) assert.equal(named(binding[first[0]](words, ...first.slice(1))), 'RELEASED');
    return { words, counts };
  };

  test(`${name}: what is free is had by each verb, once for each release`, { skip: isNeverFree }, () => {
    for (const [verb, call] of VERBS) {
      const { words, counts } = prepared();
      const before = [...words];
      assert.equal(call(words, ask, of, 1000), 'GRANTED', verb);
      assert.deepEqual([...counts], heldOnce, verb);
      if (holds) {
        assert.equal(named(binding.release(words, ask, 1, of)), 'RELEASED', verb);
        assert.deepEqual([...words], before, verb);
        assert.equal(named(binding.release(words, ask, 1, of)), over, verb);
      }
      assert.deepEqual([...counts], [0, 0], verb);
      assert.equal(binding.next(), binding.NOTHING);
    }
  });

  test(`${name}: what is given back was never had`, { skip: isNeverFree || !holds }, () => {
    const { words, counts } = prepared();
    const before = [...words];
    assert.equal(tryAcquire(words, ask, of), 'GRANTED');
    binding.giveBack(words, ask, 1, of);
    assert.deepEqual([[...words], [...counts]], [before, [0, 0]]);
  });

  test(
    `${name}: what cannot be had is waited for until its time is over, it is taken back, or it comes`,
    { skip: !waits },
    watched(async (_t, threads) => {
      const there = threads.start('seam');
      for (const [verb, call] of WAITS) {
        const { words, counts } = prepared();
        if (shut !== undefined) assert.match(await step(there, words, shut), /GRANTED|RELEASED/, verb);
        const before = [...words];
        if (!breaks) {
          assert.equal(tryAcquire(words, ask, ofShut), 'TIMED_OUT', verb);
          assert.deepEqual([...words], before, verb);
          const status = call(words, ask, ofShut, 5);
          if (status === 'PENDING') {
            assert.deepEqual(await settled(), ['TIMED_OUT', record('Token')], verb);
          } else {
            assert.deepEqual([status, record('WaitedMs') >= 0], ['TIMED_OUT', true], verb);
          }
        }
        assert.deepEqual([[...counts], waitersOf(words, ask)], [[0, 0], 0], verb);
        if (!verb.endsWith('Async')) continue;
        assert.equal(call(words, ask, ofShut, Infinity), 'PENDING', verb);
        let token = record('Token');
        if (!breaks) {
          assert.equal(waitersOf(words, ask), 1);
          assert.equal(binding.cancel(token), true, verb);
          assert.equal(binding.cancel(token), false, verb);
          assert.deepEqual([waitersOf(words, ask), binding.next()], [0, binding.NOTHING], verb);
          assert.equal(call(words, ask, ofShut, Infinity), 'PENDING', verb);
          token = record('Token');
        }
        assert.match(await step(there, words, open), /GRANTED|RELEASED/, verb);
        assert.deepEqual(await settled(), ['GRANTED', token], verb);
        assert.deepEqual([...counts], heldOnce, verb);
        // The call of `next()` behind it says that it has settled.
        assert.equal(binding.next(), binding.NOTHING, verb);
        assert.equal(binding.cancel(token), false, verb);
        if (holds) assert.equal(named(binding.release(words, ask, 1, of)), 'RELEASED', verb);
      }
    }),
  );

  test(
    `${name}: a grant that is not wanted any more goes on to the next`,
    { skip: !waits || !holds },
    watched(async (_t, threads) => {
      const there = threads.start('seam');
      const [, call] = WAITS.at(-1);
      const { words, counts } = prepared();
      await step(there, words, shut);
      assert.equal(call(words, ask, ofShut, Infinity), 'PENDING');
      await step(there, words, open);
      assert.equal((await settled())[0], 'GRANTED');
      binding.refuse();
      assert.deepEqual([[...counts], binding.next()], [[0, 0], binding.NOTHING]);
      assert.match(await step(there, words, shut), /GRANTED/);
    }),
  );

  test(`${name}: words that it did not write are refused by each verb, and nothing is changed`, () => {
    const { words, counts } = prepared();
    for (const value of [-1, 0x5a5a5a5a]) {
      words.fill(value);
      for (const [verb, call] of VERBS) assert.equal(call(words, ask, of, 5), 'CORRUPT', verb);
      assert.equal(named(binding.release(words, ask, 1, of)), 'CORRUPT');
      for (const each of Object.getOwnPropertyNames(Change)) {
        assert.match(named(binding.change(words, ask, Change[each], 1, of)), /CORRUPT|NOT_OWNER/, each);
      }
      assert.doesNotThrow(() => binding.giveBack(words, ask, 1, of));
      assert.deepEqual([...words, ...counts], [value, value, 0, 0]);
      assert.deepEqual([waitersOf(words, ask), binding.next()], [0, binding.NOTHING]);
    }
    words.fill(0);
    assert.equal(binding.freeSlot(words, ask), true);
  });
}
