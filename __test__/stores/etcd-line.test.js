// Messages of etcd that cross: what is deleted, withdrawn, or has ended while a question about the line is on its way.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { create, told, transactions } = require('../helpers/etcd.js');
const clock = require('../../lib/load/clock.js');
const { binding } = require('../../lib/engine/thread.js');
const { storeError } = require('../../lib/stores/errors.js');
const { toText } = require('../../lib/stores/etcd/gateway.js');
const { TAKEN } = require('../../lib/stores/verbs.js');
const { ticketOf } = require('../helpers/keepers.js');
const { deferred, turns } = require('../helpers/names.js');
const { watched } = require('../helpers/threads.js');

/** Keeps back the next answer to a transaction: `isAnswered()` is true once it is on its way, and `goOn()` lets it come. */
function keepBack({ server }) {
  const come = deferred();
  let isAnswered = false;
  server.after = () => {
    server.after = () => {};
    isAnswered = true;
    return come.promise;
  };
  return { isAnswered: () => isAnswered, goOn: come.resolve };
}

/** Asks for the name; `it.grant` is what comes of it. */
function ask(it, ticket = ticketOf()) {
  it.grant = undefined;
  it.keeper.lock(ticket).then(
    (grant) => {
      it.grant = grant;
    },
    (error) => {
      it.error = error;
      it.grant = null;
    },
  );
  return ticket;
}

for (const isShared of [false, true]) {
  const mode = isShared ? 'shared' : 'exclusive';
  test(
    `who is in the way may go while the answer about the own key is on its way (${mode})`,
    watched(async (t, threads) => {
      const it = create(t);
      await it.keeper.check();
      const theirs = it.server.put('a name', 'x', '9-1');
      const answer = keepBack(it);
      ask(it, ticketOf({ isShared }));
      await threads.until('its key is there', answer.isAnswered);
      it.server.delete(theirs);
      await turns();
      answer.goOn();
      await threads.until('it is granted', () => it.grant !== undefined);
    }),
  );

  test(
    `who is in the way may go while that is looked for, and is looked for no longer than needed (${mode})`,
    watched(async (t, threads) => {
      const it = create(t);
      await it.keeper.check();
      const keys = [1, 2, 3, 4].map((index) => it.server.put('a name', 'x', `9-${index}`));
      ask(it, ticketOf({ isShared }));
      await turns();
      const answer = keepBack(it);
      it.server.delete(keys[3]);
      await threads.until('it looks', answer.isAnswered);
      it.server.delete(keys[2]);
      await turns();
      answer.goOn();
      await turns(6);
      const asked = transactions(it).length;
      await turns(6);
      assert.deepEqual([it.grant, transactions(it).length], [undefined, asked], 'it asks for ever');
      it.server.delete(keys[0]);
      it.server.delete(keys[1]);
      await threads.until('it is granted', () => it.grant !== undefined);
    }),
  );

  test(
    `one whose own key has gone unseen is granted nothing by that, and begins anew (${mode})`,
    watched(async (t) => {
      const it = create(t);
      await it.keeper.check();
      const theirs = it.server.put('a name', 'x', '9-1');
      ask(it, ticketOf({ isShared, wantsFence: true }));
      await turns();
      it.server.keys.delete(it.keysOf('a name')[1]);
      it.server.delete(theirs);
      while (it.grant === undefined) await turns();
      assert.deepEqual(it.keysOf('a name'), [it.grant.key]);
      assert.match(it.grant.key, /-2$/);
    }),
  );
}

test(
  'who waited to be alone has the mark set by the step that grants, and sees one that was there',
  watched(async (t, threads) => {
    for (const wasMarked of [false, true]) {
      const it = create(t);
      await it.keeper.check();
      const theirs = it.server.put('a name', 'x', '9-1');
      const ticket = ask(it, ticketOf({ wantsFence: true }));
      await turns();
      const made = it.server.revision;
      it.server.put('another', 'x', '9-1');
      if (wasMarked) it.server.mark('a name');
      it.server.delete(theirs);
      await threads.until('it is granted', () => it.grant !== undefined);
      assert.deepEqual(
        [it.grant.abandoned, it.grant.fence, it.server.isMarked('a name')],
        [wasMarked, BigInt(made), true],
      );
      it.keeper.release(ticket, false);
      await it.keeper.flush();
      assert.equal(it.server.isMarked('a name'), wasMarked);
      t.mock.restoreAll();
    }
  }),
);

test(
  'of what goes behind a holder, or in the line of another name, nothing is asked; a holder that is well leaves no mark for it',
  watched(async (t) => {
    const it = create(t);
    const ticket = ask(it);
    while (it.grant === undefined) await turns();
    it.server.put('waited for', 'x', '9-1');
    it.keeper.lock(ticketOf({ name: 'waited for' }));
    await turns();
    const behind = it.server.put('a name', 'x', '9-2');
    const [another, other] = ['another', 'waited for too'].map((name) => it.server.put(name, 'x', '9-3'));
    const asked = transactions(it).length;
    for (const key of [behind, another, other]) it.server.delete(key);
    await turns(6);
    assert.equal(transactions(it).length, asked);
    it.keeper.release(ticket, false);
    await it.keeper.flush();
    assert.equal(it.server.isMarked('a name'), false);
  }),
);

test(
  'the release of a lock that another has meanwhile leaves the mark of that one',
  watched(async (t) => {
    const it = create(t);
    const ticket = ask(it);
    while (it.grant === undefined) await turns();
    it.server.keys.clear();
    const theirs = it.server.put('a name', 'x', '9-1');
    it.server.mark('a name');
    it.keeper.release(ticket, false);
    await it.keeper.flush();
    assert.deepEqual([it.keysOf('a name'), it.server.isMarked('a name')], [[theirs], true]);
  }),
);

test(
  'a cancel that comes after the grant takes nothing back, and a release after the loss ends nothing twice',
  watched(async (t, threads) => {
    const it = create(t);
    const ticket = ask(it);
    while (it.grant === undefined) await turns();
    it.keeper.cancel(ticket);
    it.keeper.cancel(ticketOf());
    await it.keeper.flush();
    assert.deepEqual([it.keysOf('a name').length, it.ended], [1, []]);
    it.server.delete(it.keysOf('a name')[0]);
    await threads.until('it is lost', () => it.ended.length > 0);
    await it.keeper.flush();
    const asked = transactions(it).length;
    it.keeper.release(ticket, false);
    await it.keeper.flush();
    assert.deepEqual([it.ended, transactions(it).length, it.server.isMarked('a name')], [[[3, 1, TAKEN]], asked, true]);
  }),
);

/** Events while a grant waits for the renewal of its lease, and what comes of each. */
const MEANWHILE = {
  'is withdrawn is granted nothing': (it, ticket) => {
    ticket.isCancelled = true;
    it.keeper.cancel(ticket);
    return { grant: null, keys: 0 };
  },
  'loses its key begins anew': (it) => {
    it.server.delete(it.keysOf('a name')[0]);
    return { grant: 1, keys: 1 };
  },
  'sees its store closed is granted nothing': (it) => {
    it.keeper.close();
    return { grant: null, keys: 0 };
  },
};

for (const [what, act] of Object.entries(MEANWHILE)) {
  test(
    `one that ${what} while its lease is renewed before the grant`,
    watched(async (t, threads) => {
      const it = create(t);
      await it.keeper.check();
      const { leaseTime } = binding;
      t.mock.method(binding, 'leaseTime', () => leaseTime() + 301_000);
      const renewed = deferred();
      let isRenewing = false;
      it.server.before = (path) => {
        if (path !== 'lease/keepalive') return undefined;
        isRenewing = true;
        return renewed.promise;
      };
      const ticket = ask(it);
      await threads.until('it is renewed', () => isRenewing);
      const { grant, keys } = act(it, ticket);
      await turns();
      it.server.before = () => {};
      renewed.resolve({ TTL: '600' });
      await threads.until('it is over', () => it.grant !== undefined);
      await it.keeper.flush();
      assert.deepEqual([it.grant?.lease ?? null, it.keysOf('a name').length, it.leases.size], [grant, keys, keys]);
    }),
  );
}

test(
  'the end of a session ends what it has, and takes back nothing key by key; one that asks meanwhile asks again',
  watched(async (t, threads) => {
    const it = create(t);
    const unhandled = [];
    const note = (reason) => unhandled.push(reason);
    process.on('unhandledRejection', note);
    t.after(() => process.off('unhandledRejection', note));
    for (const name of ['one', 'two']) await it.keeper.lock(ticketOf({ name }));
    const answer = keepBack(it);
    ask(it);
    await threads.until('its key is there', answer.isAnswered);
    const asked = transactions(it).length;
    it.keeper.connection.current.end(TAKEN);
    await turns(6);
    assert.deepEqual(unhandled, []);
    assert.deepEqual(
      it.ended,
      [1, 2].map((lease) => [3, lease, TAKEN]),
    );
    assert.deepEqual([transactions(it).length, it.keeper.counts.losses, it.keeper.connections], [asked, 2, 0]);
    answer.goOn();
    await threads.until('it is granted', () => it.grant !== undefined);
    assert.equal(it.keysOf('a name').length, 1);
    assert.deepEqual(told, ['connected', 'unreachable', 'reconnected']);
  }),
);

test(
  'requests for a name are granted in the order in which they were made, however their answers come',
  watched(async (t, threads) => {
    const it = create(t);
    await it.keeper.check();
    const granted = [];
    const answers = [];
    for (let index = 0; index < 4; index += 1) {
      answers.push(keepBack(it));
      it.keeper.lock(ticketOf({ isShared: true })).then(() => granted.push(index));
      await threads.until('its key is there', answers[index].isAnswered);
    }
    const seen = [];
    for (const index of [3, 1, 0]) {
      answers[index].goOn();
      await turns(6);
      seen.push(granted.join());
    }
    assert.deepEqual(seen, ['', '', '0,1']);
    answers.push(keepBack(it));
    it.keeper.lock(ticketOf({ isShared: true })).then(() => granted.push(4));
    await threads.until('its key is there', answers[4].isAnswered);
    answers[4].goOn();
    await turns(6);
    assert.deepEqual(granted, [0, 1]);
    answers[2].goOn();
    await threads.until('all are granted', () => granted.length === 5);
    assert.deepEqual(granted, [0, 1, 2, 3, 4]);
  }),
);

test(
  'a store that is closed beside a silent server ends its session after a second, and nothing is told of it',
  watched(async (t) => {
    const it = create(t);
    const ticket = ask(it);
    while (it.grant === undefined) await turns();
    const { current } = it.keeper.connection;
    const answer = deferred();
    it.server.before = () => answer.promise;
    it.keeper.release(ticket, false);
    const { setTimeout } = clock;
    const times = [];
    t.mock.method(clock, 'setTimeout', (act, ms) => {
      times.push(ms);
      return setTimeout(act, 1);
    });
    await it.keeper.close();
    assert.deepEqual([times, current.isOver, it.server.isClosed], [[1000], true, true]);
    answer.reject(new Error('its connection was ended'));
    await turns(6);
    assert.deepEqual(told, ['connected']);
  }),
);

test(
  'the round trip of a health check does not count the time to connect',
  watched(async (t, threads) => {
    const it = create(t);
    const granted = deferred();
    const begun = clock.now();
    it.server.before = (path) => (path === 'lease/grant' ? granted.promise : undefined);
    const check = it.keeper.check();
    await threads.until('some time goes by', () => clock.now() - begun > 300);
    granted.resolve({ ID: '1', TTL: '600' });
    const { roundTripMs } = await check;
    assert.ok(roundTripMs < 250, `${roundTripMs} ms`);
  }),
);

for (const [place, isShared, isBehind] of [
  ['in front, to be alone', false, false],
  ['behind another, to be alone', false, true],
  ['in front, sharing', true, false],
  ['behind another, sharing', true, true],
]) {
  test(
    `who is withdrawn while its key is being made leaves neither that nor a mark, and who asks next comes after it: ${place}`,
    watched(async (t, threads) => {
      const it = create(t);
      await it.keeper.check();
      const theirs = isBehind ? [it.server.put('a name', 'x', '9-1')] : [];
      const answer = keepBack(it);
      const ticket = ask(it, ticketOf({ isShared }));
      await threads.until('its key is there', answer.isAnswered);
      ticket.isCancelled = true;
      it.keeper.cancel(ticket);
      const next = it.keeper.lock(ticketOf({ isTry: true }));
      await turns();
      const asked = transactions(it).length;
      const release = keepBack(it);
      answer.goOn();
      await threads.until('its key is taken back', release.isAnswered);
      await turns(6);
      assert.deepEqual([it.keysOf('a name'), transactions(it).length], [theirs, asked + 1], 'the next waits');
      release.goOn();
      const grant = await next;
      assert.deepEqual([it.grant, grant?.abandoned], [null, isBehind ? undefined : false]);
      assert.deepEqual([it.keeper.counts.grants, it.keeper.connection.current.places.size], isBehind ? [0, 0] : [1, 1]);
    }),
  );
}

test(
  'who is withdrawn before there is a session asks for nothing',
  watched(async (t) => {
    const it = create(t);
    const granted = deferred();
    it.server.before = (path) => (path === 'lease/grant' ? granted.promise : undefined);
    const ticket = ask(it);
    await turns();
    ticket.isCancelled = true;
    it.keeper.cancel(ticket);
    granted.resolve({ ID: '1', TTL: '600' });
    while (it.grant === undefined) await turns();
    assert.deepEqual([it.grant, transactions(it)], [null, []]);
  }),
);

test(
  'who is withdrawn while the answer that grants is on its way leaves neither its key nor a mark',
  watched(async (t, threads) => {
    const it = create(t);
    await it.keeper.check();
    const theirs = it.server.put('a name', 'x', '9-1');
    const ticket = ask(it);
    await turns();
    const answer = keepBack(it);
    it.server.delete(theirs);
    await threads.until('it looks', answer.isAnswered);
    assert.equal(it.server.isMarked('a name'), true);
    ticket.isCancelled = true;
    it.keeper.cancel(ticket);
    await turns();
    answer.goOn();
    await threads.until('it is over', () => it.grant !== undefined);
    assert.deepEqual([it.grant, it.keysOf('a name'), it.server.isMarked('a name')], [null, [], false]);
  }),
);

test(
  'who waited to share sees a mark, and leaves it',
  watched(async (t, threads) => {
    for (const wasMarked of [false, true]) {
      const it = create(t);
      await it.keeper.check();
      const theirs = it.server.put('a name', 'x', '9-1');
      const ticket = ask(it, ticketOf({ isShared: true }));
      await turns();
      if (wasMarked) it.server.mark('a name');
      it.server.delete(theirs);
      await threads.until('it is granted', () => it.grant !== undefined);
      assert.equal(it.grant.abandoned, wasMarked);
      it.keeper.release(ticket, false);
      await it.keeper.flush();
      assert.equal(it.server.isMarked('a name'), wasMarked);
      t.mock.restoreAll();
    }
  }),
);

for (const isFinal of [true, false]) {
  test(
    `who cannot look who is before it ${isFinal ? 'is told so, if that stays' : 'looks again soon, if that may pass'}`,
    watched(async (t, threads) => {
      const it = create(t);
      await it.keeper.check();
      const theirs = it.server.put('a name', 'x', '9-1');
      ask(it);
      await turns();
      let fails = 2;
      it.server.before = (path) => {
        if (path !== 'kv/txn' || fails-- < 1) return;
        throw storeError('permission denied', { isFinal });
      };
      it.server.delete(theirs);
      await threads.until('it is over', () => it.grant !== undefined);
      await it.keeper.flush();
      if (isFinal) assert.deepEqual([it.error.message, it.keeper.counts.grants], ['permission denied', 0]);
      else assert.deepEqual([it.grant.lease, it.keysOf('a name').length], [1, 1]);
    }),
  );
}

test(
  'a key whose question was given up, and which arrives when it was deleted already, is deleted again',
  watched(async (t, threads) => {
    const it = create(t);
    await it.keeper.check();
    let key;
    it.server.before = (path, { success }) => {
      const put = success?.[0].request_put;
      if (path !== 'kv/txn' || put === undefined) return;
      ({ key } = put);
      throw storeError('late');
    };
    await assert.rejects(it.keeper.lock(ticketOf({ isTry: true })), { message: 'late' });
    const deletions = () => transactions(it).filter(([, { success }]) => success[0].request_delete_range?.key === key);
    // That of the request, and a first one of the session.
    await threads.until('it was deleted twice', () => deletions().length === 2);
    await turns();
    it.server.keys.set(toText(key), { value: '', made: it.server.revision });
    await threads.until('it has gone', () => it.keysOf('a name').length === 0);
  }),
);

test(
  'the stream of a session that was lost says nothing of the one that follows',
  watched(async (t) => {
    const it = create(t);
    await it.keeper.check();
    const { endStream } = it.server;
    it.keeper.connection.current.end(TAKEN);
    await it.keeper.check();
    endStream('it ended at last');
    await turns();
    assert.deepEqual(told, ['connected', 'unreachable', 'reconnected']);
  }),
);

test(
  'an answer that comes when the time of the session is over makes the store no more reached',
  watched(async (t) => {
    const it = create(t);
    await it.keeper.check();
    const failing = () => Object.assign(storeError('late'), { grpc: 4 });
    it.server.before = () => Promise.reject(failing());
    await assert.rejects(it.keeper.query({ names: ['a'] }));
    assert.deepEqual(told, ['connected', 'unreachable']);
    const { leaseTime } = binding;
    let ahead = 599_500;
    t.mock.method(binding, 'leaseTime', () => leaseTime() + ahead);
    it.server.before = () => {};
    await it.keeper.query({ names: ['a'] });
    assert.deepEqual(told, ['connected', 'unreachable']);
    ahead = 0;
    await it.keeper.query({ names: ['a'] });
    assert.deepEqual(told, ['connected', 'unreachable', 'reconnected']);
  }),
);

test(
  'a store that is closed while its lease is granted gives that back',
  watched(async (t, threads) => {
    const it = create(t);
    const granted = deferred();
    it.server.before = (path) => (path === 'lease/grant' ? granted.promise : undefined);
    const check = assert.rejects(it.keeper.check(), { message: 'This store was closed.' });
    await turns();
    await it.keeper.close();
    granted.resolve({ ID: '7', TTL: '600' });
    await check;
    const revoked = () => it.server.calls.filter(([path]) => path === 'lease/revoke').map(([, { ID }]) => ID);
    await threads.until('it is revoked', () => revoked().length > 0);
    assert.deepEqual(revoked(), ['7']);
  }),
);
