// The binding's verbs for names: requests of this thread by their numbers, and what is beside them.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { setImmediate } = require('node:timers/promises');
const { threadId } = require('node:worker_threads');
const { binding } = require('../../lib/engine/thread.js');
const { asBeside, isIdle, listen, named, newWords, ownerOf, record, settled } = require('../helpers/seam.js');
const { watched } = require('../helpers/threads.js');

const { Ask, NameMode } = binding;
const { Exclusive, Shared } = NameMode;
const space = binding.nameSpace('names of the binding');

/** For this thread to say what is beside a wait, in milliseconds. */
const LONG_ENOUGH = 1000;

listen();

const request = (name, mode = Exclusive, timeout = Infinity, beside = undefined) => [
  named(binding.requestName(space, name, mode, timeout, false, false, beside)),
  record('Number'),
];
const release = (number) => named(binding.releaseHeld(number, false));
const holdersOf = (name) => binding.nameHolders(space, name).map(({ threadId: id, mode, isIn }) => [id, mode, isIn]);

/** The clock gives back what is beside a wait after it has told of the end of the wait. */
const untilFree = async (name) => {
  while (holdersOf(name).length > 0) await setImmediate();
};

test('a space has one number for each key, and names of two are two', () => {
  assert.equal(binding.nameSpace('names of the binding'), space);
  assert.notEqual(binding.nameSpace('others'), space);
  const [, number] = request('of a space');
  const other = binding.nameSpace('others');
  assert.equal(named(binding.requestName(other, 'of a space', Exclusive, 0, false, false)), 'GRANTED');
  assert.equal(release(record('Number')), 'RELEASED');
  assert.equal(release(number), 'RELEASED');
});

test('a request is granted, waits, or is over at once; a number that is over is nobody’s', () => {
  const [status, first] = request('one');
  assert.equal(status, 'GRANTED');
  assert.deepEqual(holdersOf('one'), [[threadId, Exclusive, true]]);
  assert.equal(request('one', Exclusive, 0)[0], 'TIMED_OUT');
  assert.equal(named(binding.acquireName(space, 'one', Shared, 5, false)), 'TIMED_OUT');
  assert.equal(release(record('Number')), 'NOT_OWNER');
  assert.equal(release(first), 'RELEASED');
  assert.equal(release(first), 'NOT_OWNER');
  assert.equal(named(binding.acquireName(space, 'one', Exclusive, Infinity, false)), 'GRANTED');
  assert.equal(named(binding.letGoOfName(record('Number'))), 'RELEASED');
  assert.deepEqual(holdersOf('one'), []);
  assert.ok(isIdle());
});

test('of a loop: its time, its end by hand, and its grant, each told once', async () => {
  const [, held] = request('two');
  const [status, timed] = request('two', Exclusive, 5);
  assert.equal(status, 'PENDING');
  assert.deepEqual(await settled(), ['TIMED_OUT', record('Token')]);
  assert.equal(release(timed), 'NOT_OWNER');
  assert.equal(request('two')[0], 'PENDING');
  assert.equal(binding.cancel(record('Token')), true);
  assert.equal(binding.cancel(record('Token')), false);
  const [, next] = request('two');
  const token = record('Token');
  assert.deepEqual(
    binding.queuedNames().map(({ name, holders, waiters }) => [name, holders.length, waiters.length]),
    [['two', 1, 1]],
  );
  assert.equal(release(held), 'RELEASED');
  assert.deepEqual(await settled(), ['GRANTED', token]);
  assert.deepEqual(binding.queuedNames(), []);
  assert.equal(release(next), 'RELEASED');
  assert.ok(isIdle());
});

test('those who share come in together, and are shown as pending until they are in', () => {
  const numbers = [request('three', Shared), request('three', Shared)].map(([status, number]) => {
    assert.equal(status, 'GRANTED');
    return number;
  });
  binding.noteIn(numbers[1], false);
  assert.deepEqual(holdersOf('three'), [
    [threadId, Shared, true],
    [threadId, Shared, false],
  ]);
  const { names, rows } = binding.queryNames(space);
  assert.equal(names, 'threethree');
  assert.deepEqual([rows[1], rows[2], rows[3] >= 0, rows[7]], [Shared, threadId, true, -1]);
  binding.noteIn(numbers[1], true);
  assert.deepEqual(holdersOf('three')[1], [threadId, Shared, true]);
  for (const number of numbers) assert.equal(release(number), 'RELEASED');
});

test('what is asked for as a part is not in when it is granted, but when that is said', async () => {
  const requested = (timeout) => named(binding.requestName(space, 'part', Exclusive, timeout, true, false));
  const isIn = () => binding.nameHolders(space, 'part').map((holder) => holder.isIn);
  for (const ask of [() => requested(0), () => named(binding.acquireName(space, 'part', Exclusive, 0, true))]) {
    assert.equal(ask(), 'GRANTED');
    const number = record('Number');
    assert.deepEqual(isIn(), [false]);
    binding.noteIn(number, true);
    assert.deepEqual(isIn(), [true]);
    assert.equal(release(number), 'RELEASED');
  }
  const [, before] = request('part');
  assert.equal(requested(Infinity), 'PENDING');
  const number = record('Number');
  assert.equal(release(before), 'RELEASED');
  // Before its loop knows.
  assert.deepEqual(isIn(), [false]);
  assert.equal((await settled())[0], 'GRANTED');
  assert.equal(release(number), 'RELEASED');
});

test('a name that is stolen is told to its holder, which releases nothing any more', () => {
  const [, robbed] = request('four');
  assert.equal(binding.nextLost(), -1);
  assert.equal(named(binding.stealName(space, 'four')), 'GRANTED');
  const thief = record('Number');
  assert.deepEqual(
    [robbed, thief].map((number) => named(binding.noteIn(number, true))),
    ['NOT_OWNER', 'GRANTED'],
  );
  // `next()` takes in what others have done to this thread.
  assert.equal(binding.next(), binding.NOTHING);
  assert.equal(binding.nextLost(), robbed);
  assert.equal(binding.nextLost(), -1);
  assert.equal(release(robbed), 'NOT_OWNER');
  assert.equal(holdersOf('four').length, 1);
  assert.equal(release(thief), 'RELEASED');
});

test(
  'what an ended thread held is marked until that is taken off, and reported until somebody has',
  watched(async (_t, threads) => {
    const there = threads.start('seam');
    assert.equal(named(await there.call('acquireName', space, 'five', Exclusive, Infinity, false)), 'GRANTED');
    await there.terminate();
    await there.exited;
    const [status, number] = request('five');
    assert.deepEqual([status, record('EndedThread')], ['GRANTED_ABANDONED', there.threadId]);
    const report = binding.setReport(0);
    assert.notEqual(report, 0);
    assert.equal(binding.setReport(0), 0);
    // Its code does not learn of it, so that the next does.
    binding.setReport(report);
    binding.giveBackHeld(number);
    const [again, second] = request('five');
    assert.deepEqual([again, record('EndedThread')], ['GRANTED_ABANDONED', there.threadId]);
    assert.equal(named(binding.lookAtHeld(second)), 'GRANTED_ABANDONED');
    assert.equal(named(binding.markConsistent(second)), 'RELEASED');
    assert.equal(named(binding.lookAtHeld(second)), 'GRANTED');
    assert.equal(release(second), 'RELEASED');
    assert.equal(named(binding.markConsistent(second)), 'NOT_OWNER');
    assert.equal(request('five')[0], 'GRANTED');
    assert.equal(release(record('Number')), 'RELEASED');
  }),
);

test(
  'who steals a name of an ended thread is told of that, as whoever asks for it is',
  watched(async (_t, threads) => {
    const there = threads.start('seam');
    assert.equal(named(await there.call('acquireName', space, 'stolen', Exclusive, Infinity, false)), 'GRANTED');
    await there.terminate();
    await there.exited;
    assert.equal(named(binding.stealName(space, 'stolen')), 'GRANTED_ABANDONED');
    assert.equal(record('EndedThread'), there.threadId);
    assert.equal(release(record('Number')), 'RELEASED');
    assert.equal(request('stolen')[0], 'GRANTED', 'it is told once');
    assert.equal(named(binding.markConsistent(record('Number'))), 'RELEASED');
    assert.equal(release(record('Number')), 'RELEASED');
  }),
);

test('to block for a name of one’s own is a deadlock, whose step has its name', () => {
  const [, number] = request('naïve \ud800');
  assert.equal(named(binding.acquireName(space, 'naïve \ud800', Exclusive, Infinity, false)), 'DEADLOCK');
  assert.equal(record('CycleLength'), 1);
  assert.equal(binding.nameOf(record('Cycle', 1)), 'naïve \ud800');
  assert.equal(release(number), 'RELEASED');
  assert.deepEqual(binding.queryNames(space).names, '');
});

test('when its time is over, what is beside a wait goes back too', async () => {
  const [, blocker] = request('six');
  const [, beside] = request('seven');
  assert.equal(request('six', Exclusive, LONG_ENOUGH, asBeside({ requests: [beside], reports: [0] }))[0], 'PENDING');
  const token = record('Token');
  assert.deepEqual(await settled(), ['TIMED_OUT', token]);
  await untilFree('seven');
  assert.equal(release(beside), 'NOT_OWNER');
  assert.deepEqual(holdersOf('seven'), []);
  assert.equal(release(blocker), 'RELEASED');
});

test(
  'what goes back beside a wait takes the report of an ended holder with it, if its code has not made it',
  watched(async (_t, threads) => {
    const [, blocker] = request('eight');
    for (const isMade of [false, true]) {
      const there = threads.start('seam');
      assert.equal(named(await there.call('acquireName', space, 'nine', Exclusive, Infinity, false)), 'GRANTED');
      await there.terminate();
      await there.exited;
      const [status, beside] = request('nine');
      assert.equal(status, 'GRANTED_ABANDONED');
      const report = binding.setReport(0);
      const both = asBeside({ requests: [beside], reports: [isMade ? 0 : report] });
      assert.equal(request('eight', Exclusive, LONG_ENOUGH, both)[0], 'PENDING');
      assert.equal((await settled())[0], 'TIMED_OUT');
      await untilFree('nine');
      const [, next] = request('nine');
      assert.equal(record('EndedThread'), isMade ? -1 : there.threadId);
      assert.equal(named(binding.markConsistent(next)), 'RELEASED');
      assert.equal(release(next), 'RELEASED');
    }
    assert.equal(release(blocker), 'RELEASED');
  }),
);

test('fences of names grow', () => {
  const fences = [binding.nextFence(), binding.nextFence()];
  assert.ok(fences[0] >= Date.now() * 1000 - 1e9 && fences[1] > fences[0]);
});

test(
  'of several words, each that was waited for is told with its holder, and for how many milliseconds',
  watched(async (_t, threads) => {
    const there = threads.start('seam');
    const lists = [newWords(), newWords(), newWords()];
    const asks = [Ask.Mutex, Ask.Mutex, Ask.Mutex];
    const [first, , last] = lists;
    for (const words of [first, last]) await there.call('acquire', words, Ask.Mutex, 0, 1, 0);
    // This thread blocks for one after the other, each for a while.
    const pause = newWords();
    const freed = there.run([
      ['wait', pause, 0, 0, 60],
      ['release', first, Ask.Mutex, 1, 0],
      ['wait', pause, 0, 0, 60],
      ['release', last, Ask.Mutex, 1, 0],
    ]);
    assert.equal(named(binding.lockAll(lists, asks, Infinity)), 'GRANTED');
    await freed;
    const { indices, waits } = binding.foundAll();
    assert.deepEqual(indices, [0, 1, 2]);
    assert.ok(waits.length > 0);
    assert.equal(waits.at(-1).index, 2);
    for (const { ownerThreadId, begunMs, waitedMs } of waits) {
      assert.equal(ownerThreadId, there.threadId);
      assert.ok(begunMs >= waitedMs && begunMs < 60_000, `${begunMs} ms ago, for ${waitedMs} ms`);
    }
    assert.ok(waits.at(-1).waitedMs >= 30 && waits.at(-1).waitedMs < 60_000, `${waits.at(-1).waitedMs} ms`);
    for (const words of lists) assert.equal(named(binding.release(words, Ask.Mutex, 1, 0)), 'RELEASED');
  }),
);

test('several words are had all or none, in one order whoever asks', async () => {
  const [a, b, c] = [newWords(), newWords(), newWords()];
  const asks = [Ask.Mutex, Ask.Mutex, Ask.Mutex];
  assert.equal(named(binding.lockAll([b, a, a], asks, Infinity)), 'GRANTED');
  assert.deepEqual([record('Locks'), record('StoppedAt')], [2, -1]);
  assert.deepEqual(binding.foundAll(), { indices: [0, 1], reports: [], waits: [] });
  binding.giveBackAll([b, a, a], asks, []);
  assert.deepEqual([a[0], b[0]], [0, 0]);
  binding.tryAcquire(c, Ask.Mutex, 1, 0);
  assert.equal(named(binding.lockAll([a, b, c], asks, Infinity)), 'DEADLOCK');
  assert.deepEqual([a[0], b[0], record('StoppedAt')], [0, 0, 2]);
  assert.equal(named(binding.lockAllAsync([a, b, c], asks, 5, false)), 'PENDING');
  assert.deepEqual(await settled(), ['TIMED_OUT', record('Token')]);
  assert.deepEqual([a[0], b[0]], [0, 0]);
  assert.equal(named(binding.lockAllAsync([a, b, c], asks, Infinity, false)), 'PENDING');
  assert.equal(record('StoppedAt'), 2);
  binding.release(c, Ask.Mutex, 1, 0);
  assert.equal((await settled())[0], 'GRANTED');
  assert.equal(named(binding.goOn()), 'GRANTED');
  assert.ok([a, b, c].every((words) => ownerOf(words) === threadId));
  for (const words of [a, b, c]) assert.equal(named(binding.release(words, Ask.Mutex, 1, 0)), 'RELEASED');
  c.fill(-1);
  for (const verb of ['lockAll', 'lockAllAsync']) {
    assert.equal(named(binding[verb]([a, b, c], asks, 5, false)), 'CORRUPT', verb);
    assert.deepEqual([a[0], b[0], record('StoppedAt')], [0, 0, 2], verb);
  }
  assert.ok(isIdle());
});
