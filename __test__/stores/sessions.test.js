// A session of MySQL and of PostgreSQL: what it sets, how it takes answers, and until when what it holds is sure. The client is the test.

const assert = require('node:assert/strict');
const { EventEmitter } = require('node:events');
const { test } = require('node:test');
const { binding } = require('../../lib/engine/thread.js');
const clock = require('../../lib/load/clock.js');
const { MysqlSession } = require('../../lib/stores/mysql/session.js');
const { PostgresSession } = require('../../lib/stores/postgres/session.js');
const { TAKEN, UNREACHABLE } = require('../../lib/stores/verbs.js');
const { deferred, turns } = require('../helpers/names.js');

const SESSIONS = { MySQL: MysqlSession, PostgreSQL: PostgresSession };
const HEARTBEAT = 5000;

/** The rows of an answer, as the client of that kind has them. */
const answerOf = (kind, rows) => (kind === 'MySQL' ? [rows] : { rows });

/**
 * A session whose client answers by `answer(text, values)`, with rows or by an error; `asked` has the texts, `ends` what became of
 * it. The clock is the test's: `pass(ms)` lets time go by, and has the session look.
 */
function create(t, kind, answer = () => [], { heartbeat = HEARTBEAT, ...more } = {}) {
  const it = { asked: [], ends: [], losses: [], renewed: 0, cuts: 0, cleared: 0 };
  let now = 1_000_000;
  let look;
  const leases = new Map();
  t.mock.method(binding, 'leaseTime', () => now);
  let begun = 0;
  t.mock.method(binding, 'beginLease', (until) => {
    begun += 1;
    leases.set(begun, until);
    return begun;
  });
  t.mock.method(binding, 'extendLease', (lease, until) => leases.get(lease) > now && leases.set(lease, until) !== null);
  t.mock.method(binding, 'endLease', (_desk, lease, loss) => {
    leases.delete(lease);
    it.losses.push([lease, loss]);
  });
  t.mock.method(clock, 'setInterval', (act, ms) => {
    it.every = ms;
    look = act;
    return { unref: () => look };
  });
  t.mock.method(clock, 'clearInterval', () => (it.cleared += 1));
  const stream = { destroy: () => (it.cuts += 1) };
  const client = Object.assign(new EventEmitter(), {
    connection: { stream },
    async query(text, values) {
      it.asked.push(text);
      return answerOf(kind, await answer(text, values));
    },
    end: async () => it.ends.push('client'),
    ...more,
  });
  const on = { onRenewed: () => (it.renewed += 1), onEnd: (error) => it.ends.push(error?.message) };
  it.session = new SESSIONS[kind](kind, client, 0, heartbeat, on);
  it.client = client;
  it.until = () => leases.get(it.session.lease);
  it.pass = async (ms) => {
    now += ms;
    look();
    await turns();
  };
  it.now = () => now;
  return it;
}

const failing = (error) => Promise.reject(Object.assign(new Error('said'), error));

for (const [heartbeat, seconds] of [
  [5000, 25],
  [300, 2],
  [50, 1],
]) {
  test(`MySQL, ${heartbeat} ms: the server ends a session from which nothing has come for five heartbeats, in whole seconds, and nothing else does`, async (t) => {
    const { session, asked } = create(t, 'MySQL', () => [{ id: '7', isReadOnly: 0 }], { heartbeat, threadId: 7 });
    await session.begin();
    assert.deepEqual(asked.slice(0, -1), [
      `set session wait_timeout = ${seconds}`,
      'set session autocommit = 1',
      'set session max_statement_time = 0',
      'set session max_execution_time = 0',
    ]);
    assert.deepEqual([session.id, session.isPooled], [7, false]);
    session.client.threadId = 8;
    await session.begin();
    assert.equal(session.isPooled, true, 'its client was told another number');
  });
}

for (const [heartbeat, seconds, idle, interval, check] of [
  [5000, 25, 10, 5, 5000],
  [1000, 5, 2, 1, 1000],
  [50, 1, 1, 1, 100],
]) {
  test(`PostgreSQL, ${heartbeat} ms: the server ends a session that cannot be reached for five heartbeats, and nothing else does`, async (t) => {
    const set = [];
    const answer = (_text, values) => {
      if (values === undefined) return [{ pid: 7, recovers: false }];
      set.push(...JSON.parse(values[0]));
      return [];
    };
    const { session } = create(t, 'PostgreSQL', answer, { heartbeat, processID: 8 });
    await session.begin(heartbeat);
    assert.deepEqual(Object.fromEntries(set.map(({ name, value }) => [name, value])), {
      statement_timeout: '0',
      lock_timeout: '0',
      idle_session_timeout: '0',
      idle_in_transaction_session_timeout: '0',
      transaction_timeout: '0',
      synchronous_commit: 'on',
      tcp_keepalives_idle: String(idle),
      tcp_keepalives_interval: String(interval),
      tcp_keepalives_count: '3',
      tcp_user_timeout: String(seconds * 1000),
      client_connection_check_interval: String(check),
      application_name: 'sablock',
    });
    assert.deepEqual([session.id, session.isPooled], [7, true], 'its client was told another number');
  });
}

test('MySQL: a setting that the server does not know is passed over, any other failure is that of the session', async (t) => {
  const begin = (errno) => {
    const answer = (text) =>
      text.includes('max_') ? failing({ errno, sqlState: 'HY000' }) : [{ id: 7, isReadOnly: 'OFF' }];
    return create(t, 'MySQL', answer).session.begin();
  };
  await begin(1193);
  await assert.rejects(begin(1231), { errno: 1231 });
});

/** The errors by which a session ends, and by which it does not; those that stay are final. */
const ERRORS = {
  MySQL: {
    ends: [
      {},
      { errno: 1205 },
      { code: 'EPIPE' },
      { errno: 1205, sqlState: 'HY000', fatal: true },
      ...[1053, 1927, 3169, 4031].map((errno) => ({ errno, sqlState: 'HY000' })),
    ],
    stays: [1044, 1045, 1049, 1064, 1142, 1227, 1235, 1305, 1370].map((errno) => ({ errno, sqlState: '42000' })),
    passes: [1205, 1213, 1317].map((errno) => ({ errno, sqlState: 'HY000' })),
  },
  PostgreSQL: {
    ends: [{}, { code: 'EPIPE' }, { code: 'ABCDE' }, { code: '57P01', severity: 'FATAL' }, { code: '4000' }],
    stays: ['0A000', '22P02', '42501', '53100', '53200', '54000', '58030', 'XX000'].map((code) => ({ code })),
    passes: ['40001', '53300', '55P03', '57014', '57P03'].map((code) => ({ code, severity: 'ERROR' })),
  },
};

for (const [kind, { ends, stays, passes }] of Object.entries(ERRORS)) {
  test(`${kind}: which errors end a session, which refuse for good, and which may pass`, async (t) => {
    for (const [list, isOver, isFinal] of [
      [ends, true, undefined],
      [stays, false, true],
      [passes, false, undefined],
    ]) {
      for (const error of list) {
        const { session } = create(t, kind, () => failing(error));
        const thrown = await session.query('select 1').catch((reason) => reason);
        assert.deepEqual([session.isOver, thrown.isFinal], [isOver, isFinal], JSON.stringify(error));
        t.mock.restoreAll();
      }
    }
  });

  test(`${kind}: what is held is sure for three heartbeats from when the last answered question was sent`, async (t) => {
    const it = create(t, kind);
    assert.equal(it.every, HEARTBEAT / 4);
    assert.equal(it.until(), it.now() + 3 * HEARTBEAT);
    it.session.hold('key');
    await it.pass(HEARTBEAT - 1);
    assert.deepEqual(it.asked, []);
    const sent = it.now() + 1;
    await it.pass(1);
    assert.deepEqual([it.asked, it.renewed, it.until()], [['select 1'], 1, sent + 3 * HEARTBEAT]);
    const answer = deferred();
    it.client.query = () => answer.promise;
    await it.pass(HEARTBEAT);
    await it.pass(2 * HEARTBEAT - 1);
    assert.deepEqual([it.session.isOver, it.renewed], [false, 1]);
    await it.pass(1);
    assert.deepEqual([it.session.isOver, it.losses, it.cuts], [true, [[1, UNREACHABLE]], 1]);
    assert.deepEqual(it.ends, [`${kind} did not answer in time.`]);
    answer.resolve(answerOf(kind, []));
    await turns();
    assert.deepEqual([it.ends.length, it.losses.length, it.renewed, it.cleared], [1, 1, 1, 1]);
  });

  test(`${kind}: a refusal is an answer, and no heartbeat: what is held is sure from it on`, async (t) => {
    const { errno, code, sqlState, severity } = ERRORS[kind].passes[0];
    const it = create(t, kind, () => failing({ errno, code, sqlState, severity }));
    it.session.hold('key');
    for (let beats = 0; beats < 5; beats += 1) await it.pass(HEARTBEAT);
    assert.deepEqual([it.session.isOver, it.asked.length, it.renewed], [false, 5, 0]);
    assert.equal(it.until(), it.now() + 3 * HEARTBEAT);
  });

  test(`${kind}: a client without a connection of its own is ended where others are cut`, async (t) => {
    const it = create(t, kind, () => [], { connection: undefined });
    it.session.end(new Error('lost'));
    assert.deepEqual(it.ends, ['client', 'lost']);
  });

  test(`${kind}: a session that is closed beside a silent server is cut after a second`, async (t) => {
    const timers = [];
    t.mock.method(clock, 'setTimeout', (act, ms) => {
      timers.push([act, ms]);
      return { unref() {} };
    });
    const it = create(t, kind, () => new Promise(() => {}));
    it.session.query('select 1').catch(() => {});
    it.session.end(undefined, 0);
    const [[act, ms]] = timers;
    assert.deepEqual([timers.length, ms, it.cuts], [1, 1000, 0]);
    act();
    assert.deepEqual([it.cuts, it.ends], [1, [undefined]]);
  });

  test(`${kind}: a session that holds nothing ends, too, when a question was not answered for three heartbeats`, async (t) => {
    const it = create(t, kind, () => new Promise(() => {}));
    await it.pass(HEARTBEAT);
    await it.pass(3 * HEARTBEAT - 1);
    assert.equal(it.session.isOver, false);
    await it.pass(1);
    assert.deepEqual([it.session.isOver, it.asked], [true, ['select 1']]);
  });

  test(`${kind}: a session that blocks is asked nothing, and ends by no silence`, async (t) => {
    const granted = deferred();
    const it = create(t, kind, () => granted.promise);
    it.session.waiting = {};
    const lock = it.session.lock('key', false);
    await it.pass(20 * HEARTBEAT);
    assert.deepEqual([it.session.isOver, it.asked.length, it.session.isFresh], [false, 1, false]);
    granted.resolve([{ done: 1 }]);
    await lock;
    assert.equal(it.session.isFresh, false, 'the answer says nothing of now');
    await it.session.query('select 1');
    assert.deepEqual([it.session.isFresh, it.until()], [true, it.now() + 3 * HEARTBEAT]);
    assert.deepEqual([...new Set(it.losses.map(([, loss]) => loss))], [0], 'it held nothing, and begins anew');
  });

  test(`${kind}: an answer that is too late ends a session that holds, as unreachable`, async (t) => {
    const answer = deferred();
    const it = create(t, kind, () => answer.promise);
    it.session.hold('key');
    const asked = it.session.query('select 1');
    // Nothing looks meanwhile.
    t.mock.method(binding, 'extendLease', () => false);
    answer.resolve([]);
    await assert.rejects(asked, { message: `The connection to ${kind} has ended.` });
    assert.deepEqual([it.session.isOver, it.losses], [true, [[1, UNREACHABLE]]]);
  });

  test(`${kind}: questions are sent one at a time, in order, and none is answered once the session is over`, async (t) => {
    const answers = [];
    const it = create(t, kind, () => {
      const answer = deferred();
      answers.push(answer);
      return answer.promise;
    });
    const outcomes = ['one', 'two', 'three'].map((text) => it.session.query(text).catch(({ message }) => message));
    assert.deepEqual(it.asked, ['one']);
    answers[0].resolve([]);
    assert.deepEqual(await outcomes[0], []);
    await turns();
    assert.deepEqual(it.asked, ['one', 'two']);
    it.client.emit('end');
    // An answer that comes right behind the end says nothing.
    answers[1].resolve([]);
    await turns();
    answers[2].reject(new Error('ended'));
    const over = `The connection to ${kind} has ended.`;
    assert.deepEqual(await Promise.all(outcomes.slice(1)), [over, 'ended']);
    await assert.rejects(it.session.query('four'), { message: over });
    assert.deepEqual([it.losses, it.ends], [[[1, TAKEN]], [undefined]]);
    assert.equal(it.asked.includes('four'), false);
  });

  test(`${kind}: a session that is closed ends its client after what it was asked before, once`, async (t) => {
    const answer = deferred();
    const it = create(t, kind, () => answer.promise);
    const asked = it.session.query('select 1').catch((error) => error);
    it.session.end(undefined, 0);
    assert.deepEqual([it.ends, it.cuts], [[undefined], 0]);
    answer.resolve([]);
    await asked;
    await turns();
    assert.deepEqual([it.ends, it.cuts], [[undefined, 'client'], 0]);
  });

  test(`${kind}: a session that waits, or is lost, is cut at once`, async (t) => {
    const waits = create(t, kind, () => new Promise(() => {}));
    waits.session.waiting = {};
    waits.session.end(undefined, 0);
    assert.deepEqual([waits.cuts, waits.losses, waits.ends], [1, [[1, 0]], [undefined]]);
    t.mock.restoreAll();
    const lost = create(t, kind, () => new Promise(() => {}));
    lost.client.emit('error', new Error('lost'));
    assert.deepEqual([lost.cuts, lost.losses, lost.ends], [1, [[1, TAKEN]], ['lost']]);
  });

  test(`${kind}: what a session has twice it has until it was let go twice`, (t) => {
    const { session } = create(t, kind);
    session.hold('key');
    session.hold('key');
    session.letGo('key');
    assert.deepEqual([session.held.get('key'), session.isIdle], [1, false]);
    session.letGo('key');
    assert.deepEqual([session.held.size, session.isIdle], [0, true]);
    session.waiting = {};
    assert.equal(session.isIdle, false);
  });
}

test('MySQL: holders are asked for in rows that a server takes, and those of this process are left out', async (t) => {
  const keys = Array.from({ length: 2001 }, (_, index) => `key ${index}`);
  const asked = [];
  const answer = (_text, some) => {
    asked.push(some.length);
    // Big numbers may come as text.
    const ids = { 'key 999': '7', 'key 1000': 8, 'key 2000': 9 };
    return [Object.fromEntries(some.map((key, at) => [`k${at}`, ids[key] ?? null]))];
  };
  const { session } = create(t, 'MySQL', answer);
  const holderOf = (key, id) => ({ key, isShared: false, id, pid: -1 });
  assert.deepEqual(await session.holders(keys, [8]), [holderOf('key 999', 7), holderOf('key 2000', 9)]);
  assert.deepEqual(asked, [1000, 1000, 1]);
});

test('PostgreSQL: holders are shown with their mode and number', async (t) => {
  const { session } = create(t, 'PostgreSQL', (_text, [own]) => {
    assert.deepEqual(own, [3]);
    return [
      { key: '5', mode: 'ExclusiveLock', pid: '7' },
      { key: '6', mode: 'ShareLock', pid: 8 },
    ];
  });
  assert.deepEqual(await session.holders([], [3]), [
    { key: '5', isShared: false, id: 7, pid: 7 },
    { key: '6', isShared: true, id: 8, pid: 8 },
  ]);
});

test('PostgreSQL: a fence after a failover is larger than all before, whatever the numbers of transactions', async (t) => {
  const rows = [
    { xid: '9', timeline: '00000001' },
    { xid: '281474976710655', timeline: '00000001' },
    { xid: '5', timeline: '0000000A' },
    { xid: '6', timeline: '00000010' },
  ];
  const { session } = create(t, 'PostgreSQL', () => [rows.shift()]);
  let last = 0n;
  while (rows.length > 0) {
    const fence = await session.fence();
    assert.ok(fence > last, `${fence} after ${last}`);
    last = fence;
  }
  assert.equal(last, (16n << 48n) | 6n);
});

test('MySQL: a fence has all its digits; a wait that the server has ended without an error is interrupted', async (t) => {
  const { session } = create(t, 'MySQL', () => [{ fence: '14411518807585587201', done: 0 }]);
  assert.equal(await session.fence(), 14_411_518_807_585_587_201n);
  const error = await session.lock('key').catch((reason) => reason);
  assert.equal(session.isInterruption(error), true);
  assert.equal(session.isInterruption({ errno: 1205 }), false);
  assert.equal(session.isOver, false);
});
