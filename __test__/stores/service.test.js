// The lock worker's side of its desk: what it makes of each task. The tasks, and the keepers of the stores, are the test.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const threads = require('node:worker_threads');

threads.parentPort = { postMessage() {} };
const clock = require('../../lib/load/clock.js');
const { binding } = require('../../lib/engine/thread.js');
const { fromText } = require('../../lib/engine/error-text.js');
const redis = require('../../lib/stores/redis/keeper.js');
const { Service } = require('../../lib/stores/service.js');
const { CALL, FENCE, LOCK, OPEN, PROTOCOL, TRY } = require('../../lib/stores/verbs.js');
const { deferred, turns } = require('../helpers/names.js');
const { watched } = require('../helpers/threads.js');

/** Kinds of tasks. */
const [ASK, CANCEL, RELEASE, ABANDON] = [0, 1, 2, 3];
const DESK = 7;

/** A service that takes tasks by `take(...tasks)`; `answers` has what it answered by number, `keepers` what it made, and `log` what those were told. */
function serve(t) {
  const it = { keepers: [], log: [], answers: new Map(), isTaken: () => true };
  class Fake {
    closing = deferred();
    flushing = Promise.resolve();
    grant = async () => ({ lease: 5 });

    constructor(description, desk) {
      this.number = it.keepers.push(this);
      this.description = description;
      this.desk = desk;
    }
    say(...words) {
      it.log.push([this.number, ...words]);
    }
    lock(ticket) {
      this.ticket = ticket;
      return this.grant(ticket);
    }
    cancel(ticket) {
      this.say('cancel', ticket.number, ticket.isCancelled);
    }
    release(ticket, isAbandoned) {
      this.say('release', ticket.number, isAbandoned);
    }
    markConsistent(ticket) {
      this.say('markConsistent', ticket.number);
    }
    query({ names }) {
      return names;
    }
    stats() {}
    flush() {
      this.say('flush');
      return this.flushing;
    }
    close() {
      this.say('close');
      return this.closing.promise;
    }
  }
  const { RedisKeeper } = redis;
  redis.RedisKeeper = Fake;
  t.after(() => {
    redis.RedisKeeper = RedisKeeper;
  });
  const tasks = [];
  t.mock.method(binding, 'nextTask', (desk) => (desk === DESK ? (tasks.shift() ?? null) : null));
  t.mock.method(binding, 'answerTask', (desk, number, grant, told) => {
    assert.equal(desk, DESK);
    assert.equal(it.answers.has(number), false, 'a task has one answer');
    it.answers.set(number, told === undefined ? grant : fromText(told));
    return it.isTaken(number);
  });
  const service = new Service(DESK);
  const numbers = new Set();
  it.take = async (...more) => {
    tasks.push(...more);
    service.drain();
    for (const { number } of more) numbers.add(number);
    await turns();
  };
  t.after(async () => {
    await it.take(...[...numbers].map((number) => ({ kind: RELEASE, number })));
    for (const { closing } of it.keepers) closing.resolve();
    await turns();
  });
  return it;
}

const open = (number, store, more = {}) => ({
  kind: ASK,
  verb: OPEN,
  number,
  store,
  payload: JSON.stringify({ kind: 'redis', protocol: PROTOCOL, settings: {}, ...more }),
});
const lock = (number, store, more) => ({
  kind: ASK,
  verb: LOCK,
  number,
  store,
  name: 'n',
  shared: false,
  flags: 0,
  ...more,
});
const call = (number, store, payload) => ({ kind: ASK, verb: CALL, number, store, payload: JSON.stringify(payload) });
const GRANT = { lease: 0, fence: 0n, abandoned: false, text: '' };

test(
  'a store has one keeper for all of its managers, which is closed when the last of them is',
  watched(async (t) => {
    const it = serve(t);
    await it.take(open(1, 10), open(2, 10), open(3, 20));
    assert.deepEqual(
      it.keepers.map(({ desk }) => desk),
      [DESK, DESK],
    );
    await it.take({ kind: CANCEL, number: 1 }, { kind: RELEASE, number: 1 }, { kind: RELEASE, number: 1 });
    assert.deepEqual(it.log, [], 'another manager has it still');
    await it.take({ kind: ABANDON, number: 2 });
    assert.deepEqual(it.log, [[1, 'close']]);
    await it.take(lock(4, 10), call(5, 10, { call: 'query', names: [] }), call(6, 20, { call: 'query', names: ['b'] }));
    for (const number of [4, 5]) {
      assert.deepEqual(
        [it.answers.get(number).code, it.answers.get(number).message],
        ['ERR_LOCK_STORE', 'This store was closed.'],
      );
    }
    assert.equal(it.answers.get(6).text, '["b"]');
    await it.take(open(7, 10), lock(8, 10));
    assert.deepEqual([it.keepers.length, it.answers.get(8).lease], [3, 5], 'opened again it has another');
  }),
);

test(
  'what a store is asked for is told by its ticket; the grant says what the keeper does, and nothing else',
  watched(async (t) => {
    const it = serve(t);
    await it.take(open(1, 10));
    const [keeper] = it.keepers;
    for (const [index, [more, isTry, wantsFence]] of [
      [{ flags: 0 }, false, false],
      [{ flags: TRY, shared: true }, true, false],
      [{ flags: FENCE }, false, true],
      [{ flags: TRY | FENCE }, true, true],
    ].entries()) {
      await it.take(lock(20 + index, 10, { name: `name ${index}`, ...more }));
      const { number, name, isShared, isCancelled, isRepeated, asked, place, ...flags } = keeper.ticket;
      assert.deepEqual(flags, { isTry, wantsFence });
      assert.deepEqual([number, name, isShared], [20 + index, `name ${index}`, more.shared === true]);
      assert.deepEqual([isCancelled, isRepeated, asked, place], [false, false, null, null]);
      assert.deepEqual(it.answers.get(20 + index), { ...GRANT, lease: 5 });
    }
    keeper.grant = async () => ({ lease: 6, fence: 9n, abandoned: true, key: 'its key' });
    await it.take(lock(30, 10));
    assert.deepEqual(it.answers.get(30), { lease: 6, fence: 9n, abandoned: true, text: 'its key' });
  }),
);

test(
  'each request is cancelled, and released once, by its own number; what is over is told nothing',
  watched(async (t) => {
    const it = serve(t);
    await it.take(open(1, 10));
    const [keeper] = it.keepers;
    const waits = deferred();
    keeper.grant = ({ number }) => (number === 2 ? waits.promise : Promise.resolve({ lease: 5 }));
    await it.take(lock(2, 10), lock(3, 10), lock(4, 10));
    assert.deepEqual([...it.answers.keys()], [3, 4]);
    await it.take({ kind: CANCEL, number: 2 }, { kind: RELEASE, number: 4 }, { kind: ABANDON, number: 3 });
    await it.take({ kind: RELEASE, number: 4 }, { kind: CANCEL, number: 3 }, { kind: RELEASE, number: 99 });
    const [cancelled, released, abandoned] = [
      [1, 'cancel', 2, true],
      [1, 'release', 4, false],
      [1, 'release', 3, true],
    ];
    assert.deepEqual(it.log, [cancelled, released, abandoned]);
    waits.resolve(null);
    await turns();
    assert.equal(it.answers.get(2), null);
    // Neither what was not granted, nor what failed, is released or cancelled.
    keeper.grant = async () => {
      throw Object.assign(new Error('refused'), { code: 'ERR_LOCK_STORE', isFinal: true });
    };
    await it.take(lock(5, 10));
    assert.equal(it.answers.get(5).message, 'refused');
    await it.take(...[2, 5].flatMap((number) => [CANCEL, RELEASE].map((kind) => ({ kind, number }))));
    assert.equal(it.log.length, 3);
  }),
);

test(
  'a grant that nobody takes is given back unmarked, once',
  watched(async (t) => {
    const it = serve(t);
    await it.take(open(1, 10));
    it.isTaken = () => false;
    await it.take(lock(2, 10));
    assert.deepEqual(it.log, [[1, 'release', 2, false]]);
    await it.take({ kind: RELEASE, number: 2 });
    assert.equal(it.log.length, 1);
  }),
);

test(
  'who says that all is well is told to the keeper by its request; of one that is over nothing is told',
  watched(async (t) => {
    const it = serve(t);
    await it.take(open(1, 10), lock(2, 10), lock(3, 10), { kind: RELEASE, number: 2 });
    it.log.length = 0;
    await it.take(...[3, 2, 1].map((number, index) => call(10 + index, 10, { call: 'markConsistent', number })));
    assert.deepEqual(it.log, [[1, 'markConsistent', 3]]);
    for (const number of [10, 11, 12]) assert.deepEqual(it.answers.get(number), { ...GRANT, text: 'null' });
  }),
);

test(
  'a call is answered by what the keeper says, and what it throws is an error of the store',
  watched(async (t) => {
    const it = serve(t);
    await it.take(open(1, 10));
    it.keepers[0].check = async () => {
      throw new Error('not today');
    };
    await it.take(
      call(2, 10, { call: 'query', names: ['a'] }),
      call(3, 10, { call: 'stats' }),
      call(4, 10, { call: 'check' }),
    );
    assert.deepEqual(
      [it.answers.get(2), it.answers.get(3)],
      [
        { ...GRANT, text: '["a"]' },
        { ...GRANT, text: 'null' },
      ],
    );
    const { code, message, cause } = it.answers.get(4);
    assert.deepEqual([code, message, cause.message], ['ERR_LOCK_STORE', 'The store failed: not today.', 'not today']);
  }),
);

test(
  'a task that cannot be taken fails alone: those behind it are taken',
  watched(async (t) => {
    const it = serve(t);
    await it.take(
      { ...open(1, 10), payload: 'nothing' },
      open(2, 20, { kind: 'none' }),
      open(3, 30),
      lock(4, 30),
      lock(5, 10),
    );
    for (const number of [1, 2, 5]) assert.ok(it.answers.get(number) instanceof Error, `${number}`);
    assert.deepEqual([it.answers.has(3), it.answers.get(4).lease], [false, 5]);
  }),
);

test(
  'a store that another copy of the package describes refuses whatever it is asked, and can be closed',
  watched(async (t) => {
    const it = serve(t);
    await it.take(open(1, 10, { protocol: PROTOCOL + 1, kind: 'unknown' }));
    await it.take(
      lock(2, 10),
      { kind: CANCEL, number: 2 },
      ...['query', 'stats', 'check'].map((each, index) => call(3 + index, 10, { call: each })),
    );
    await it.take(call(6, 10, { call: 'flush' }), { kind: RELEASE, number: 1 });
    for (const number of [2, 3, 4, 5]) {
      assert.match(it.answers.get(number).message, /^Two incompatible copies of sablock use stores in this process/);
      assert.equal(it.answers.get(number).code, 'ERR_LOCK_STORE');
    }
    assert.deepEqual([it.answers.get(6).text, it.answers.has(1)], ['null', false]);
    await it.take(call(7, 10, { call: 'check' }));
    assert.equal(it.answers.get(7).message, 'This store was closed.');
  }),
);

test(
  'a flush waits for one store, or for all, however they end',
  watched(async (t) => {
    const it = serve(t);
    await it.take(open(1, 10), open(2, 20), open(3, 30));
    const flush = (number, store) => call(number, store, { call: 'flush' });
    const [one, other] = it.keepers;
    const slow = deferred();
    other.flushing = slow.promise;
    await it.take(flush(4, 10), flush(5, 20), flush(6, 0));
    assert.deepEqual(
      it.log.filter(([, word]) => word === 'flush').map(([number]) => number),
      [1, 2, 1, 2, 3],
    );
    assert.deepEqual(
      [4, 5, 6].map((number) => it.answers.has(number)),
      [true, false, false],
    );
    // One that fails is over, and the others are waited for as before.
    one.flushing = Promise.reject(new Error('of the flush'));
    await it.take(flush(7, 0));
    assert.equal(it.answers.has(7), false);
    slow.reject(new Error('of the flush'));
    await turns();
    assert.deepEqual(
      [5, 6, 7].map((number) => it.answers.get(number)),
      Array(3).fill({ ...GRANT, text: 'null' }),
    );
  }),
);

for (const order of [
  [0, 1],
  [1, 0],
]) {
  test(
    `a flush waits for all that were closed, and no longer: the ${order[0] === 0 ? 'first' : 'second'} is over first`,
    watched(async (t) => {
      const it = serve(t);
      const flush = (number, store) => call(number, store, { call: 'flush' });
      // Two that were closed, one behind the other, and a third that is open.
      await it.take(open(1, 10), { kind: RELEASE, number: 1 }, open(2, 10), { kind: RELEASE, number: 2 });
      await it.take(open(3, 10), open(4, 20), flush(5, 10), flush(6, 20), flush(7, 0));
      assert.deepEqual(
        [5, 6, 7].map((number) => it.answers.has(number)),
        [false, true, false],
      );
      it.keepers[order[0]].closing.resolve();
      await turns();
      await it.take(flush(8, 10));
      assert.deepEqual(
        [5, 7, 8].map((number) => it.answers.has(number)),
        [false, false, false],
      );
      it.keepers[order[1]].closing.reject(new Error('of the close'));
      await turns();
      assert.deepEqual(
        [5, 7, 8].map((number) => it.answers.has(number)),
        [true, true, true],
      );
    }),
  );
}

test(
  'a flush of a store that is not there is over at once, and one of a silent server after a second',
  watched(async (t, threads) => {
    const it = serve(t);
    const { setTimeout } = clock;
    const times = [];
    t.mock.method(clock, 'setTimeout', (act, ms) => {
      times.push(ms);
      return setTimeout(act, 1);
    });
    await it.take(open(1, 10), call(2, 99, { call: 'flush' }));
    assert.equal(it.answers.get(2).text, 'null');
    it.keepers[0].flushing = new Promise(() => {});
    await it.take(call(3, 10, { call: 'flush' }));
    await threads.until('it is over', () => it.answers.has(3));
    assert.deepEqual([it.answers.get(3).text, times], ['null', [1000, 1000]]);
  }),
);
