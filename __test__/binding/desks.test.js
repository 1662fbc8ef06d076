// The binding's verbs for stores. This thread asks, and is its own lock worker.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { binding, thread } = require('../../lib/engine/thread.js');
const { fromText, toText } = require('../../lib/engine/error-text.js');
const { asBeside, isIdle, listen, named, record } = require('../helpers/seam.js');
const { watched } = require('../helpers/threads.js');

const { Exclusive, Shared } = binding.NameMode;
/** Kinds of tasks. */
const [ASK, CANCEL, RELEASE, ABANDON] = [0, 1, 2, 3];
const NOTHING = -1;
/** The largest fence, of 64 bits. */
const FENCE = 2n ** 64n - 3n;
/** A grant that says nothing. */
const GRANT = { lease: 0, fence: 0n, abandoned: false, text: '' };

listen();

const served = () => {
  const desk = binding.openDesk(false);
  binding.serveDesk(desk);
  return desk;
};
const questionOf = (desk, mode = Exclusive) => ({
  desk,
  store: 5,
  verb: 1,
  name: 'name',
  mode,
  flags: 3,
  payload: 'what else',
});
/** Asks, and takes the task: its number. */
const ask = (desk, mode = Exclusive, timeout = Infinity, beside = undefined) => {
  assert.equal(named(binding.askStore(questionOf(desk, mode), timeout, beside)), 'PENDING');
  const { kind, number } = binding.nextTask(desk);
  assert.equal(kind, ASK);
  return number;
};
/** In another thread. */
const askThere = async (there, desk, mode) => {
  assert.equal(named(await there.call('askStore', questionOf(desk, mode), Infinity)), 'PENDING');
  const { kind, number } = binding.nextTask(desk);
  assert.equal(kind, ASK);
  return number;
};
const release = (number) => named(binding.releaseHeld(number, false));
const taskOf = (desk) => {
  const task = binding.nextTask(desk);
  return task === null ? null : [task.kind, task.number];
};
/** The next request that is over, or whose hold was lost; null if there is none. */
const news = () => {
  const status = binding.next();
  if (status !== NOTHING) return [named(status), status === binding.TIMED_OUT ? null : record('Number')];
  const lost = binding.nextLost();
  return lost < 0 ? null : ['LOST', lost];
};
const block = (desk, timeout = Infinity) => named(binding.askStoreBlocking(questionOf(desk), timeout));
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
  assert.equal(block(desk), 'FAILED');
  assert.equal(fromText(binding.takeTold()).message, 'over');
  assert.throws(() => binding.deskState(1e6), /number of a desk/);
  assert.equal(binding.nextDueDesk(), NOTHING);
});

test('the main desk is due once, and asked for by whoever has none', () => {
  const own = served();
  const desk = binding.mainDesk();
  assert.notEqual(desk, own, 'one that was opened for others');
  assert.equal(binding.mainDesk(), desk);
  assert.equal(binding.deskState(desk), 0);
  assert.deepEqual([binding.nextDueDesk(), binding.nextDueDesk()], [desk, NOTHING]);
  binding.serveDesk(desk);
  assert.deepEqual([binding.deskState(desk), binding.mainDesk()], [1, desk]);
  over(desk);
  over(own);
});

test(
  'a task says all that was asked, and by whom',
  watched(async (_t, threads) => {
    const there = threads.start('seam');
    const desk = served();
    const question = { ...questionOf(desk, Shared), name: 'naïve \ud800' };
    assert.equal(named(await there.call('askStore', question, Infinity)), 'PENDING');
    const { number, ...task } = binding.nextTask(desk);
    assert.deepEqual(task, {
      kind: ASK,
      store: 5,
      verb: 1,
      name: 'naïve \ud800',
      shared: true,
      flags: 3,
      payload: 'what else',
      threadId: there.threadId,
    });
    const token = 0;
    assert.equal(await there.call('cancel', token), true);
    assert.equal(await there.call('cancel', token), false);
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
      asked.push(await askThere(there, desk, mode));
    }
    for (const number of asked.slice(0, 2)) {
      assert.equal(binding.answerTask(desk, number, GRANT), true);
      assert.equal(named(await there.call('next')), 'GRANTED');
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
  'each desk ends with the thread that serves it',
  watched(async (_t, threads) => {
    const there = threads.start('seam');
    const [desk, second, other] = [await there.call('openDesk', false), await there.call('openDesk', false), served()];
    for (const number of [desk, second]) await there.call('serveDesk', number);
    assert.equal(named(binding.askStore(questionOf(desk), Infinity)), 'PENDING');
    await there.terminate();
    await there.exited;
    await threads.until('it has ended', () => binding.deskState(desk) === -1);
    assert.deepEqual([binding.deskState(second), binding.deskState(other)], [-1, 1]);
    assert.equal(news()[0], 'FAILED');
    assert.equal(fromText(binding.takeTold()).code, 'ERR_LOCK_STORE');
    over(other);
  }),
);

test(
  'each answer is told once, to a loop and to who blocks',
  watched(async (_t, threads) => {
    const there = threads.start('seam');
    const desk = served();
    const answers = {
      GRANTED: (number) =>
        assert.equal(binding.answerTask(desk, number, { ...GRANT, fence: FENCE, text: 'text' }), true),
      GRANTED_ABANDONED: (number) =>
        assert.equal(binding.answerTask(desk, number, { ...GRANT, fence: FENCE, abandoned: true, text: 'text' }), true),
      REFUSED: (number) => binding.answerTask(desk, number, null),
      FAILED: (number) => binding.answerTask(desk, number, null, 'why'),
    };
    for (const [status, answer] of Object.entries(answers)) {
      const number = ask(desk);
      answer(number);
      assert.deepEqual([news(), news()], [[status, number], null]);
      if (status === 'FAILED') assert.equal(binding.takeTold(), 'why');
      const blocked = there.call('askStoreBlocking', questionOf(desk), Infinity);
      let task = null;
      await threads.until('it has asked', () => {
        task = taskOf(desk);
        return task !== null;
      });
      answer(task[1]);
      assert.equal(named(await blocked), status);
      if (!status.startsWith('GRANTED')) continue;
      assert.deepEqual([thread.fence, binding.takeTold()], [FENCE, 'text']);
      assert.equal(release(number), 'RELEASED');
      assert.deepEqual([taskOf(desk), taskOf(desk)], [[RELEASE, number], null]);
      // A second answer, and a second release, find nothing.
      assert.equal(binding.answerTask(desk, number, GRANT), false);
      assert.equal(release(number), 'RELEASED');
      assert.equal(taskOf(desk), null);
      assert.equal(named(await there.call('releaseHeld', task[1], false)), 'RELEASED');
      assert.deepEqual(taskOf(desk), [RELEASE, task[1]]);
    }
    over(desk);
  }),
);

test('what is opened is there until it is released, and told nothing', () => {
  const desk = served();
  const number = binding.openStore(desk, 5, 0, 'what is opened');
  assert.deepEqual(taskOf(desk), [ASK, number]);
  assert.equal(binding.answerTask(desk, number, GRANT), false);
  assert.deepEqual([release(number), release(number)], ['RELEASED', 'RELEASED']);
  assert.deepEqual([taskOf(desk), taskOf(desk), news()], [[RELEASE, number], null, null]);
  over(desk);
});

test('who blocks gives up when the time is over; what is granted after that goes back', () => {
  const desk = served();
  assert.equal(block(desk, 5), 'TIMED_OUT');
  const [asked, number] = taskOf(desk);
  assert.equal(asked, ASK);
  assert.deepEqual(taskOf(desk), [CANCEL, number]);
  assert.equal(binding.answerTask(desk, number, GRANT), false);
  over(desk);
});

test('a deadline ends a request of a loop, whatever its thread does', () => {
  const desk = served();
  const number = ask(desk, Exclusive, 5, asBeside());
  const until = (look) => {
    const end = performance.now() + 20_000;
    for (;;) {
      const found = look();
      if (found !== null || performance.now() > end) return found;
    }
  };
  assert.deepEqual(
    until(() => taskOf(desk)),
    [CANCEL, number],
  );
  assert.deepEqual([news(), news()], [['TIMED_OUT', null], null]);
  over(desk);
});

test('a lease is what its lock lasts by: it grows, ends, and its loss is told with its reason', () => {
  const desk = served();
  const now = binding.leaseTime();
  for (const loss of [1, 2, 4]) {
    const number = ask(desk);
    const lease = binding.beginLease(now + 60_000);
    assert.equal(binding.answerTask(desk, number, { ...GRANT, lease: lease }), true);
    assert.deepEqual(news(), ['GRANTED', number]);
    assert.equal(named(binding.lookAtHeld(number)), 'GRANTED');
    assert.equal(binding.extendLease(lease, now + 120_000), true);
    binding.endLease(desk, lease, loss);
    assert.deepEqual(news(), ['LOST', number]);
    assert.deepEqual([named(binding.lookAtHeld(number)), record('Loss')], ['LOST', loss]);
    const isIn = loss !== 4;
    if (!isIn) binding.noteIn(number, false);
    assert.deepEqual([release(number), record('Loss')], ['LOST', loss]);
    // It was lost inside, if code has run with it.
    assert.deepEqual([taskOf(desk), taskOf(desk)], [[isIn ? ABANDON : RELEASE, number], null]);
  }
  const number = ask(desk);
  const past = binding.beginLease(now - 1);
  binding.answerTask(desk, number, { ...GRANT, lease: past });
  news();
  assert.equal(named(binding.lookAtHeld(number)), 'LOST', 'its time is over, and nobody has said so');
  assert.equal(binding.extendLease(past, now + 60_000), false);
  release(number);
  while (taskOf(desk) !== null);
  const late = ask(desk);
  const ended = binding.beginLease(now + 60_000);
  binding.endLease(desk, ended, 0);
  assert.equal(binding.answerTask(desk, late, { ...GRANT, lease: ended }), true);
  assert.deepEqual(news(), ['GRANTED', late]);
  assert.equal(named(binding.lookAtHeld(late)), 'LOST', 'its lease had ended when it was granted');
  release(late);
  while (taskOf(desk) !== null);
  over(desk);
});

test('a hold that was asked for together with others is in when that is said, not when it is granted', () => {
  const desk = served();
  for (const [isPart, isIn, kind] of [
    [false, false, ABANDON],
    [true, false, RELEASE],
    [true, true, ABANDON],
  ]) {
    assert.equal(named(binding.askStore({ ...questionOf(desk), isPart }, Infinity)), 'PENDING');
    const { number } = binding.nextTask(desk);
    binding.answerTask(desk, number, GRANT);
    assert.deepEqual(news(), ['GRANTED', number]);
    if (isIn) binding.noteIn(number, true);
    binding.releaseHeld(number, true);
    assert.deepEqual(taskOf(desk), [kind, number]);
  }
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
    binding.answerTask(desk, number, GRANT);
    assert.deepEqual(news(), ['GRANTED', number]);
    binding.noteIn(number, isIn);
    // Numbers are never given again: they go on beyond 32 bits.
    binding.releaseHeld(number + 2 ** 32, hasEnded);
    assert.equal(taskOf(desk), null, 'that was another');
    binding.releaseHeld(number, hasEnded);
    assert.deepEqual(taskOf(desk), [kind, number], `${mode} ${isIn} ${hasEnded}`);
  }
  over(desk);
});

test(
  'of threads that ask for the desk of the main thread at the same time one has a lock worker started',
  watched(async (_, threads) => {
    const { nextDueDesk } = binding;
    // This thread starts none.
    binding.nextDueDesk = () => -1;
    try {
      const askers = [threads.start('seam'), threads.start('seam')];
      const come = new Int32Array(new SharedArrayBuffer(4));
      for (let round = 1; round <= 100; round++) {
        const asked = askers.map((asker) => asker.call('together', come, 2 * round, 'mainDesk'));
        const [desk, other] = await Promise.all(asked);
        assert.equal(other, desk);
        assert.deepEqual([nextDueDesk(), nextDueDesk()], [desk, -1]);
        binding.endDesk(desk, 'why');
      }
    } finally {
      binding.nextDueDesk = nextDueDesk;
    }
  }),
);

test('with its lock worker a desk fails what waits, and takes what is held', () => {
  const desk = served();
  const [held, waiting] = [ask(desk), ask(desk)];
  binding.answerTask(desk, held, GRANT);
  assert.deepEqual(news(), ['GRANTED', held]);
  binding.endDesk(desk, 'why');
  assert.deepEqual(
    [news(), news()],
    [
      ['FAILED', waiting],
      ['LOST', held],
    ],
  );
  assert.equal(release(held), 'LOST');
  assert.ok(isIdle());
});
