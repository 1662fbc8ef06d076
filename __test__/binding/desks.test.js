// The binding's verbs for stores. This thread asks, and is its own lock worker.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { binding } = require('../../lib/engine/thread.js');
const { fromText, toText } = require('../../lib/engine/error-text.js');
const { asBeside, isIdle, listen, named, namedStore, record } = require('../helpers/seam.js');
const { watched } = require('../helpers/threads.js');

const { Exclusive, Shared } = binding.NameMode;
/** Kinds of tasks. */
const [ASK, CANCEL, RELEASE, ABANDON] = [0, 1, 2, 3];
const NOTHING = -1;

listen();

const served = () => {
  const desk = binding.openDesk(false);
  binding.serveDesk(desk);
  return desk;
};
/** Asks, and takes the task. */
const ask = (desk, mode = Exclusive) => {
  const number = binding.askStore(desk, 5, 1, 'name', mode, 3, 'what else');
  const { kind, number: asked } = binding.nextTask(desk);
  assert.deepEqual([kind, asked], [ASK, number]);
  return number;
};
const taskOf = (desk) => {
  const task = binding.nextTask(desk);
  return task === null ? null : [task.kind, task.number];
};
const news = () => {
  const status = binding.nextStore();
  return status === NOTHING ? null : [namedStore(status), record('Number')];
};
const wait = (number, timeout = Infinity) => namedStore(binding.waitStore(number, timeout));
const over = (desk) => {
  binding.endDesk(desk, toText(new Error('over')));
  assert.ok(isIdle());
};

test('a desk is due until it is served, and ended for good', () => {
  const desk = binding.openDesk(false);
  assert.equal(binding.deskState(desk), 0);
  binding.serveDesk(desk);
  assert.equal(binding.deskState(desk), 1);
  binding.endDesk(desk, toText(new Error('over')));
  assert.equal(binding.deskState(desk), -1);
  assert.equal(binding.nextTask(desk), null);
  const number = binding.askStore(desk, 1, 1, 'name', Exclusive, 0, '');
  assert.equal(wait(number), 'STORE_FAILED');
  assert.equal(fromText(binding.takeStoreText()).message, 'over');
  assert.throws(() => binding.deskState(1e6), /number of a desk/);
  assert.equal(binding.hasDueDesk(), false);
  assert.equal(binding.nextDueDesk(), NOTHING);
});

test('the main desk is due once, and asked for by whoever has none', () => {
  const desk = binding.mainDesk();
  assert.equal(binding.mainDesk(), desk);
  assert.deepEqual([binding.deskState(desk), binding.hasDueDesk()], [0, true]);
  assert.deepEqual([binding.nextDueDesk(), binding.nextDueDesk()], [desk, NOTHING]);
  binding.serveDesk(desk);
  assert.deepEqual([binding.deskState(desk), binding.mainDesk()], [1, desk]);
  over(desk);
});

test(
  'a task says all that was asked, and by whom',
  watched(async (_t, threads) => {
    const there = threads.start('seam');
    const desk = served();
    const number = await there.call('askStore', desk, 5, 1, 'naïve \ud800', Shared, 3, 'what else');
    assert.deepEqual(binding.nextTask(desk), {
      kind: ASK,
      number,
      store: 5,
      verb: 1,
      name: 'naïve \ud800',
      shared: true,
      flags: 3,
      payload: 'what else',
      threadId: there.threadId,
    });
    assert.equal(await there.call('cancelStore', number), true);
    assert.equal(await there.call('cancelStore', number), false);
    assert.deepEqual([taskOf(desk), taskOf(desk)], [[CANCEL, number], null]);
    over(desk);
  }),
);

test(
  'of a thread that ends, what it held alone is released marked, what it shared unmarked, what it asked for withdrawn',
  watched(async (_t, threads) => {
    const there = threads.start('seam');
    const desk = served();
    const asked = [];
    for (const mode of [Exclusive, Shared, Exclusive]) {
      asked.push(await there.call('askStore', desk, 5, 1, 'name', mode, 0, ''));
      assert.deepEqual(taskOf(desk), [ASK, asked.at(-1)]);
    }
    for (const number of asked.slice(0, 2)) {
      assert.equal(binding.grantTask(desk, number, 0, 0, 0, ''), true);
      assert.equal(named(await there.call('waitStore', number, Infinity)), 'GRANTED');
    }
    await there.terminate();
    await there.exited;
    const tasks = [taskOf(desk), taskOf(desk), taskOf(desk)].sort(([, one], [, other]) => one - other);
    assert.deepEqual(
      tasks,
      [ABANDON, RELEASE, CANCEL].map((kind, index) => [kind, asked[index]]),
    );
    over(desk);
  }),
);

test(
  'a desk ends with the thread that serves it',
  watched(async (_t, threads) => {
    const there = threads.start('seam');
    const [desk, other] = [await there.call('openDesk', false), served()];
    await there.call('serveDesk', desk);
    const number = binding.askStore(desk, 1, 1, 'name', Exclusive, 0, '');
    await there.terminate();
    await there.exited;
    await threads.until('it has ended', () => binding.deskState(desk) === -1);
    assert.equal(binding.deskState(other), 1);
    assert.equal(wait(number), 'STORE_FAILED');
    assert.equal(fromText(binding.takeStoreText()).code, 'ERR_LOCK_STORE');
    over(other);
  }),
);

test('each answer is told once, to a loop and to who blocks', () => {
  const desk = served();
  const answers = {
    GRANTED: (number) => assert.equal(binding.grantTask(desk, number, 0, 1, 2, 'text'), true),
    REFUSED: (number) => binding.refuseTask(desk, number),
    STORE_FAILED: (number) => binding.failTask(desk, number, 'why'),
  };
  for (const [status, answer] of Object.entries(answers)) {
    for (const blocks of [false, true]) {
      const number = ask(desk);
      answer(number);
      if (blocks) assert.equal(wait(number), status);
      else assert.deepEqual([news(), news()], [[status, number], null]);
      if (status === 'STORE_FAILED') assert.equal(binding.takeStoreText(), 'why');
      if (status !== 'GRANTED') continue;
      assert.deepEqual([record('FenceHigh'), record('FenceLow'), binding.takeStoreText()], [1, 2, 'text']);
      assert.equal(binding.releaseStore(number, false), 0);
      assert.deepEqual([taskOf(desk), taskOf(desk)], [[RELEASE, number], null]);
      // A second answer, and a second release, find nothing.
      assert.equal(binding.grantTask(desk, number, 0, 0, 0, ''), false);
      assert.equal(binding.releaseStore(number, false), 0);
      assert.equal(taskOf(desk), null);
    }
  }
  over(desk);
});

test('who blocks gives up when the time is over; what is granted after that goes back', () => {
  const desk = served();
  const number = ask(desk);
  assert.equal(wait(number, 5), 'TIMED_OUT');
  assert.deepEqual(taskOf(desk), [CANCEL, number]);
  assert.equal(binding.grantTask(desk, number, 0, 0, 0, ''), false);
  over(desk);
});

test('a deadline ends a request of a loop, whatever its thread does', () => {
  const desk = served();
  const number = ask(desk);
  assert.equal(binding.expireStore(number, 5, asBeside()), true);
  let told = news();
  for (const end = performance.now() + 20_000; told === null && performance.now() < end; told = news());
  assert.deepEqual(told, ['REFUSED', number]);
  assert.deepEqual(taskOf(desk), [CANCEL, number]);
  over(desk);
});

test('a lease is what its lock lasts by: it grows, ends, and its loss is told with its reason', () => {
  const desk = served();
  const now = binding.leaseTime();
  for (const loss of [1, 2, 4]) {
    const number = ask(desk);
    const lease = binding.beginLease(now + 60_000);
    assert.equal(binding.grantTask(desk, number, lease, 0, 0, ''), true);
    assert.deepEqual(news(), ['GRANTED', number]);
    assert.equal(binding.lookStore(number), 0);
    assert.equal(binding.extendLease(lease, now + 120_000), true);
    binding.endLease(desk, lease, loss);
    assert.deepEqual(news(), ['STORE_LOST', number]);
    assert.equal(binding.lookStore(number), loss);
    assert.equal(binding.releaseStore(number, false), loss);
    assert.deepEqual([taskOf(desk), taskOf(desk)], [[RELEASE, number], null]);
  }
  const number = ask(desk);
  const past = binding.beginLease(now - 1);
  binding.grantTask(desk, number, past, 0, 0, '');
  news();
  assert.notEqual(binding.lookStore(number), 0, 'its time is over, and nobody has said so');
  assert.equal(binding.extendLease(past, now + 60_000), false);
  binding.releaseStore(number, false);
  while (taskOf(desk) !== null);
  over(desk);
});

test('a hold that is not in yet, or shared, leaves no mark', () => {
  const desk = served();
  for (const [mode, isIn, hasEnded, kind] of [
    [Exclusive, true, true, ABANDON],
    [Exclusive, true, false, RELEASE],
    [Exclusive, false, true, RELEASE],
    [Shared, true, true, RELEASE],
  ]) {
    const number = ask(desk, mode);
    binding.grantTask(desk, number, 0, 0, 0, '');
    assert.deepEqual(news(), ['GRANTED', number]);
    binding.noteStoreIn(number, isIn);
    binding.releaseStore(number, hasEnded);
    assert.deepEqual(taskOf(desk), [kind, number], `${mode} ${isIn} ${hasEnded}`);
  }
  over(desk);
});

test('with its lock worker a desk fails what waits, and takes what is held', () => {
  const desk = served();
  const [held, waiting] = [ask(desk), ask(desk)];
  binding.grantTask(desk, held, 0, 0, 0, '');
  assert.deepEqual(news(), ['GRANTED', held]);
  binding.endDesk(desk, 'why');
  const both = [news(), news()].sort();
  assert.deepEqual(both, [
    ['STORE_FAILED', waiting],
    ['STORE_LOST', held],
  ]);
  assert.notEqual(binding.releaseStore(held, false), 0);
  assert.ok(isIdle());
});
