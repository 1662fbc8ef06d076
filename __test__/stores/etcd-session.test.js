// The loop by which a session of etcd tries again what a call in vain has left, beside a server that is written here.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { binding } = require('../../lib/engine/thread.js');
const clock = require('../../lib/load/clock.js');
const { Session } = require('../../lib/stores/etcd/session.js');
const { TAKEN, UNREACHABLE } = require('../../lib/stores/verbs.js');
const { deferred, turns } = require('../helpers/names.js');
const { pause, seen } = require('../helpers/stores.js');

/** A session that has begun, whose server grants and renews leases; `of` replaces what else it asks for. */
async function begun(t, of) {
  const calls = { renewals: 0 };
  const session = new Session({
    settings: { lease: 600_000, renew: 200_000, connectTimeout: 5000 },
    async call(path) {
      if (path === 'lease/keepalive') calls.renewals += 1;
      return { ID: '1', TTL: '600' };
    },
    transact: async () => {},
    watch(onMessage) {
      setImmediate(onMessage, { created: true });
      return () => {};
    },
    onRenewed() {},
    onDeleted() {},
    onEnd() {},
    ...of,
  });
  t.after(() => session.close());
  await session.begin();
  return { session, calls };
}

test('a lease is asked for in whole seconds, and no shorter than it is to be', async (t) => {
  const asked = [];
  const settings = { lease: 2400, renew: 200_000, connectTimeout: 5000 };
  const call = async (path, { TTL }) => {
    if (path === 'lease/grant') asked.push(Number(TTL));
    return { ID: '1', TTL: '3' };
  };
  await begun(t, { settings, call });
  assert.deepEqual(asked, [3]);
});

test('a lease that ends before deletions are reported is the error of the beginning', {
  timeout: 60_000,
}, async (t) => {
  const revoked = [];
  const slow = begun(t, {
    call: async (path) => {
      if (path === 'lease/revoke') revoked.push(path);
      return { ID: '1', TTL: '1' };
    },
    // Nothing comes, until the session ends it.
    watch(_onMessage, onEnd) {
      const open = setInterval(() => {}, 1000);
      return () => {
        clearInterval(open);
        onEnd(new Error('it ended'));
      };
    },
  });
  await assert.rejects(slow, { code: 'ERR_LOCK_STORE', message: 'etcd has not answered before the end of the lease.' });
  assert.notEqual(revoked.length, 0);
});

test('a lease whose deletions cannot be reported is revoked, and why is the error of the beginning', {
  timeout: 60_000,
}, async (t) => {
  const called = [];
  let watches = 0;
  const refused = new Error('refused');
  const session = begun(t, {
    call: async (path, { ID }) => {
      called.push([path, ID]);
      // That it cannot be revoked is nobody's error: it ends by itself.
      if (path === 'lease/revoke') throw new Error('refused, too');
      return { ID: '7', TTL: '600' };
    },
    watch(_onMessage, onEnd) {
      watches += 1;
      setImmediate(onEnd, refused);
      return () => {};
    },
  });
  await assert.rejects(session, refused);
  assert.deepEqual(called, [
    ['lease/grant', undefined],
    ['lease/revoke', '7'],
  ]);
  await turns();
  assert.equal(watches, 1, 'none is asked for after that');
});

test('deletions are asked for again where that ended as it began', { timeout: 60_000 }, async (t) => {
  let watches = 0;
  await begun(t, {
    // One piece of a stream may have both in it.
    watch(onMessage, onEnd) {
      watches += 1;
      setImmediate(() => {
        onMessage({ created: true });
        if (watches === 1) onEnd(new Error('it ended'));
      });
      return () => {};
    },
  });
  await seen(() => watches === 2);
});

test('what is missed while strays are deleted is seen to next', { timeout: 60_000 }, async (t) => {
  let deleted;
  const { session, calls } = await begun(t, {
    transact: () =>
      new Promise((resolve) => {
        deleted = resolve;
      }),
  });
  session.addStray('key', {}, true);
  await seen(() => deleted !== undefined);
  const before = calls.renewals;
  session.renewSoon();
  deleted();
  await seen(() => calls.renewals > before);
});

for (const ms of [0, 120]) {
  test(`where renewals succeed and what they begin fails after ${ms} ms, it renews after pauses that grow`, {
    timeout: 60_000,
  }, async (t) => {
    const place = { looking: null };
    const { session, calls } = await begun(t, {
      onRenewed() {
        place.looking = pause(ms).then(() => session.renewSoon());
      },
    });
    session.places.set('key', place);
    session.renewSoon();
    await pause(1600);
    // At once, and after 50 ms, 100 ms, ...
    assert.ok(calls.renewals > 1 && calls.renewals < 12, `${calls.renewals} renewals`);
  });
}

test('a key that may be made still is deleted until it cannot be, another once', { timeout: 60_000 }, async (t) => {
  const steps = [];
  const { session } = await begun(t, { transact: async (step) => steps.push(step) });
  session.addStray('sure', 'sure', true);
  session.addStray('late', 'late', false);
  await seen(() => steps.length >= 4);
  assert.equal(steps.filter((step) => step === 'sure').length, 1);
});

/** A session whose clock is the test's: `pass(ms)` lets time go by, and it looks. `answer()` is that of a renewal; `it` has what it does. */
async function timed(t, more = {}) {
  const it = {
    asked: [],
    losses: [],
    renewals: 0,
    streams: 0,
    ended: 0,
    deleted: [],
    cleared: [],
    answer: () => ({ TTL: '600' }),
  };
  let now = 1_000_000;
  let look;
  t.mock.method(binding, 'leaseTime', () => now);
  t.mock.method(clock, 'setInterval', (act, ms) => {
    it.every = ms;
    look = act;
    return { unref: () => ms };
  });
  t.mock.method(clock, 'clearInterval', (ms) => it.cleared.push(ms));
  const { session } = await begun(t, {
    async call(path, { ID }) {
      it.asked.push([path, ID]);
      return path === 'lease/keepalive' ? it.answer() : { ID: '1', TTL: '600' };
    },
    watch(onMessage, onEnd) {
      it.streams += 1;
      it.hear = onMessage;
      it.endStream = onEnd;
      setImmediate(onMessage, { created: true });
      return () => (it.ended += 1);
    },
    onRenewed: () => (it.renewals += 1),
    onEnd: (loss) => it.losses.push(loss),
    onDeleted: (key) => it.deleted.push(key),
    ...more,
  });
  it.pass = async (ms) => {
    now += ms;
    look();
    await turns();
  };
  it.count = (verb) => it.asked.filter(([path]) => path === `lease/${verb}`).length;
  return Object.assign(it, { session, now: () => now });
}

test('a lease is renewed when that is due, one call at a time, and again at the next look if it fails', async (t) => {
  const it = await timed(t);
  assert.equal(it.every, 50_000);
  const begunAt = it.now();
  // A second is the most that is given up.
  assert.deepEqual([it.session.length, it.session.until, it.session.left], [600_000, begunAt + 599_000, 599_000]);
  await it.pass(199_999);
  assert.equal(it.count('keepalive'), 0);
  const answer = deferred();
  it.answer = () => answer.promise;
  await it.pass(1);
  const sentAt = it.now();
  await it.pass(50_000);
  const all = Promise.all([it.session.renew(), it.session.renew()]);
  await turns();
  assert.deepEqual([it.count('keepalive'), it.renewals], [1, 0]);
  answer.resolve({ TTL: '600' });
  await all;
  assert.deepEqual([it.renewals, it.session.until], [1, sentAt + 599_000], 'it counts from before the call');
  it.answer = () => {
    throw new Error('not now');
  };
  await it.pass(149_999);
  assert.equal(it.count('keepalive'), 1, 'due is what was asked for last');
  for (const count of [2, 3]) {
    await it.pass(1);
    assert.equal(it.count('keepalive'), count);
  }
  it.answer = () => ({ TTL: '100' });
  await it.pass(1);
  // The time that is sure stays so.
  assert.deepEqual([it.renewals, it.session.length, it.session.until], [2, 100_000, sentAt + 599_000]);
  assert.deepEqual(it.losses, []);
});

test('a lease ends when its time is over, when etcd has ended it, and by an answer that is too late; each is said once', async (t) => {
  for (const [act, loss] of [
    [
      async (it) => {
        await it.pass(599_000);
        assert.equal(it.count('keepalive'), 0, 'nothing is asked for then');
      },
      UNREACHABLE,
    ],
    [
      async (it) => {
        it.answer = () => ({});
        await assert.rejects(it.session.renew(), { code: 'ERR_LOCK_STORE', message: 'etcd has ended the lease.' });
      },
      TAKEN,
    ],
    [
      async (it) => {
        it.answer = () => ({ TTL: '-1' });
        await assert.rejects(it.session.renew(), { code: 'ERR_LOCK_STORE', message: 'etcd has ended the lease.' });
      },
      TAKEN,
    ],
    [
      async (it) => {
        const answer = deferred();
        it.answer = () => answer.promise;
        const renewed = it.session.renew();
        t.mock.method(binding, 'leaseTime', () => it.now() + 599_000);
        answer.resolve({ TTL: '600' });
        await assert.rejects(renewed, { message: 'etcd has answered after the end of the lease.' });
      },
      UNREACHABLE,
    ],
  ]) {
    const it = await timed(t);
    await act(it);
    assert.deepEqual([it.losses, it.session.isOver, it.ended, it.renewals], [[loss], true, 1, 0]);
    assert.deepEqual(it.asked.at(-1), ['lease/revoke', '1']);
    it.session.end(TAKEN);
    assert.deepEqual([it.losses, it.count('revoke')], [[loss], 1]);
    t.mock.restoreAll();
  }
});

test('a session that is closed is not lost: its lease is revoked, and an answer that comes later says nothing', async (t) => {
  const it = await timed(t);
  const answer = deferred();
  it.answer = () => answer.promise;
  const renewed = it.session.renew();
  await it.session.close();
  assert.deepEqual([it.losses, it.ended, it.count('revoke'), it.session.isOver], [[], 1, 1, true]);
  const { until } = it.session;
  answer.resolve({ TTL: '6000' });
  await renewed;
  it.endStream(new Error('it ended'));
  await turns();
  assert.deepEqual([it.renewals, it.session.until, it.streams, it.losses], [0, until, 1, []]);
  assert.deepEqual(it.cleared, [it.every], 'it looks no more');
});

test('of what is watched the deletions are told', async (t) => {
  const it = await timed(t);
  const kv = (key) => ({ key: Buffer.from(key).toString('base64') });
  const events = [
    { type: 'DELETE', kv: kv('one') },
    { type: 'PUT', kv: kv('two') },
    { kv: kv('three') },
    { type: 'DELETE', kv: kv('four') },
  ];
  it.hear({ events });
  it.hear({});
  assert.deepEqual(it.deleted, ['one', 'four']);
});

test('a stream that ends begins again, one at a time, and what was deleted meanwhile is looked for', {
  timeout: 60_000,
}, async (t) => {
  const it = await timed(t);
  let fails = 2;
  it.answer = () => {
    if (fails-- > 0) throw new Error('not now');
    return { TTL: '600' };
  };
  it.endStream(new Error('it ended'));
  it.endStream(new Error('it ended'));
  await seen(() => it.renewals > 0);
  await turns();
  // The first two were ended, since no renewal came behind them.
  assert.deepEqual([it.streams, it.ended, it.count('keepalive')], [4, 2, 3]);
  // One that ends while the renewal behind it is under way begins anew, too.
  const answer = deferred();
  it.answer = () => answer.promise;
  it.endStream(new Error('it ended'));
  await seen(() => it.count('keepalive') === 4);
  it.endStream(new Error('it ended'));
  assert.equal(it.streams, 5);
  answer.resolve({ TTL: '600' });
  await seen(() => it.renewals > 2);
  assert.equal(it.streams, 6);
});

test('a watch that is not answered in time is the error of the beginning', { timeout: 60_000 }, async (t) => {
  let revoked = 0;
  const session = begun(t, {
    settings: { lease: 600_000, renew: 200_000, connectTimeout: 40 },
    call: async (path) => {
      if (path === 'lease/revoke') revoked += 1;
      return { ID: '1', TTL: '600' };
    },
    watch: () => () => {},
  });
  // The timer is no reason to wait for.
  const kept = setInterval(() => {}, 1000);
  t.after(() => clearInterval(kept));
  await assert.rejects(session, { code: 'ERR_LOCK_STORE', message: 'etcd has not answered in time.' });
  assert.equal(revoked, 1);
});

test('a key that may be made still is deleted until a lease is over from when that was known, by the time at which it is asked for', {
  timeout: 60_000,
}, async (t) => {
  const { setTimeout } = clock;
  t.mock.method(clock, 'setTimeout', (act, ms) => setTimeout(act, ms > 2000 ? ms : 1));
  const steps = [];
  let answer = async () => {};
  const it = await timed(t, {
    transact(step) {
      steps.push(step);
      return answer();
    },
  });
  it.session.addStray('late', 'late', false);
  await seen(() => steps.length > 2);
  // Renewed meanwhile, so that only the time of the key goes by.
  await it.pass(300_000);
  await it.session.renew();
  const answered = deferred();
  answer = () => answered.promise;
  const { length } = steps;
  await seen(() => steps.length > length);
  await it.pass(300_001);
  answer = async () => {};
  const asked = steps.length;
  answered.resolve();
  await seen(() => steps.length > asked);
  await turns();
  it.session.addStray('sure', 'sure', true);
  await seen(() => steps.includes('sure'));
  assert.deepEqual(steps.slice(asked), ['late', 'sure']);
});

test('a session looks at the end of what is sure by itself, between two looks', async (t) => {
  const timers = [];
  const { setTimeout } = clock;
  t.mock.method(clock, 'setTimeout', (act, ms) => {
    timers.push([act, ms]);
    return setTimeout(act, ms);
  });
  const it = await timed(t);
  const [act] = timers.find(([, ms]) => ms === 599_001);
  t.mock.method(binding, 'leaseTime', () => it.now() + 599_000);
  act();
  assert.deepEqual([it.losses, it.session.isOver], [[UNREACHABLE], true]);
});

test('what is left later is seen to as well, once what was left before is done', { timeout: 60_000 }, async (t) => {
  const { setTimeout } = clock;
  t.mock.method(clock, 'setTimeout', (act, ms) => setTimeout(act, ms > 2000 ? ms : 1));
  const steps = [];
  const { session, calls } = await begun(t, { transact: async (step) => steps.push(step) });
  for (const key of ['one', 'two']) {
    session.addStray(key, key, true);
    await seen(() => steps.includes(key));
    // Its loop is over then.
    await pause(50);
  }
  assert.deepEqual([steps, calls.renewals], [['one', 'two'], 2]);
});

test('a session that is closed while its stream is to begin again asks for none', { timeout: 60_000 }, async (t) => {
  const { setTimeout } = clock;
  t.mock.method(clock, 'setTimeout', (act, ms) => setTimeout(act, ms > 2000 ? ms : 1));
  const it = await timed(t);
  it.answer = () => {
    throw new Error('not now');
  };
  it.endStream(new Error('it ended'));
  await seen(() => it.streams > 2);
  await it.session.close();
  const { streams } = it;
  await pause(50);
  // One may have been on its way.
  assert.ok(it.streams <= streams + 1, `${it.streams - streams} streams`);
});
