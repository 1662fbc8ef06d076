// A store as its manager has it: what it asks its desk for, and makes of the answers. This thread asks, and is its own lock worker.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const clock = require('../../lib/load/clock.js');
const { toText } = require('../../lib/engine/error-text.js');
const { binding, thread } = require('../../lib/engine/thread.js');
const { storeBackend } = require('../../lib/stores/outer.js');
const { redis } = require('../../lib/stores/redis.js');
const { descriptionOf } = require('../../lib/stores/store.js');
const { CALL, FENCE, LOCK, LOSSES, OPEN, TAKEN, TRY, UNREACHABLE } = require('../../lib/stores/verbs.js');
const { turns } = require('../helpers/names.js');
const { watched } = require('../helpers/threads.js');

const { Exclusive, Shared } = binding.NameMode;
/** Kinds of tasks. */
const [ASK, CANCEL, RELEASE, ABANDON] = [0, 1, 2, 3];
const GRANT = { lease: 0, fence: 0n, abandoned: false, text: '' };
const CLOSED = { code: 'ERR_LOCK_CLOSED' };
const STORE = { code: 'ERR_LOCK_STORE' };
let count = 0;

/** A store at a desk of this thread. `next()` is its next task, `answer(task, grant)` and `refuse(task, error)` settle it. */
function create(t, settings = {}) {
  const it = { store: redis(`redis://x/${++count}`, settings) };
  it.openDesk = () => {
    const desk = binding.openDesk(false);
    binding.serveDesk(desk);
    t.after(() => binding.endDesk(desk, '{}'));
    thread.deskNumber = desk;
    it.desk = desk;
  };
  it.openDesk();
  it.next = () => binding.nextTask(it.desk);
  it.settle = (task, ...answer) => {
    assert.equal(binding.answerTask(it.desk, task.number, ...answer), true);
    thread.drain();
  };
  it.answer = (task, grant = {}) => it.settle(task, { ...GRANT, ...grant });
  it.refuse = (task, error) => it.settle(task, null, toText(error));
  it.outer = storeBackend(it.store).outer;
  t.after(() => {
    for (const hold of it.outer.holds) hold.unlock();
    // Abandoned ones are left, as their thread would have ended.
    for (const holds of [it.outer.holds, thread.stores.holds]) holds.clear();
  });
  /** Locks the name, with what is granted. */
  it.lock = async (name = 'name', { isPart, ...grant } = {}) => {
    const { promise } = it.outer.lockAsync(name, { mode: Exclusive, isPart, ref: true }, { timeout: Infinity });
    let task = it.next();
    if (task.verb === OPEN) task = it.next();
    it.answer(task, grant);
    return promise;
  };
  return it;
}

const kindsOf = (it) => {
  const kinds = [];
  for (let task = it.next(); task !== null; task = it.next()) kinds.push([task.kind, task.number]);
  return kinds;
};

test(
  'a store is opened once by each manager, at the first request; a request says what it asks for',
  watched(async (t) => {
    const it = create(t);
    assert.equal(it.next(), null);
    for (const [index, [mode, fence, timeout, flags]] of [
      [Exclusive, false, Infinity, 0],
      [Shared, true, 1000, FENCE],
      [Exclusive, true, 0, TRY | FENCE],
      [Shared, false, 0, TRY],
    ].entries()) {
      const { promise } = it.outer.lockAsync(
        `name ${index}`,
        { mode, fence, ref: true },
        { timeout, patience: 60_000 },
      );
      if (index === 0) {
        const { kind, verb, payload } = it.next();
        assert.deepEqual([kind, verb, payload], [ASK, OPEN, descriptionOf(it.store)]);
      }
      const task = it.next();
      const asked = [task.kind, task.verb, task.name, task.shared, task.flags];
      assert.deepEqual(asked, [ASK, LOCK, `name ${index}`, mode === Shared, flags]);
      it.answer(task, { fence: 9n });
      const hold = await promise;
      assert.equal(hold.fence, fence ? 9n : null);
      hold.unlock();
      assert.equal(it.next().kind, RELEASE);
    }
    const other = storeBackend(it.store).outer;
    const asked = other.call('stats');
    const [opened, call] = [it.next(), it.next()];
    assert.deepEqual([opened.verb, call.verb, opened.store === call.store], [OPEN, CALL, true]);
    it.answer(call, { text: '1' });
    assert.equal(await asked, 1);
  }),
);

test(
  'a hold has its key, its mark, and its number until it is over; it is released once',
  watched(async (t) => {
    const it = create(t);
    const hold = await it.lock('name', { text: 'its key', abandoned: true });
    const bare = await it.lock('bare');
    assert.deepEqual([hold.key, hold.abandoned, hold.fence, hold.lost], ['its key', true, null, null]);
    assert.deepEqual([hold.ended.pid, hold.ended.threadId, hold.ended.isOfStore], [-1, -1, true]);
    assert.deepEqual([bare.key, bare.abandoned, bare.ended], [undefined, false, null]);
    const { number } = hold;
    assert.deepEqual([it.outer.holds.size, thread.stores.holds.get(number)], [2, hold]);
    bare.markConsistent();
    assert.equal(it.next(), null, 'there is no mark of it to be taken off');
    hold.markConsistent();
    const told = it.next();
    assert.deepEqual([told.verb, JSON.parse(told.payload)], [CALL, { call: 'markConsistent', number }]);
    assert.equal(hold.abandoned, false);
    // It is not awaited, nor whether it fails.
    assert.deepEqual(
      Array.from(it.outer.waits, (wait) => wait.hasRef()),
      [false],
    );
    it.refuse(told, new Error('not now'));
    await turns();
    assert.equal(hold.unlock(), true);
    assert.deepEqual([hold.unlock(), hold.number, hold.lost, it.outer.holds.size], [true, undefined, null, 1]);
    hold.lose('closed');
    assert.deepEqual([hold.lost, thread.stores.holds.has(number)], [null, false]);
    hold.abandon();
    assert.deepEqual(kindsOf(it), [[RELEASE, number]]);
    bare.abandon();
    assert.equal(bare.number, undefined);
    assert.equal(kindsOf(it)[0][0], ABANDON);
  }),
);

test(
  'a part of several leaves its mark by the end of the thread only once all are there',
  watched(async (t) => {
    const it = create(t);
    for (const isIn of [false, true]) {
      const hold = await it.lock('name', { isPart: true });
      if (isIn) hold.noteIn(true);
      hold.abandon();
      assert.equal(kindsOf(it)[0][0], isIn ? ABANDON : RELEASE);
    }
  }),
);

test(
  'a loss is seen by a look and by the release, with its reason; it is given back once, marked if code has run with it',
  watched(async (t) => {
    const it = create(t);
    const close = (hold) => hold.lose('closed');
    for (const [loss, isIn, look, expected = LOSSES[loss]] of [
      [TAKEN, true, (hold) => hold.lost],
      [TAKEN, false, (hold) => hold.lost],
      [UNREACHABLE, true, (hold) => hold.unlock()],
      [UNREACHABLE, false, (hold) => hold.unlock()],
      [TAKEN, true, close, 'closed'],
      [TAKEN, false, close, 'closed'],
    ]) {
      const lease = binding.beginLease(binding.leaseTime() + 60_000);
      const hold = await it.lock('name', { lease });
      if (isIn) hold.onLost = () => {};
      const begun = clock.now();
      while (clock.now() - begun < 30);
      binding.endLease(it.desk, lease, loss);
      look(hold);
      const { reason, heldMs } = hold.lost;
      assert.equal(reason, expected);
      assert.ok(heldMs >= 30 && heldMs < 20_000, `${heldMs} ms`);
      assert.deepEqual([hold.unlock(), hold.number, it.outer.holds.size], [false, undefined, 0]);
      assert.equal(hold.lost.heldMs, heldMs);
      const kinds = kindsOf(it);
      assert.deepEqual(
        kinds.map(([kind]) => kind),
        [isIn ? ABANDON : RELEASE],
      );
    }
  }),
);

test(
  'the hold that may have been lost is told, and no other',
  watched(async (t) => {
    const it = create(t);
    const holds = [await it.lock('one'), await it.lock('two')];
    const told = [];
    for (const hold of holds) hold.onLost = () => told.push(hold);
    thread.stores.tellLost(holds[1].number);
    thread.stores.tellLost(-5);
    assert.deepEqual(told, [holds[1]]);
    for (const hold of holds) hold.unlock();
  }),
);

test(
  'close() ends what is waited for and held, once, tells the desk in that order, and is over when that is sent',
  watched(async (t) => {
    const it = create(t);
    const holds = [await it.lock('one'), await it.lock('two')];
    const numbers = holds.map(({ number }) => number);
    let lost = 0;
    for (const hold of holds) hold.onLost = () => (lost += 1);
    const waits = ['one', 'three'].map((name) =>
      it.outer.lockAsync(name, { mode: Exclusive, ref: true }, { timeout: Infinity }),
    );
    const asked = it.outer.call('stats');
    const tasks = [it.next(), it.next(), it.next()];
    const closing = it.outer.close(false);
    for (const promise of [...waits.map((wait) => wait.promise), asked]) await assert.rejects(promise, CLOSED);
    assert.equal(lost, 2);
    for (const hold of holds) {
      assert.deepEqual(
        [hold.lost.reason, hold.lost.heldMs >= 0, hold.unlock(), hold.number],
        ['closed', true, false, undefined],
      );
    }
    const ended = [];
    let flush;
    for (let task = it.next(); task !== null; task = it.next()) {
      if (task.kind === ASK) flush = task;
      else ended.push([task.kind, task.number]);
    }
    assert.deepEqual(ended.slice(0, 5), [
      ...tasks.map(({ number }) => [CANCEL, number]),
      ...numbers.map((number) => [RELEASE, number]),
    ]);
    // The manager itself, and then what tells that all is sent.
    assert.deepEqual([ended.length, ended[5][0], JSON.parse(flush.payload)], [6, RELEASE, { call: 'flush' }]);
    assert.equal(it.outer.close(false), closing);
    let isOver = false;
    closing.then(() => {
      isOver = true;
    });
    await turns();
    assert.deepEqual([isOver, it.next(), lost], [false, null, 2]);
    it.refuse(flush, new Error('of the flush'));
    await closing;
    assert.throws(() => it.outer.check(), CLOSED);
    assert.throws(() => it.outer.lockAsync('name', { mode: Exclusive, ref: true }, { timeout: 0 }), CLOSED);
    assert.throws(() => it.outer.lockBlocking('name', { mode: Exclusive }, { timeout: 0 }), CLOSED);
    for (const names of [[], ['name']]) await assert.rejects(it.outer.query(names), CLOSED);
    await assert.rejects(it.outer.call('check'), CLOSED);
    await assert.rejects(it.outer.askHolders('name'), STORE);
    assert.equal(it.next(), null);
  }),
);

test(
  'close() of a store that was never asked for tells nobody, nor does one whose lock worker has ended',
  watched(async (t) => {
    const it = create(t);
    await it.outer.close(false);
    assert.equal(it.next(), null);
    const other = create(t);
    const hold = await other.lock();
    binding.endDesk(other.desk, '{}');
    await other.outer.close(false);
    assert.equal(hold.unlock(), false);
  }),
);

test(
  'a patient close() waits for each that is held, and lets them be, until close() is called again',
  watched(async (t) => {
    for (const isImpatient of [false, true]) {
      const it = create(t);
      const holds = [await it.lock('one'), await it.lock('two')];
      const wait = it.outer.lockAsync('one', { mode: Exclusive, ref: true }, { timeout: Infinity });
      const { number } = it.next();
      const closing = it.outer.close(true);
      await assert.rejects(wait.promise, CLOSED);
      await turns();
      assert.deepEqual(kindsOf(it), [[CANCEL, number]]);
      assert.equal(holds[0].unlock(), true);
      await turns();
      assert.equal(kindsOf(it).length, 1);
      if (isImpatient) assert.equal(it.outer.close(false), closing);
      assert.deepEqual([holds[1].lost?.reason, holds[1].unlock()], isImpatient ? ['closed', false] : [undefined, true]);
      await turns();
      const [released, manager, flush] = [it.next(), it.next(), it.next()];
      assert.deepEqual([released.kind, manager.kind, flush.verb], [RELEASE, RELEASE, CALL]);
      it.answer(flush, { text: 'null' });
      await closing;
    }
  }),
);

test(
  'a try that is not answered in its time is not known to be refused, and is withdrawn; an answer that is there counts',
  watched(async (t) => {
    const it = create(t);
    const options = { mode: Exclusive, ref: true };
    const first = it.outer.lockAsync('its name', options, { timeout: 0, patience: 40.4 });
    it.next();
    const task = it.next();
    await assert.rejects(first.promise, ({ code, message, cause }) => {
      assert.deepEqual([code, cause.message], ['ERR_LOCK_STORE', 'The store has not answered within 40 ms.']);
      return /'its name' in time/.test(message);
    });
    assert.deepEqual(kindsOf(it), [[CANCEL, task.number]]);
    const second = it.outer.lockAsync('name', options, { timeout: 0, patience: 40 });
    binding.answerTask(it.desk, it.next().number, GRANT);
    const begun = clock.now();
    while (clock.now() - begun < 60);
    assert.equal((await second.promise).unlock(), true);
    // One that may wait has no patience.
    assert.equal(await it.outer.lockAsync('name', options, { timeout: 300, patience: 20 }).promise, null);
    kindsOf(it);
    // Refused, or withdrawn by whoever asks: null.
    const third = it.outer.lockAsync('name', options, { timeout: 0, patience: 60_000 });
    it.settle(it.next(), null);
    assert.equal(await third.promise, null);
    const fourth = it.outer.lockAsync('name', options, { timeout: Infinity });
    fourth.cancel();
    assert.equal(await fourth.promise, null);
    assert.equal(it.outer.waits.size, 0);
  }),
);

test(
  'what a keeper is asked has its words and names, and its answer; of no names nothing is asked',
  watched(async (t) => {
    const it = create(t);
    assert.deepEqual(await it.outer.query([]), []);
    assert.equal(it.next(), null);
    const query = it.outer.query(['a', 'b']);
    it.next();
    const task = it.next();
    assert.deepEqual(JSON.parse(task.payload), { call: 'query', names: ['a', 'b'] });
    assert.deepEqual(
      Array.from(it.outer.waits, (wait) => wait.hasRef()),
      [true],
    );
    it.answer(task, { text: '[{"name":"a"}]' });
    assert.deepEqual(await query, [{ name: 'a' }]);
    // An answer is no hold.
    assert.deepEqual([it.outer.holds.size, kindsOf(it)], [0, [[RELEASE, task.number]]]);
    const failed = it.outer.call('check');
    it.refuse(it.next(), Object.assign(new Error('refused'), { code: 'ERR_LOCK_STORE' }));
    await assert.rejects(failed, { code: 'ERR_LOCK_STORE', message: 'refused' });
  }),
);

test(
  'who holds a name is not known before the store was asked for anything, after its error, and after a second of silence',
  watched(async (t) => {
    const it = create(t);
    const isUnknown = (cause) => (error) =>
      error.code === 'ERR_LOCK_STORE' && /'its name'/.test(error.message) && cause.test(error.cause.message);
    await assert.rejects(it.outer.askHolders('its name'), isUnknown(/has not begun yet/));
    assert.throws(() => it.outer.askHoldersBlocking('its name'), isUnknown(/has not begun yet/));
    assert.equal(it.next(), null);
    (await it.lock()).unlock();
    kindsOf(it);
    const rows = it.outer.askHolders('its name');
    const asked = it.next();
    assert.deepEqual(JSON.parse(asked.payload), { call: 'query', names: ['its name'] });
    it.answer(asked, { text: '[7]' });
    assert.deepEqual(await rows, [7]);
    kindsOf(it);
    const refused = it.outer.askHolders('its name');
    it.refuse(it.next(), new Error('refused'));
    await assert.rejects(refused, isUnknown(/^refused$/));
    const silent = it.outer.askHolders('its name');
    const { number } = it.next();
    await assert.rejects(silent, isUnknown(/not answered within 1000 ms/));
    assert.deepEqual(kindsOf(it), [[CANCEL, number]]);

    const times = [];
    let status;
    t.mock.method(binding, 'askStoreBlocking', ({ payload }, timeout) => {
      times.push(timeout);
      assert.deepEqual(JSON.parse(payload), { call: 'query', names: ['its name'] });
      return status;
    });
    t.mock.method(binding, 'giveBackHeld', () => {});
    t.mock.method(binding, 'takeTold', () => (status === binding.FAILED ? toText(new Error('refused')) : '[7]'));
    status = binding.GRANTED;
    assert.deepEqual(it.outer.askHoldersBlocking('its name'), [7]);
    status = binding.FAILED;
    assert.throws(() => it.outer.askHoldersBlocking('its name'), isUnknown(/^refused$/));
    status = binding.TIMED_OUT;
    assert.throws(() => it.outer.askHoldersBlocking('its name'), isUnknown(/not answered within 1000 ms/));
    assert.deepEqual(times, [1000, 1000, 1000]);
    // Nor while its next lock worker has not begun.
    t.mock.method(binding, 'deskState', () => 0);
    kindsOf(it);
    await assert.rejects(it.outer.askHolders('its name'), isUnknown(/has not begun yet/));
    assert.throws(() => it.outer.askHoldersBlocking('its name'), isUnknown(/has not begun yet/));
    assert.deepEqual([kindsOf(it), times.length], [[], 3]);
  }),
);

test(
  'a blocking request has its time, or its patience, and what comes of it is said',
  watched(async (t) => {
    const it = create(t);
    let status;
    const asked = [];
    t.mock.method(binding, 'askStoreBlocking', ({ flags, name, mode }, timeout) => {
      asked.push([name, mode, flags, timeout]);
      return status;
    });
    const lock = (limits, options = {}) => it.outer.lockBlocking('its name', { mode: Shared, ...options }, limits);
    status = binding.TIMED_OUT;
    assert.equal(lock({ timeout: 50 }), null);
    assert.throws(
      () => lock({ timeout: 0, patience: 70 }),
      ({ code, cause }) => code === 'ERR_LOCK_STORE' && /within 70 ms/.test(cause.message),
    );
    status = binding.REFUSED;
    assert.equal(lock({ timeout: 0, patience: 0 }, { fence: true }), null);
    status = binding.INTERRUPTED;
    assert.throws(() => lock({ timeout: Infinity }), /'its name'/);
    status = binding.FAILED;
    t.mock.method(binding, 'takeTold', () => toText(new Error('refused')));
    assert.throws(() => lock({ timeout: Infinity, patience: 5 }), { message: 'refused' });
    assert.deepEqual(asked, [
      ['its name', Shared, 0, 50],
      ['its name', Shared, TRY, 70],
      ['its name', Shared, TRY | FENCE, Infinity],
      ['its name', Shared, 0, Infinity],
      ['its name', Shared, 0, Infinity],
    ]);
  }),
);

test(
  'a blocking request waits for the lock worker first, as long as a connection may take, and then for what is left',
  watched(async (t) => {
    const it = create(t, { connectTimeout: 500 });
    let now = 1000;
    t.mock.method(clock, 'now', () => now);
    let [asked, statuses, states] = [[], [], []];
    t.mock.method(binding, 'deskState', () => states.shift() ?? 0);
    t.mock.method(binding, 'askStoreBlocking', ({ verb }, timeout) => {
      asked.push([verb, timeout]);
      now += 200;
      return statuses.shift();
    });
    t.mock.method(binding, 'takeTold', () => 'null');
    const { mock: given } = t.mock.method(binding, 'giveBackHeld', () => {});
    const { GRANTED, REFUSED, TIMED_OUT } = binding;
    const lock = (timeout, of, seen = []) => {
      [asked, statuses, states] = [[], of, seen];
      return it.outer.lockBlocking('name', { mode: Exclusive }, { timeout });
    };
    lock(10_000, [GRANTED, REFUSED]);
    assert.deepEqual(asked, [
      [CALL, 500],
      [LOCK, 9800],
    ]);
    lock(300, [GRANTED, TIMED_OUT]);
    assert.deepEqual(asked, [
      [CALL, 300],
      [LOCK, 100],
    ]);
    lock(150, [GRANTED, TIMED_OUT]);
    assert.deepEqual(asked, [
      [CALL, 150],
      [LOCK, 0],
    ]);
    assert.equal(given.callCount(), 3, 'its answers are no holds');
    assert.equal(lock(500, [TIMED_OUT]), null, 'its own time is over');
    assert.deepEqual(asked, [[CALL, 500]]);
    assert.throws(() => lock(501, [TIMED_OUT]), { code: 'ERR_LOCK_STORE', message: /not begun within 500 ms/ });
    // It has begun at the last moment: of the times it is looked at, the last.
    lock(10_000, [TIMED_OUT, REFUSED], [0, 0, 1]);
    assert.deepEqual(asked, [
      [CALL, 500],
      [LOCK, 9800],
    ]);
  }),
);

test(
  'after the end of its lock worker a store is opened at the next, and what it held is over',
  watched(async (t) => {
    const it = create(t);
    const hold = await it.lock();
    const wait = it.outer.lockAsync('waits', { mode: Exclusive, ref: true }, { timeout: Infinity });
    binding.endDesk(it.desk, toText(Object.assign(new Error('It has ended.'), { code: 'ERR_LOCK_STORE' })));
    await assert.rejects(wait.promise, { message: 'It has ended.' });
    assert.equal(hold.lost.reason, 'worker');
    const before = it.desk;
    it.openDesk();
    const asked = it.outer.call('stats');
    const [opened, call] = [it.next(), it.next()];
    assert.deepEqual([opened.verb, call.verb, it.outer.desk === it.desk, it.desk !== before], [OPEN, CALL, true, true]);
    it.answer(call, { text: 'null' });
    assert.equal(await asked, null);
  }),
);
