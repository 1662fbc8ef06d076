// A keeper of locks of sessions: what it takes, gives back, and counts. The server and its sessions are written here.

const assert = require('node:assert/strict');
const { EventEmitter } = require('node:events');
const { test } = require('node:test');
const threads = require('node:worker_threads');

/** The events that the thread which started the lock worker would be told. */
const told = [];
threads.parentPort = { postMessage: ({ sablockStore }) => told.push(sablockStore?.event) };
const { binding } = require('../../lib/engine/thread.js');
const clock = require('../../lib/load/clock.js');
const { SessionKeeper } = require('../../lib/stores/sessions/keeper.js');
const { Session } = require('../../lib/stores/sessions/session.js');
const { ticketOf: anyTicket } = require('../helpers/keepers.js');
const { deferred, turns } = require('../helpers/names.js');
const { watched } = require('../helpers/threads.js');

const SETTINGS = { namespace: 'kept', connections: 4, heartbeat: 60_000, connectTimeout: 5000 };
const INTERRUPTED = new Error('The server has ended a wait.');
const CLOSED = { code: 'ERR_LOCK_STORE', message: 'This store was closed.' };

/**
 * A keeper of a server: `holders` has the number of the session that holds a key. `log` has what sessions are asked for and how they
 * end; `on[verb](session, ...)` is awaited before, and what it returns is the answer, if it is not undefined.
 */
function create(t, more = {}) {
  told.length = 0;
  const it = { holders: new Map(), log: [], on: {}, sessions: [], ended: [], rows: [], asked: null };
  let leases = 0;
  t.mock.method(binding, 'beginLease', () => ++leases);
  t.mock.method(binding, 'extendLease', () => true);
  t.mock.method(binding, 'endLease', (desk, lease, loss) => it.ended.push([desk, lease, loss]));
  const asked = async (verb, session, ...words) => {
    it.log.push([session.id, verb, ...words].join(' '));
    return it.on[verb]?.(session, ...words);
  };
  class Fake extends Session {
    async begin(heartbeat) {
      this.id = it.sessions.push(this);
      await asked('begin', this, heartbeat);
    }
    async send(text) {
      return (await asked('query', this, text)) ?? [];
    }
    cut() {
      it.log.push(`${this.id} cut`);
    }
    end(error, loss) {
      if (!this.isOver) it.log.push(`${this.id} ends, ${loss ?? 'lost'}${error ? `: ${error.message}` : ''}`);
      super.end(error, loss);
    }
    isAnswer = () => false;
    isInterruption = (error) => error === INTERRUPTED;
    refusalOf() {}
    async tryLock(key, isShared) {
      const answer = await asked('try', this, key, isShared);
      if (answer !== undefined) return answer;
      if (it.holders.has(key)) return false;
      it.holders.set(key, this.id);
      return true;
    }
    async lock(key, isShared) {
      await asked('lock', this, key, isShared);
      while (it.holders.has(key) && !this.isOver && !this.isCalledBack) await turns(1);
      if (this.isOver) throw this.ended();
      if (this.isCalledBack) throw INTERRUPTED;
      it.holders.set(key, this.id);
    }
    async unlock(key, isShared) {
      const answer = await asked('unlock', this, key, isShared);
      return answer ?? (it.holders.get(key) === this.id && it.holders.delete(key));
    }
    async unlockAll(key) {
      await asked('unlockAll', this, key);
    }
    async interrupt(other) {
      other.isCalledBack = true;
    }
    async fence() {
      return (await asked('fence', this)) ?? 9n;
    }
    async holders(keys, ids) {
      it.asked = [keys, ids];
      return it.rows;
    }
    async probe(key, isLock) {
      const isDone = isLock ? !it.holders.has(key) : it.holders.get(key) === this.id;
      if (isDone && isLock) it.holders.set(key, it.on.probe?.(this) ?? this.id);
      if (isDone && !isLock) it.holders.delete(key);
      return { isDone, id: it.on.probe?.(this) ?? this.id };
    }
  }
  const kind = {
    kind: 'it',
    store: 'It',
    Session: Fake,
    pooler: 'no.',
    keyOf: (space, name) => `${space}/${name}`,
    connect: async () => {
      await it.on.connect?.();
      return Object.assign(new EventEmitter(), { end: async () => it.log.push('client ends') });
    },
  };
  it.keeper = new SessionKeeper(kind, { kind: 'it', settings: { ...SETTINGS, ...more } }, 5);
  // Its last question is answered, and the session is over then.
  t.after(() => it.keeper.close().catch(() => {}));
  it.take = () => it.log.splice(0);
  return it;
}

const ticketOf = (more) => anyTicket({ name: 'a', ...more });

test(
  'the home is probed beside another session, which ends then; what is free it takes, with a fence if one is wanted',
  watched(async (t) => {
    const it = create(t);
    assert.deepEqual([it.keeper.connections, it.keeper.stats().roundTripMs], [0, null]);
    const [one, two] = [ticketOf({ wantsFence: true }), ticketOf({ name: 'b', isShared: true })];
    const [home] = [await it.keeper.lock(one), it.sessions[0]];
    assert.deepEqual([home.fence, home.lease], [9n, it.sessions[0].lease]);
    assert.equal(it.sessions[0].freedAfter, 300_000, 'it is asked once in a heartbeat');
    assert.deepEqual(await it.keeper.lock(two), { lease: it.sessions[0].lease, fence: 0n });
    assert.deepEqual(it.take(), [
      '1 begin 60000',
      '2 begin 60000',
      '2 ends, 0',
      'client ends',
      '1 try kept/a false',
      '1 fence',
      '1 try kept/b true',
    ]);
    assert.equal(await it.keeper.lock(ticketOf({ isTry: true })), null);
    const { grants, connects, connections, losses } = it.keeper.stats();
    assert.deepEqual([grants, connects, connections, losses, told], [2, 1, 1, 0, ['connected']]);
    it.take();
    for (const ticket of [one, two]) it.keeper.release(ticket);
    assert.equal(it.keeper.release(one), undefined);
    await turns();
    assert.deepEqual(
      [it.take(), it.holders.size, it.sessions[0].held.size],
      [['1 unlock kept/a false', '1 unlock kept/b true'], 0, 0],
    );
  }),
);

test(
  'where two sessions do not exclude each other the home ends, too, and the error is for good',
  watched(async (t) => {
    const it = create(t);
    it.on.probe = () => 1;
    await assert.rejects(it.keeper.lock(ticketOf()), {
      code: 'ERR_LOCK_STORE',
      isFinal: true,
      message: /It cannot keep locks: no\./,
    });
    assert.deepEqual(
      it.sessions.map(({ isOver }) => isOver),
      [true, true],
    );
    assert.deepEqual([it.keeper.connections, told], [0, ['unreachable']]);
  }),
);

/** The sessions whose beginning fails, by number, and what the error says. */
const BEGINNINGS = {
  'the home': [1, /^It failed: not today\.$/],
  'the other': [2, /^It failed: not today\.$/],
};

for (const [which, [number, message]] of Object.entries(BEGINNINGS)) {
  test(
    `a session that cannot begin is ended, and so is the home: ${which}`,
    watched(async (t) => {
      const it = create(t);
      it.on.begin = ({ id }) => {
        if (id === number) throw new Error('not today.');
      };
      await assert.rejects(it.keeper.check(), ({ code, message: said, cause }) => {
        assert.match(said, message);
        return code === 'ERR_LOCK_STORE' && cause.message === 'not today.';
      });
      assert.equal(it.sessions.length, number);
      assert.ok(it.sessions.every(({ isOver }) => isOver));
      assert.equal(it.keeper.connection.current, null);
    }),
  );
}

test(
  'a session, and the probe, have as long as a connection may take',
  watched(async (t) => {
    for (const verb of ['begin', 'probe']) {
      const it = create(t, { connectTimeout: 60 });
      const never = () => new Promise(() => {});
      it.on.begin = (session) => {
        if (verb === 'begin') return never();
        session.probe = never;
      };
      await assert.rejects(it.keeper.check(), { code: 'ERR_LOCK_STORE', message: /not answered within 60 ms/ });
      assert.ok(it.sessions.every(({ isOver }) => isOver));
    }
  }),
);

test(
  'a grant whose fence cannot be had is given back, also where nobody wants it any more',
  watched(async (t) => {
    const it = create(t);
    await it.keeper.check();
    const ticket = ticketOf({ wantsFence: true, isTry: true });
    it.on.fence = () => {
      throw Object.assign(new Error('no fence'), { isFinal: true });
    };
    it.sessions[0].isAnswer = () => true;
    await assert.rejects(it.keeper.lock(ticket), { message: 'no fence' });
    assert.deepEqual(
      [it.holders.size, it.keeper.counts.grants, ticket.place, it.sessions[0].held.size],
      [0, 0, null, 0],
    );
    const fence = deferred();
    it.on.fence = () => fence.promise;
    const cancelled = ticketOf({ wantsFence: true });
    const lock = it.keeper.lock(cancelled);
    await turns();
    cancelled.isCancelled = true;
    it.keeper.cancel(cancelled);
    it.take();
    const next = it.keeper.lock(ticketOf({ isTry: true }));
    await turns();
    assert.deepEqual(it.take(), [], 'who asks next waits for the release');
    fence.resolve(9n);
    assert.equal(await lock, null);
    assert.notEqual(await next, null);
    assert.equal(it.keeper.counts.grants, 1);
  }),
);

test(
  'a lock that the session did not hold ends it, and so does a release that fails: nothing that it holds is sure',
  watched(async (t) => {
    for (const [unlock, message] of [
      [() => false, 'It did not hold a lock that it had granted.'],
      [
        () => {
          throw new Error('of the release');
        },
        'of the release',
      ],
    ]) {
      const it = create(t);
      const [one, two] = [ticketOf(), ticketOf({ name: 'b' })];
      for (const ticket of [one, two]) await it.keeper.lock(ticket);
      it.on.unlock = unlock;
      it.take();
      await it.keeper.release(one);
      await turns();
      assert.ok(it.take().includes(`1 ends, lost: ${message}`));
      // The one that is released is lost as well where that is not known.
      assert.deepEqual([it.keeper.connections, told], [0, ['connected', 'unreachable']]);
      assert.ok(it.keeper.counts.losses >= 1);
      it.keeper.release(two);
      assert.deepEqual([it.take(), two.place], [[], null], 'of a session that is over nothing is released');
      t.mock.restoreAll();
    }
  }),
);

test(
  'all that a session holds is counted as lost when it ends, and another home follows',
  watched(async (t) => {
    const it = create(t);
    for (const name of ['a', 'b', 'c']) await it.keeper.lock(ticketOf({ name }));
    it.sessions[0].end(new Error('cut'));
    assert.deepEqual([it.keeper.counts.losses, it.keeper.connections], [3, 0]);
    await it.keeper.check();
    const { connects, connections } = it.keeper.stats();
    assert.deepEqual([connects, connections, told], [2, 1, ['connected', 'unreachable', 'reconnected']]);
  }),
);

test(
  'what is held in this process is waited for in another session, which has it then; who asks for it comes after its release',
  watched(async (t, threads) => {
    const it = create(t);
    const first = ticketOf();
    await it.keeper.lock(first);
    const second = ticketOf();
    const waits = it.keeper.lock(second);
    await threads.until('it blocks', () => it.log.includes('3 lock kept/a false'));
    assert.equal(it.keeper.connections, 2);
    it.keeper.release(first);
    const { lease } = await waits;
    assert.deepEqual([lease, it.holders.get('kept/a')], [it.sessions[2].lease, 3]);
    const unlocked = deferred();
    it.on.unlock = () => unlocked.promise;
    it.take();
    it.keeper.release(second);
    const next = it.keeper.lock(ticketOf({ isTry: true }));
    const other = it.keeper.lock(ticketOf({ name: 'b', isTry: true }));
    await turns();
    assert.deepEqual(it.take(), ['3 unlock kept/a false', '1 try kept/b false']);
    assert.notEqual(await other, null);
    unlocked.resolve();
    assert.notEqual(await next, null);
    assert.equal(it.sessions[2].held.size, 0);
    // One that waited, and whose session ends, is lost by itself: the home stays.
    it.sessions[2].end(new Error('cut'));
    assert.deepEqual([it.keeper.connections, it.keeper.counts.losses], [1, 0]);
  }),
);

test(
  'a home, and those that wait, are no more than there may be connections',
  watched(async (t) => {
    for (const [connections, opened] of [
      [2, 1],
      [3, 2],
    ]) {
      const it = create(t, { connections });
      for (const name of ['a', 'b', 'c']) it.holders.set(`kept/${name}`, 99);
      for (const name of ['a', 'b', 'c']) it.keeper.lock(ticketOf({ name }));
      await turns(6);
      assert.deepEqual([it.sessions.length - 2, it.keeper.connections], [opened, connections]);
      t.mock.restoreAll();
    }
  }),
);

test(
  'one that is cancelled while its try is under way does not wait then, and one that waits is called back',
  watched(async (t, threads) => {
    const it = create(t);
    it.holders.set('kept/a', 99);
    const answer = deferred();
    it.on.try = () => answer.promise;
    const early = ticketOf();
    const lock = it.keeper.lock(early);
    await threads.until('it is tried', () => it.log.includes('1 try kept/a false'));
    early.isCancelled = true;
    it.keeper.cancel(early);
    answer.resolve(false);
    assert.equal(await lock, null);
    assert.equal(it.sessions.length, 2);
    const late = ticketOf();
    const waits = it.keeper.lock(late);
    await threads.until('it blocks', () => it.log.includes('3 lock kept/a false'));
    late.isCancelled = true;
    it.keeper.cancel(late);
    assert.equal(await waits, null);
    assert.deepEqual([it.log.at(-1), it.keeper.counts.grants], ['3 unlockAll kept/a', 0]);
  }),
);

test(
  'a session that has waited serves the next once what it held is released, also where the release failed at first',
  watched(async (t, threads) => {
    const it = create(t, { connections: 2 });
    for (const name of ['a', 'b', 'c']) it.holders.set(`kept/${name}`, 99);
    const tickets = ['a', 'b', 'c'].map((name) => ticketOf({ name }));
    const locks = tickets.map((ticket) => it.keeper.lock(ticket));
    await threads.until('it blocks', () => it.log.includes('3 lock kept/a false'));
    it.holders.delete('kept/a');
    await locks[0];
    it.keeper.release(tickets[0]);
    await turns();
    assert.ok(it.log.includes('3 lock kept/b false'), it.log.join());
    it.holders.delete('kept/b');
    await locks[1];
    it.sessions[2].isAnswer = () => true;
    it.on.unlock = () => {
      throw INTERRUPTED;
    };
    it.keeper.release(tickets[1]);
    await turns(6);
    assert.deepEqual([it.log.slice(-2), it.sessions[2].isOver], [['3 unlockAll kept/b', '3 lock kept/c false'], false]);
    it.holders.delete('kept/c');
    await locks[2];
    assert.equal(it.keeper.counts.losses, 0);
  }),
);

test(
  'one that is cancelled before there is a home, or while others release the name, asks for nothing',
  watched(async (t, threads) => {
    const it = create(t);
    const opened = deferred();
    it.on.connect = () => opened.promise;
    const early = ticketOf();
    const lock = it.keeper.lock(early);
    await turns();
    early.isCancelled = true;
    it.keeper.cancel(early);
    opened.resolve();
    assert.equal(await lock, null);
    const first = ticketOf();
    await it.keeper.lock(first);
    const second = ticketOf();
    const waits = it.keeper.lock(second);
    await threads.until('it blocks', () => it.log.includes('3 lock kept/a false'));
    it.keeper.release(first);
    await waits;
    const unlocked = deferred();
    it.on.unlock = () => unlocked.promise;
    it.keeper.release(second);
    const late = ticketOf();
    const third = it.keeper.lock(late);
    await turns();
    late.isCancelled = true;
    it.take();
    unlocked.resolve();
    assert.equal(await third, null);
    assert.deepEqual(
      it.take().filter((line) => / (?:try|lock) /.test(line)),
      [],
    );
  }),
);

test(
  'the holders elsewhere are those of other sessions, and of the names that are asked for',
  watched(async (t, threads) => {
    const it = create(t);
    await it.keeper.lock(ticketOf());
    it.keeper.lock(ticketOf());
    await threads.until('one blocks', () => it.log.includes('3 lock kept/a false'));
    it.rows = [
      { key: 'kept/b', isShared: true, id: 70, pid: 7 },
      { key: 'kept/other', isShared: false, id: 71, pid: 8 },
      { key: 'kept/a', isShared: false, id: 72 },
    ];
    const rows = await it.keeper.query({ names: ['a', 'b'] });
    assert.deepEqual(it.asked, [
      ['kept/a', 'kept/b'],
      [1, 3],
    ]);
    assert.deepEqual(
      rows.map(({ name, mode, clientId, pid, threadId, heldMs }) => [name, mode, clientId, pid, threadId, heldMs]),
      [
        ['b', 'shared', 'it-70', 7, -1, -1],
        ['a', 'exclusive', 'it-72', -1, -1, -1],
      ],
    );
  }),
);

test(
  'a health check asks the home, and a flush what it was asked before; without one a flush asks nobody',
  watched(async (t) => {
    const it = create(t);
    await it.keeper.flush();
    assert.deepEqual(it.log, []);
    const { roundTripMs } = await it.keeper.check();
    assert.ok(roundTripMs >= 0 && roundTripMs < 5000);
    assert.equal(it.take().at(-1), '1 query select 1');
    const answer = deferred();
    it.on.query = () => answer.promise;
    let isFlushed = false;
    const flush = it.keeper.flush().then(() => {
      isFlushed = true;
    });
    await turns();
    assert.deepEqual([it.take(), isFlushed], [['1 query select 1'], false]);
    answer.resolve([]);
    await flush;
    const silent = create(t, { connectTimeout: 40 });
    await silent.keeper.check();
    silent.on.query = () => new Promise(() => {});
    await assert.rejects(silent.keeper.flush(), { code: 'ERR_LOCK_STORE', message: /not answered within 40 ms/ });
  }),
);

test(
  'close() withdraws what waits, and ends the home once that has done what it was asked',
  watched(async (t, threads) => {
    const it = create(t);
    const first = ticketOf();
    await it.keeper.lock(first);
    const waiting = ticketOf();
    const waits = it.keeper.lock(waiting).catch((error) => error);
    await threads.until('it blocks', () => it.log.includes('3 lock kept/a false'));
    const answer = deferred();
    it.on.query = () => answer.promise;
    it.take();
    waiting.isCancelled = true;
    const closing = it.keeper.close();
    await turns();
    const log = it.take();
    assert.deepEqual([log.filter((line) => line.startsWith('3')), it.keeper.connections], [['3 ends, 0', '3 cut'], 0]);
    assert.ok(
      log.includes('1 query select 1') && log.includes('1 ends, 0') && !log.includes('client ends'),
      log.join(),
    );
    answer.resolve([]);
    await closing.catch(() => {});
    await turns();
    assert.ok(it.take().includes('client ends'));
    it.holders.clear();
    assert.equal(await waits, null);
    await assert.rejects(it.keeper.lock(ticketOf()), CLOSED);
    await assert.rejects(it.keeper.query({ names: ['a'] }), CLOSED);
    assert.deepEqual([it.keeper.counts.losses, told], [1, ['connected']]);
  }),
);

test(
  'heartbeats that are answered are counted, and the last round trip is told',
  watched(async (t, threads) => {
    const it = create(t, { heartbeat: 40 });
    await it.keeper.check();
    it.on.query = async () => {
      const begun = clock.now();
      while (clock.now() - begun < 12) await turns(1);
    };
    await threads.until('some are answered', () => it.keeper.stats().renewals > 1);
    assert.ok(it.keeper.stats().roundTripMs >= 10);
    it.on.query = undefined;
  }),
);
