// The questions of a keeper to etcd, and its use of the answers.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { create, told, transactions } = require('../helpers/etcd.js');
const { binding } = require('../../lib/engine/thread.js');
const { storeError } = require('../../lib/stores/errors.js');
const gateway = require('../../lib/stores/etcd/gateway.js');
const { hashOf, OURS } = require('../../lib/stores/retry.js');
const { TAKEN, UNREACHABLE } = require('../../lib/stores/verbs.js');
const { ticketOf } = require('../helpers/keepers.js');
const { deferred, turns } = require('../helpers/names.js');
const { watched } = require('../helpers/threads.js');

const { toBase64, toText } = gateway;

test(
  'a grant has a fence and a key if a fence is wanted, and neither if not; each has a lease, and is counted',
  watched(async (t) => {
    const it = create(t, { namespace: 'naïve' });
    const bare = await it.keeper.lock(ticketOf({ name: 'bare' }));
    assert.deepEqual(bare, { lease: 1, abandoned: false });
    const { lease, abandoned, fence, key } = await it.keeper.lock(ticketOf({ wantsFence: true }));
    assert.deepEqual([lease, abandoned, fence], [2, false, BigInt(it.server.revision)]);
    assert.equal(key, `naïve/${hashOf('a name')}/1-2`);
    const { grants, connects, connections, losses } = it.keeper.stats();
    assert.deepEqual([grants, connects, connections, losses], [2, 1, 2, 0]);
    assert.deepEqual(it.server.watched, [
      ...['/', '0'].map((end) => `${Buffer.from('naïve').toString('latin1')}${end}`),
      ['NOPUT'],
    ]);
  }),
);

test(
  'a try that is refused asks for nothing else if it is to be alone, and takes back its key if it shares',
  watched(async (t) => {
    const it = create(t);
    const theirs = it.server.put('a name', 'x', '9-1');
    assert.equal(await it.keeper.lock(ticketOf({ isTry: true })), null);
    await it.keeper.flush();
    assert.equal(transactions(it).length, 1);
    assert.equal(await it.keeper.lock(ticketOf({ isTry: true, isShared: true })), null);
    await it.keeper.flush();
    assert.deepEqual([transactions(it).length, it.keysOf('a name')], [3, [theirs]]);
    assert.deepEqual([it.keeper.counts.grants, it.keeper.connection.current.places.size], [0, 0]);
  }),
);

/** Lines, as kinds before a request: whether it shares, and whose deletions grant it, of those before it. */
const BEFORE = [
  ['s s', true, null],
  ['x', true, [0]],
  ['x s s', true, [0]],
  ['x x s', true, [1]],
  ['s', false, [0]],
  ['x s', false, [1]],
];

for (const [line, isShared, blockers] of BEFORE) {
  test(
    `behind ${line} a request that ${isShared ? 'shares' : 'is to be alone'} ${blockers === null ? 'is granted' : `waits for number ${blockers[0]}, and is looked after when that has gone`}`,
    watched(async (t, threads) => {
      const it = create(t);
      const keys = line.split(' ').map((kind, index) => it.server.put('a name', kind, `9-${index}`));
      let grant;
      it.keeper.lock(ticketOf({ isShared })).then((granted) => {
        grant = granted;
      });
      await threads.until('it is asked for', () => transactions(it).length > 0);
      await turns();
      if (blockers === null) {
        assert.equal(grant.lease, 1);
        return;
      }
      const [last] = blockers;
      const asked = transactions(it).length;
      // Others go first, behind its back or not: the way to it is not looked at for them.
      for (const [index, key] of keys.entries()) if (index !== last) it.server.delete(key);
      await turns(6);
      assert.deepEqual([grant, transactions(it).length], [undefined, asked]);
      it.server.delete(keys[last]);
      await threads.until('it is granted', () => grant !== undefined);
      assert.deepEqual([grant.lease, transactions(it).length], [1, asked + 1]);
    }),
  );
}

test(
  'the mark of a name stands while one holds it alone, and goes with a release that is well; who shares leaves it',
  watched(async (t) => {
    const it = create(t);
    /** The way it is held and given back, whether it finds a mark, and whether one is there when it holds, and behind it. */
    for (const [ticket, wasMarked, isAbandoned, isWell, held, behind] of [
      [{}, false, false, false, true, false],
      [{}, false, true, false, true, true],
      [{}, true, false, false, true, true],
      [{}, true, false, true, true, false],
      [{}, true, true, true, true, true],
      [{ isShared: true }, false, true, false, false, false],
      [{ isShared: true }, true, false, true, true, true],
    ]) {
      it.server.keys.clear();
      if (wasMarked) it.server.mark('a name');
      const asked = ticketOf(ticket);
      assert.equal((await it.keeper.lock(asked)).abandoned, wasMarked);
      if (isWell) it.keeper.markConsistent(asked);
      assert.equal(it.server.isMarked('a name'), held);
      it.keeper.release(asked, isAbandoned);
      assert.equal(asked.place, null);
      // Once more, it does nothing.
      it.keeper.release(asked, true);
      it.keeper.markConsistent(asked);
      await it.keeper.flush();
      assert.deepEqual([it.server.isMarked('a name'), it.keysOf('a name')], [behind, []]);
    }
    assert.deepEqual(new Set(it.ended.map(([desk, , loss]) => `${desk} ${loss}`)), new Set(['3 0']));
    assert.equal(it.keeper.counts.losses, 0);
  }),
);

test(
  'a key that was deleted is a lock that was taken: its lease ends, it is counted once, and marked if it was held alone',
  watched(async (t, threads) => {
    for (const isShared of [false, true]) {
      const it = create(t);
      await it.keeper.lock(ticketOf({ name: 'kept' }));
      await it.keeper.lock(ticketOf({ isShared }));
      const [key] = it.keysOf('a name');
      it.server.delete(key);
      await threads.until('it is lost', () => it.ended.length > 0);
      it.server.hear({ events: [{ type: 'DELETE', kv: { key: toBase64(key) } }] });
      await it.keeper.flush();
      assert.deepEqual([it.ended, it.keeper.counts.losses], [[[3, 2, TAKEN]], 1]);
      assert.equal(it.server.isMarked('a name'), !isShared);
      t.mock.restoreAll();
    }
  }),
);

test(
  'a wait whose key was deleted begins anew, at the end of the line',
  watched(async (t, threads) => {
    const it = create(t);
    const theirs = it.server.put('a name', 'x', '9-1');
    const lock = it.keeper.lock(ticketOf({ wantsFence: true }));
    await threads.until('it is in line', () => it.keysOf('a name').length === 2);
    await turns();
    it.server.delete(it.keysOf('a name')[1]);
    await threads.until('it is in line again', () => it.keysOf('a name')[1]?.endsWith('-2'));
    it.server.delete(theirs);
    assert.equal((await lock).key, `kept/${hashOf('a name')}/1-2`);
    assert.deepEqual([it.keeper.counts.losses, it.ended], [0, []]);
  }),
);

test(
  'renewals extend what is held, say of what has ended meanwhile that it is lost, and look for those that wait',
  watched(async (t, threads) => {
    const it = create(t);
    const [kept, ended] = ['kept', 'ended'].map((name) => ticketOf({ name }));
    for (const ticket of [kept, ended]) await it.keeper.lock(ticket);
    const theirs = it.server.put('waits', 'x', '9-1');
    const waits = it.keeper.lock(ticketOf({ name: 'waits' }));
    await threads.until('it is in line', () => it.keysOf('waits').length === 2);
    await turns();
    const [until] = [it.leases.get(1)];
    it.leases.delete(2);
    // The message of its end is lost.
    it.server.keys.delete(theirs);
    const { current } = it.keeper.connection;
    await threads.until('some time has gone by', () => binding.leaseTime() > current.until - 600_000 + 1000);
    await current.renew();
    assert.ok(it.leases.get(1) > until, 'it is extended');
    assert.equal(it.leases.get(1), current.until);
    assert.equal((await waits).abandoned, false);
    assert.deepEqual([it.ended, it.keeper.counts.losses, it.keeper.counts.renewals], [[[3, 2, UNREACHABLE]], 1, 1]);
    it.keeper.release(kept, false);
    await it.keeper.flush();
    // One that was looked for as if it waited would have found its own mark.
    assert.deepEqual([it.server.isMarked('kept'), it.server.isMarked('ended')], [false, true]);
  }),
);

test(
  'what is granted when less than half of the lease is left is renewed first',
  watched(async (t) => {
    const it = create(t);
    const renewals = () => it.server.calls.filter(([path]) => path === 'lease/keepalive').length;
    await it.keeper.lock(ticketOf({ name: 'first' }));
    const { current } = it.keeper.connection;
    const { leaseTime } = binding;
    let ahead = 0;
    t.mock.method(binding, 'leaseTime', () => leaseTime() + ahead);
    ahead = 290_000;
    await it.keeper.lock(ticketOf({ name: 'second' }));
    assert.equal(renewals(), 0);
    ahead = 301_000;
    await it.keeper.lock(ticketOf({ name: 'third' }));
    assert.deepEqual([renewals(), it.leases.get(3)], [1, current.until]);
    ahead = 0;
  }),
);

test(
  'the holders elsewhere are those in front: one alone, or all that share before the first that does not',
  watched(async (t) => {
    const it = create(t);
    for (const [name, line] of Object.entries({ alone: 'x s x', shared: 's s x s', waits: 'x', none: '' })) {
      for (const [index, kind] of line.split(' ').entries()) {
        if (kind !== '') it.server.put(name, kind, `${index + 50}-7`, `host-${index}`);
      }
    }
    await it.keeper.lock(ticketOf({ name: 'ours', isShared: true }));
    it.server.put('ours', 's', '60-1', 'host-9');
    const rows = await it.keeper.query({ names: ['alone', 'none', 'shared', 'ours'] });
    assert.deepEqual(
      rows.map(({ name, mode, clientId, pid, threadId, heldMs }) => [name, mode, clientId, pid, threadId, heldMs]),
      [
        ['alone', 'exclusive', 'etcd-host-0-50', -1, -1, -1],
        ['shared', 'shared', 'etcd-host-0-50', -1, -1, -1],
        ['shared', 'shared', 'etcd-host-1-51', -1, -1, -1],
        ['ours', 'shared', 'etcd-host-9-60', -1, -1, -1],
      ],
    );
    const [key] = it.keysOf('ours');
    assert.equal(toText(it.server.keys.get(key).value), `s ${OURS}`);
    const names = Array.from({ length: 250 }, (_, index) => `name ${index}`);
    for (const index of [0, 99, 100, 199, 200, 249]) it.server.put(names[index], 'x', '70-1');
    const asked = transactions(it).length;
    assert.deepEqual(
      (await it.keeper.query({ names })).map(({ name }) => name),
      [0, 99, 100, 199, 200, 249].map((index) => names[index]),
    );
    const steps = transactions(it).slice(asked);
    assert.deepEqual(
      steps.map(([, { success }]) => success.length),
      [100, 100, 50],
    );
  }),
);

test(
  'of a namespace with slashes the holders elsewhere are told from the own ones, too',
  watched(async (t) => {
    const it = create(t, { namespace: 'a/b' });
    await it.keeper.lock(ticketOf({ isShared: true }));
    it.server.keys.set(`a/b/${hashOf('a name')}/60-1`, { value: toBase64('s host-9'), made: it.server.revision });
    assert.deepEqual(
      (await it.keeper.query({ names: ['a name'] })).map(({ clientId }) => clientId),
      ['etcd-host-9-60'],
    );
  }),
);

test(
  'a lease that etcd has no more ends all that it had, and the request goes on with another',
  watched(async (t) => {
    const it = create(t);
    await it.keeper.lock(ticketOf({ name: 'held' }));
    let fails = 1;
    it.server.before = (path) => {
      if (path !== 'kv/txn' || fails-- < 1) return;
      throw Object.assign(storeError('requested lease not found'), { grpc: gateway.NOT_FOUND });
    };
    const { key } = await it.keeper.lock(ticketOf({ wantsFence: true }));
    assert.match(key, /\/2-\d+$/);
    assert.deepEqual([it.ended, it.keeper.counts.losses], [[[3, 1, TAKEN]], 1]);
    assert.equal(it.keeper.stats().connects, 2);
  }),
);

/** The failures of a call, and whether the store counts as unreachable then. */
const FAILURES = [
  ['no answer in time', storeError('late'), 4, true],
  ['no quorum', storeError('no leader'), 14, true],
  ['an error of the connection', new Error('ECONNRESET'), undefined, true],
  ['a refusal', storeError('permission denied', { isFinal: true }), 7, false],
];

for (const [what, error, grpc, isUnreachable] of FAILURES) {
  test(
    `${what} makes the store ${isUnreachable ? 'unreachable, until it answers' : 'no less reached'}`,
    watched(async (t) => {
      const it = create(t);
      await it.keeper.check();
      assert.deepEqual(told, ['connected']);
      it.server.before = () => {
        throw Object.assign(error, { grpc });
      };
      await assert.rejects(it.keeper.query({ names: ['a'] }), { code: 'ERR_LOCK_STORE' });
      assert.deepEqual(told, isUnreachable ? ['connected', 'unreachable'] : ['connected']);
      // An answer to another call is newer.
      it.server.before = () => {};
      await it.keeper.check();
      const all = isUnreachable ? ['connected', 'unreachable', 'reconnected'] : ['connected'];
      assert.deepEqual(told, all);
      const late = deferred();
      it.server.before = () => late.promise;
      const lost = it.keeper.query({ names: ['a'] });
      await turns();
      it.server.before = () => {};
      await it.keeper.check();
      late.reject(Object.assign(error, { grpc }));
      await assert.rejects(lost);
      assert.deepEqual(told, all);
    }),
  );
}

test(
  'a call has as long as a connection may take, and no longer than half a lease; the last round trip is told',
  watched(async (t, threads) => {
    for (const [settings, limit] of [
      [{ connectTimeout: 5000, lease: 600_000 }, 5000],
      [{ connectTimeout: 5000, lease: 4000 }, 2000],
    ]) {
      const it = create(t, settings);
      assert.equal(it.keeper.stats().connections, 0);
      const { roundTripMs } = await it.keeper.check();
      assert.ok(roundTripMs >= 0 && roundTripMs < 5000);
      assert.deepEqual([...it.server.limits], [limit]);
      const answer = deferred();
      it.server.before = () => answer.promise;
      const begun = binding.leaseTime();
      const query = it.keeper.query({ names: ['a'] });
      await threads.until('some time goes by', () => binding.leaseTime() - begun > 20);
      answer.resolve();
      await query;
      assert.ok(it.keeper.stats().roundTripMs > 15);
    }
  }),
);

test(
  'a health check asks for a key below the namespace, once what was released is gone',
  watched(async (t) => {
    const it = create(t);
    const ticket = ticketOf();
    await it.keeper.lock(ticket);
    const answer = deferred();
    it.server.before = () => answer.promise;
    it.keeper.release(ticket, false);
    await turns();
    const asked = transactions(it).length;
    const check = it.keeper.check();
    await turns();
    assert.equal(transactions(it).length, asked);
    answer.resolve();
    await check;
    const [, { success }] = transactions(it).at(-1);
    assert.deepEqual(success, [{ request_range: { key: toBase64('kept/') } }]);
  }),
);

test(
  'a store that is closed revokes its lease once what was released is gone, and then ends its connections',
  watched(async (t) => {
    const it = create(t);
    const ticket = ticketOf();
    await it.keeper.lock(ticket);
    const answer = deferred();
    it.server.before = (path) => (path === 'kv/txn' ? answer.promise : undefined);
    it.keeper.release(ticket, false);
    await turns();
    let isClosed = false;
    const closing = it.keeper.close().then(() => {
      isClosed = true;
    });
    await turns();
    const revoked = () => it.server.calls.filter(([path]) => path === 'lease/revoke').map(([, { ID }]) => ID);
    assert.deepEqual([revoked(), it.server.isClosed, isClosed], [[], false, false]);
    answer.resolve();
    await closing;
    assert.deepEqual([revoked(), it.server.isClosed, it.ended], [['1'], true, [[3, 1, 0]]]);
    await assert.rejects(it.keeper.lock(ticketOf()), { code: 'ERR_LOCK_STORE', message: 'This store was closed.' });
  }),
);

test(
  'who waits and is withdrawn takes back its key and is granted nothing; who asks next comes after that',
  watched(async (t, threads) => {
    const it = create(t);
    const theirs = it.server.put('a name', 'x', '9-1');
    const ticket = ticketOf();
    const lock = it.keeper.lock(ticket);
    await threads.until('it is in line', () => it.keysOf('a name').length === 2);
    await turns();
    const answer = deferred();
    it.server.before = () => answer.promise;
    ticket.isCancelled = true;
    it.keeper.cancel(ticket);
    const asked = transactions(it).length;
    await turns();
    assert.equal(transactions(it).length, asked + 1);
    it.keeper.lock(ticketOf({ isTry: true }));
    await turns();
    assert.equal(transactions(it).length, asked + 1, 'the next waits');
    answer.resolve();
    assert.equal(await lock, null);
    await it.keeper.flush();
    await threads.until('it was tried', () => transactions(it).length === asked + 2);
    assert.deepEqual([it.keysOf('a name'), it.ended, it.server.isMarked('a name')], [[theirs], [], false]);
  }),
);

test(
  'a release that fails is made good later, with its mark; it does not hold up the others',
  watched(async (t, threads) => {
    for (const isAbandoned of [false, true]) {
      const it = create(t);
      const tickets = ['a name', 'another'].map((name) => ticketOf({ name }));
      for (const ticket of tickets) await it.keeper.lock(ticket);
      let fails = 2;
      it.server.before = (path) => {
        if (path !== 'kv/txn' || fails-- < 1) return;
        throw storeError('not now');
      };
      for (const ticket of tickets) it.keeper.release(ticket, isAbandoned);
      await it.keeper.flush();
      assert.equal(it.server.keys.size, 4);
      await threads.until('both have gone', () => it.keysOf('a name').length + it.keysOf('another').length === 0);
      assert.deepEqual([it.server.isMarked('a name'), it.server.isMarked('another')], [isAbandoned, isAbandoned]);
      t.mock.restoreAll();
    }
  }),
);

test(
  'the end of a stream of deletions makes the store unreachable, with the reason, while it is open',
  watched(async (t, threads) => {
    const it = create(t);
    await it.keeper.check();
    it.server.endStream('of a test');
    assert.deepEqual(told, ['connected', 'unreachable']);
    const { hear } = it.server;
    await threads.until('it is watched again', () => it.server.hear !== hear && told.length === 3);
    assert.equal(told[2], 'reconnected');
    await it.keeper.close();
    it.server.endStream();
    assert.equal(told.length, 3);
  }),
);
