// Waits in Redis whose renewals fail, or that hear of their grant. The client is the test.

const assert = require('node:assert/strict');
const { EventEmitter } = require('node:events');
const fs = require('node:fs');
const path = require('node:path');
const { test } = require('node:test');
const { setTimeout: sleep } = require('node:timers/promises');
const workers = require('node:worker_threads');

// The thread that started the lock worker, which would be told.
workers.parentPort = { postMessage() {} };
const { fromText } = require('../../lib/engine/error-text.js');
const { binding } = require('../../lib/engine/thread.js');
const clock = require('../../lib/load/clock.js');
const { RedisKeeper } = require('../../lib/stores/redis/keeper.js');
const { Place } = require('../../lib/stores/redis/place.js');
const { CLEAR, ENQUEUE, RELEASE, RENEW, TRY } = require('../../lib/stores/redis/script.js');
const { hashOf } = require('../../lib/stores/retry.js');
const { TAKEN, UNREACHABLE } = require('../../lib/stores/verbs.js');
const { createFolder } = require('../helpers/folder.js');
const { ticketOf: anyTicket } = require('../helpers/keepers.js');
const { deferred, turns } = require('../helpers/names.js');
const { watched } = require('../helpers/threads.js');

const WAITS = [1, '0', '0', '0'];
const GRANTED = [1, '7', '0', '0'];
/** The server's clock, where it is asked for the time. */
const SECONDS = 2000;

/** A keeper, and the steps of its tickets; `answer(verb)` says what the script answers, or throws what the server says. */
function create(t, answer, more = {}) {
  const steps = [];
  const it = {
    steps,
    waits: [],
    hear: null,
    countReplicas: () => 1,
    tickets: () => [],
    answerRelease: () => {},
    connect: () => {},
    subscribe: () => {},
    ping: () => 'PONG',
    info: '',
    destroyed: 0,
    clients: [],
  };
  const module = path.join(createFolder(t), 'client.js');
  fs.writeFileSync(module, '');
  require(module);
  const client = () =>
    Object.assign(new EventEmitter(), {
      async sendCommand(args) {
        const [, , , , , , verb, id, , , , mark] = args;
        if (args[0] === 'WAIT') {
          it.waits.push(args.slice(1).map(Number));
          return steps.push('WAIT') && it.countReplicas();
        }
        if (args[0] === 'INFO') return it.info;
        if (args[0] === 'PING') return it.ping();
        if (args[0] === 'TIME') return [String(SECONDS), '999'];
        if (args[0] === 'HVALS') return it.tickets(args[1]);
        // That of the probe has no number.
        if (!/\/\d+$/.test(id ?? '')) return '';
        steps.push(verb);
        it.id = id;
        if (verb !== RELEASE) return answer(verb, steps);
        it.mark = mark;
        await it.answerRelease();
        return [0, '0', '0', '0'];
      },
      subscribe: async (_channel, act) => {
        await it.subscribe();
        it.hear = act;
      },
      destroy: async () => {
        it.destroyed += 1;
      },
    });
  const connect = async () => {
    await it.connect();
    it.clients.push(client());
    return it.clients.at(-1);
  };
  require.cache[module].exports = { connect };
  const desk = binding.openDesk(false);
  const settings = { namespace: 'kept', connectTimeout: 30_000, lease: 60_000, renew: 10, replicas: 0, ...more };
  const keeper = new RedisKeeper({ kind: 'redis', connection: { module }, settings }, desk);
  t.after(async () => {
    await keeper.close();
    binding.endDesk(desk, '{}');
    delete require.cache[module];
  });
  return Object.assign(it, { keeper });
}

const ticketOf = () => anyTicket({ wantsFence: true });

test(
  'a wait whose renewal the server refuses for good ends with that, and leaves no ticket',
  watched(async (t) => {
    const { keeper, steps } = create(t, (verb) => {
      if (verb === RENEW) throw new Error('NOPERM this user has no permissions');
      return WAITS;
    });
    await assert.rejects(keeper.lock(ticketOf()), { code: 'ERR_LOCK_STORE', isFinal: true, message: /NOPERM/ });
    assert.equal(steps[0], ENQUEUE);
    assert.equal(steps.filter((step) => step === ENQUEUE).length, 1);
    assert.equal(steps.at(-1), RELEASE);
  }),
);

test(
  'a wait ends with the refusal of a later connection that the server refuses for good, and goes on beside one of a moment',
  watched(async (t, threads) => {
    for (const says of ['LOADING Redis is loading the dataset in memory', "NOPERM No permissions to run 'subscribe'"]) {
      const it = create(t, (_, { length }) => (length > 1 ? GRANTED : WAITS), { lease: 600_000, renew: 200_000 });
      const ticket = ticketOf();
      const lock = it.keeper.lock(ticket);
      await threads.until('it is in line', () => ticket.place?.heard > 0);
      let refused = 0;
      it.subscribe = () => {
        refused += 1;
        if (refused < 3) throw new Error(says);
      };
      it.clients[0].emit('end');
      if (says.startsWith('NOPERM')) {
        const message = /^Redis refuses: NOPERM .* needs the rights to run /;
        await assert.rejects(lock, { code: 'ERR_LOCK_STORE', isFinal: true, message });
      } else {
        assert.equal((await lock).fence, 7n);
        assert.deepEqual([it.clients.length, it.destroyed], [8, 6]);
        it.keeper.release(ticket, false);
      }
    }
  }),
);

test(
  'a wait whose renewals fail for a while keeps its place, and gets the lock',
  watched(async (t) => {
    const { keeper, steps } = create(t, (verb, all) => {
      if (verb === ENQUEUE) return WAITS;
      if (all.length < 5) throw new Error('LOADING Redis is loading the dataset in memory');
      return GRANTED;
    });
    const ticket = ticketOf();
    const { fence, abandoned } = await keeper.lock(ticket);
    assert.deepEqual([fence, abandoned], [7n, false]);
    assert.deepEqual(steps.slice(0, 4), [ENQUEUE, RENEW, RENEW, RENEW]);
    keeper.release(ticket, false);
    assert.equal(steps.at(-1), RELEASE);
  }),
);

test(
  'the longest times that may be asked for are no timers of a millisecond',
  watched(async (t, threads) => {
    const longest = 2 ** 31 - 1;
    const { setTimeout } = clock;
    const times = [];
    t.mock.method(clock, 'setTimeout', (act, ms) => {
      times.push(ms);
      return setTimeout(act, ms);
    });
    const settings = { connectTimeout: longest, lease: longest, renew: Math.floor(longest / 2), replicas: 1 };
    const { keeper, steps } = create(t, () => [1, '0', '0', String(longest)], settings);
    const ticket = ticketOf();
    const lock = keeper.lock(ticket);
    await threads.until('it is told when to ask again', () => ticket.place?.heard > 0);
    ticket.isCancelled = true;
    keeper.cancel(ticket);
    assert.equal(await lock, null);
    assert.equal(steps[0], ENQUEUE);
    assert.equal(Math.max(...times), longest);
  }),
);

test(
  'a grant that is heard when most of its lease is over is renewed first, and asked for anew where the server has it no more',
  watched(async (t, threads) => {
    for (const [left, fence, steps] of [
      [0.6, 7n, [ENQUEUE]],
      [0.4, 8n, [ENQUEUE, RENEW, RELEASE, ENQUEUE]],
    ]) {
      const lease = 600_000;
      const answers = [WAITS, [0, '0', '0', '0'], [1, '8', '0', '0']];
      const it = create(t, () => answers.shift(), { lease, renew: 200_000 });
      const ticket = ticketOf();
      const lock = it.keeper.lock(ticket);
      await threads.until('it is in line', () => ticket.place?.heard > 0);
      ticket.place.until = binding.leaseTime() + left * lease;
      it.hear(`7 0 ${it.id}`);
      assert.equal((await lock).fence, fence);
      assert.deepEqual(it.steps, steps);
      // No code has run with the first.
      assert.equal(it.mark, steps.includes(RELEASE) ? '' : undefined);
      it.keeper.release(ticket, false);
    }
  }),
);

test(
  'who waits asks again when the server says that the one before may be gone, long before its renewal',
  watched(async (t) => {
    const it = create(t, (verb) => (verb === ENQUEUE ? [1, '0', '0', '5'] : GRANTED), {
      lease: 600_000,
      renew: 200_000,
    });
    const ticket = ticketOf();
    assert.equal((await it.keeper.lock(ticket)).fence, 7n);
    assert.deepEqual(it.steps, [ENQUEUE, RENEW]);
    it.keeper.release(ticket, false);
  }),
);

test(
  'where replicas count, a message of a grant is asked about, and the grant counts once they have it',
  watched(async (t, threads) => {
    const answer = (verb) => (verb === ENQUEUE ? WAITS : GRANTED);
    const it = create(t, answer, { replicas: 1, lease: 600_000, renew: 200_000 });
    const ticket = ticketOf();
    const lock = it.keeper.lock(ticket);
    await threads.until('it is in line', () => it.steps.length > 0);
    it.hear(`7 0 ${it.id}`);
    assert.equal((await lock).fence, 7n);
    assert.deepEqual(it.steps, [ENQUEUE, RENEW, 'WAIT']);
    it.keeper.release(ticket, false);
  }),
);

test(
  'a request that is withdrawn while the replicas are asked about its grant gives it back before anybody else asks',
  watched(async (t, threads) => {
    const it = create(t, () => GRANTED, { replicas: 1, lease: 600_000, renew: 200_000 });
    const counted = deferred();
    it.countReplicas = () => counted.promise;
    const ticket = ticketOf();
    const lock = it.keeper.lock(ticket);
    await threads.until('the replicas are asked', () => it.steps.length > 1);
    ticket.isCancelled = true;
    it.keeper.cancel(ticket);
    assert.deepEqual(it.steps, [ENQUEUE, 'WAIT', RELEASE]);
    counted.resolve(1);
    assert.equal(await lock, null);
    assert.equal(it.steps.length, 3);
  }),
);

test(
  'replicas are waited for half as long as renewals take, and no longer than an answer; one too few is one too few',
  watched(async (t) => {
    for (const [settings, patience] of [
      [{ replicas: 2, renew: 20_001, connectTimeout: 30_000 }, 10_001],
      [{ replicas: 2, renew: 20_000, connectTimeout: 700 }, 700],
    ]) {
      const { keeper, waits, steps } = create(t, () => GRANTED, settings);
      const asked = keeper.lock({ ...ticketOf(), isTry: true });
      assert.deepEqual(await asked.catch(({ code, message }) => [code, message]), [
        'ERR_LOCK_STORE',
        'Of 2 replicas of Redis, 1 have the lock: it was given back.',
      ]);
      assert.deepEqual([waits, steps.at(-1), keeper.counts.grants], [[[2, patience]], RELEASE, 0]);
    }
  }),
);

test(
  'a grant is given back if its replicas cannot be asked; the next one asks about its own',
  watched(async (t) => {
    const it = create(t, () => GRANTED, { replicas: 1, lease: 600_000, renew: 200_000 });
    it.countReplicas = () => Promise.reject(new Error('LOADING Redis is loading the dataset in memory'));
    await assert.rejects(it.keeper.lock({ ...ticketOf(), isTry: true }), {
      code: 'ERR_LOCK_STORE',
      message: /LOADING/,
    });
    assert.deepEqual(it.steps, [TRY, 'WAIT', RELEASE]);
    it.countReplicas = () => 1;
    const ticket = ticketOf();
    assert.equal((await it.keeper.lock(ticket)).fence, 7n);
    assert.deepEqual(it.steps.slice(3), [ENQUEUE, 'WAIT']);
    it.keeper.release(ticket, false);
  }),
);

test(
  'as many replicas as are asked for are enough, also for the grants that come while they are asked',
  watched(async (t, threads) => {
    const it = create(t, () => GRANTED, { replicas: 1, lease: 600_000, renew: 200_000 });
    const answers = [];
    it.countReplicas = () => {
      answers.push(deferred());
      return answers.at(-1).promise;
    };
    const tickets = Array.from({ length: 4 }, (_, index) => ({ ...ticketOf(), name: `name ${index}` }));
    const first = it.keeper.lock(tickets[0]);
    await threads.until('the replicas are asked', () => answers.length === 1);
    const others = tickets.slice(1).map((ticket) => it.keeper.lock(ticket));
    await threads.until('all are granted', () => it.steps.filter((step) => step === ENQUEUE).length === 4);
    assert.equal(answers.length, 1);
    // Their answer about the first says nothing of those behind it.
    answers[0].resolve(1);
    await first;
    await threads.until('they are asked again', () => answers.length === 2);
    assert.equal(it.keeper.counts.grants, 1);
    answers[1].resolve(1);
    await Promise.all(others);
    assert.deepEqual([answers.length, it.keeper.counts.grants], [2, 4]);
    for (const ticket of tickets) it.keeper.release(ticket, false);
  }),
);

test(
  'a try that the script refuses leaves nothing to be released, and is not renewed',
  watched(async (t) => {
    const { keeper, steps } = create(t, () => [0, '0', '0', '0'], { renew: 1 });
    assert.equal(await keeper.lock({ ...ticketOf(), isTry: true }), null);
    await keeper.check();
    assert.deepEqual(steps, [TRY]);
  }),
);

test(
  'a try that is asked again, for it was cut off, comes after the release of the first: that one may have the lock',
  watched(async (t, threads) => {
    const it = create(t, (_, { length }) => {
      if (length > 1) return GRANTED;
      throw Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });
    });
    const released = deferred();
    it.answerRelease = () => released.promise;
    await it.keeper.connection.get();
    const ticket = { ...ticketOf(), isTry: true };
    const tried = it.keeper.lock(ticket);
    await threads.until('the first is given back', () => it.steps.length > 1);
    await turns();
    assert.deepEqual(it.steps, [TRY, RELEASE]);
    released.resolve();
    assert.equal((await tried).fence, 7n);
    assert.deepEqual(it.steps, [TRY, RELEASE, TRY]);
    it.keeper.release(ticket, false);
  }),
);

test(
  'of several names query() says of each who holds it, whole, in the order of the names',
  watched(async (t) => {
    const it = create(t, () => GRANTED);
    const now = SECONDS * 1000;
    const lists = [
      [`${now + 1} 5 1 kept:one-1-x`, `${now + 9} 6 1 kept:two-2-y`, `${now + 9} 0 1 kept:waits-3-z`],
      [],
      [`${now + 1} 7 0 kept:three-4-z`, `${now} 6 0 kept:over-5-z`],
    ];
    const names = ['first', 'second', 'third'];
    const keys = names.map((name) => `kept:{${hashOf(name)}}:tickets`);
    it.tickets = (key) => lists[keys.indexOf(key)];
    const elsewhere = { pid: -1, threadId: -1, heldMs: -1 };
    assert.deepEqual(await it.keeper.query({ names }), [
      { name: 'first', mode: 'shared', clientId: 'redis-one-1-x', ...elsewhere },
      { name: 'first', mode: 'shared', clientId: 'redis-two-2-y', ...elsewhere },
      { name: 'third', mode: 'exclusive', clientId: 'redis-three-4-z', ...elsewhere },
    ]);
  }),
);

test(
  'all is well, says a holder: so do its renewals until one is answered, and those behind it renew',
  watched(async (t, threads) => {
    let isThere = true;
    const answer = (verb) => {
      if (verb !== ENQUEUE && !isThere) throw new Error('LOADING Redis is loading the dataset in memory');
      return [1, '7', verb === ENQUEUE ? '1' : '0', '0'];
    };
    const { keeper, steps } = create(t, answer);
    const ticket = ticketOf();
    assert.equal((await keeper.lock(ticket)).abandoned, true);
    isThere = false;
    keeper.markConsistent(ticket);
    const count = (verb) => steps.filter((step) => step === verb).length;
    await threads.until('it was said again', () => count(CLEAR) > 2);
    isThere = true;
    const renewals = count(RENEW);
    await threads.until('it was heard', () => count(RENEW) > renewals + 1);
    assert.equal(steps.at(-1), RENEW);
    keeper.release(ticket, false);
  }),
);

test(
  'what the server has no more is lost, counted once, and given back with the mark of who held it alone',
  watched(async (t, threads) => {
    for (const isShared of [false, true]) {
      let isGone = false;
      const it = create(t, () => (isGone ? [0, '0', '0', '0'] : GRANTED));
      const ended = t.mock.method(binding, 'endLease', () => {});
      assert.deepEqual([it.keeper.connections, it.keeper.stats().roundTripMs], [0, null]);
      await it.keeper.lock({ ...ticketOf(), isShared });
      assert.equal(it.keeper.stats().connections, 2);
      isGone = true;
      await threads.until('it is lost', () => it.steps.includes(RELEASE));
      const { grants, losses, connects, renewals } = it.keeper.stats();
      assert.deepEqual([grants, losses, connects, renewals > 0], [1, 1, 1, true]);
      assert.deepEqual([it.mark, ended.mock.calls[0].arguments[2]], [isShared ? '' : 'set', TAKEN]);
      ended.mock.restore();
    }
  }),
);

test(
  'a lock that was renewed for a while is lost as unreachable once its own time is over, though nobody looks',
  watched(async (t, threads) => {
    let isThere = true;
    const answer = () => {
      if (isThere) return GRANTED;
      throw new Error('LOADING Redis is loading the dataset in memory');
    };
    const it = create(t, answer, { lease: 600_000, renew: 20 });
    const { mock: ended } = t.mock.method(binding, 'endLease', () => {});
    const [{ leaseTime }, { setTimeout }] = [binding, clock];
    let later = 0;
    t.mock.method(binding, 'leaseTime', () => leaseTime() + later);
    /** The looks at whether its time is over. */
    const looks = [];
    t.mock.method(clock, 'setTimeout', (act, ms) =>
      ms > 40_000 ? { unref: () => looks.push(act) } : setTimeout(act, ms),
    );
    await it.keeper.lock(ticketOf());
    later += 400_000;
    const { renewals } = it.keeper.counts;
    await threads.until('it is renewed', () => it.keeper.counts.renewals > renewals + 1);
    later += 300_000;
    looks[0]();
    assert.deepEqual([it.keeper.stats().losses, ended.callCount(), looks.length], [0, 0, 2]);
    isThere = false;
    later += 500_000;
    looks[1]();
    assert.deepEqual([ended.calls[0].arguments[2], it.keeper.stats().losses, it.mark], [UNREACHABLE, 1, 'set']);
  }),
);

test(
  'who has said that all is well, and ends inside before the server has heard of it, leaves its mark',
  watched(async (t) => {
    for (const [isAbandoned, mark] of [
      [true, 'set'],
      [false, 'clear'],
    ]) {
      const it = create(t, (verb) => {
        if (verb === CLEAR) throw new Error('LOADING Redis is loading the dataset in memory');
        return [1, '7', '1', '0'];
      });
      const ticket = ticketOf();
      await it.keeper.lock(ticket);
      it.keeper.markConsistent(ticket);
      it.keeper.release(ticket, isAbandoned);
      assert.deepEqual([it.steps.at(-1), it.mark], [RELEASE, mark]);
    }
  }),
);

test(
  'a request that is withdrawn while it is asked for is given back with its answer, and nothing is called for it any more',
  watched(async (t, threads) => {
    const answered = deferred();
    const it = create(t, () => answered.promise);
    const { mock: intervals } = t.mock.method(clock, 'setInterval');
    const ticket = ticketOf();
    const lock = it.keeper.lock(ticket);
    await threads.until('it is asked for', () => it.steps.length > 0);
    ticket.isCancelled = true;
    it.keeper.cancel(ticket);
    answered.resolve(WAITS);
    assert.equal(await lock, null);
    assert.deepEqual([it.steps.slice(0, 3), it.mark, intervals.callCount()], [[ENQUEUE, RELEASE, RELEASE], '', 0]);
  }),
);

test(
  'a request that is withdrawn before it is asked for, or when it was granted already, is asked for, or held, as before',
  watched(async (t) => {
    const it = create(t, () => it.answer() && GRANTED, { lease: 600_000, renew: 200_000 });
    const ticket = ticketOf();
    it.keeper.cancel(ticket);
    it.keeper.release(ticket, false);
    const { leaseTime } = binding;
    let later = 0;
    t.mock.method(binding, 'leaseTime', () => leaseTime() + later);
    it.answer = () => (later += 5000);
    await it.keeper.lock(ticket);
    it.keeper.cancel(ticket);
    assert.deepEqual(it.steps, [ENQUEUE]);
    const { roundTripMs, ...counts } = it.keeper.stats();
    assert.ok(roundTripMs >= 5000 && roundTripMs < 20_000, `${roundTripMs} ms`);
    assert.deepEqual(counts, { connects: 1, grants: 1, renewals: 0, losses: 0, connections: 2 });
    it.keeper.release(ticket, false);
    it.keeper.release(ticket, false);
    assert.deepEqual(it.steps, [ENQUEUE, RELEASE]);
  }),
);

test(
  'all is well, says a holder, and an answer to what was asked before does not count as its answer',
  watched(async (t, threads) => {
    const renewed = deferred();
    const it = create(t, (verb) => {
      if (verb === CLEAR) throw new Error('LOADING Redis is loading the dataset in memory');
      return verb === RENEW ? renewed.promise : [1, '7', '1', '0'];
    });
    const ticket = ticketOf();
    await it.keeper.lock(ticket);
    await threads.until('a renewal is on its way', () => it.steps.includes(RENEW));
    it.keeper.markConsistent(ticket);
    renewed.resolve([1, '7', '1', '0']);
    await turns();
    const { length } = it.steps;
    await threads.until('it was said again', () => it.steps.length > length + 1);
    assert.deepEqual(new Set(it.steps.slice(length)), new Set([CLEAR]));
    it.keeper.release(ticket, false);
    assert.equal(it.mark, 'clear');
  }),
);

test(
  'a client that rejects with what is no error is said to have failed with it',
  watched(async (t) => {
    const it = create(t, () => GRANTED);
    for (const [reason, says] of [
      [undefined, 'undefined'],
      ['a word', "'a word'"],
    ]) {
      it.ping = () => Promise.reject(reason);
      await assert.rejects(it.keeper.check(), { message: `The client failed with ${says}` });
    }
  }),
);

test(
  'a server whose settings say nothing of eviction is not warned of',
  watched(async (t) => {
    const told = t.mock.method(workers.parentPort, 'postMessage');
    const it = create(t, () => GRANTED);
    it.info = 'used_memory:1';
    await it.keeper.check();
    await turns();
    assert.deepEqual(
      told.mock.calls.map(({ arguments: [{ sablockStore }] }) => sablockStore?.event),
      ['connected'],
    );
  }),
);

test(
  'check() is the time of a round trip, without that of a connection which is begun for it',
  watched(async (t) => {
    const it = create(t, () => GRANTED);
    let now = 1000;
    t.mock.method(clock, 'now', () => now);
    it.connect = () => {
      now += 500;
    };
    assert.deepEqual(await it.keeper.check(), { roundTripMs: 0 });
    assert.equal(now, 2000);
  }),
);

test(
  'a server that does not answer in its time is not there, and has the time of replicas beside; an answer that has come counts',
  watched(async (t, threads) => {
    for (const [replicas, limit] of [
      [0, 50_000],
      [1, 58_000],
    ]) {
      const it = create(t, () => GRANTED, { replicas, connectTimeout: 50_000, renew: 8000, lease: 30_000 });
      await it.keeper.connection.get();
      const { setTimeout } = clock;
      const ends = [];
      const { mock } = t.mock.method(clock, 'setTimeout', (act, ms) =>
        ms < 50_000 ? setTimeout(act, ms) : { unref: () => ends.push([act, ms]) },
      );
      const told = t.mock.method(workers.parentPort, 'postMessage');
      const answered = deferred();
      it.ping = () => answered.promise;
      const pings = [it.keeper.ping(), it.keeper.ping()];
      assert.deepEqual(
        ends.map(([, ms]) => ms),
        [limit, limit],
      );
      ends[0][0]();
      answered.resolve('PONG');
      await Promise.all(pings);
      for (let turn = 0; turn < 3; turn += 1) await new Promise(setImmediate);
      assert.deepEqual([it.keeper.connections, told.mock.callCount()], [2, 0]);
      it.ping = () => new Promise(() => {});
      it.keeper.ping();
      ends[2][0]();
      await threads.until('it is not there', () => told.mock.callCount() > 0);
      assert.equal(it.keeper.connections, 0);
      const [{ sablockStore }] = told.mock.calls[0].arguments;
      assert.equal(sablockStore.event, 'unreachable');
      assert.equal(fromText(sablockStore.error).message, `Redis has not answered within ${limit} ms.`);
      told.mock.restore();
      mock.restore();
    }
  }),
);

test(
  'a connection that ends is begun again for who waits or holds, and for nobody else',
  watched(async (t, threads) => {
    const it = create(t, () => GRANTED, { lease: 600_000, renew: 200_000 });
    it.info = 'maxmemory_policy:allkeys-lru';
    const told = t.mock.method(workers.parentPort, 'postMessage');
    const [first, second] = [ticketOf(), ticketOf()];
    await Promise.all([it.keeper.lock(first), it.keeper.lock(second)]);
    it.keeper.release(first, false);
    assert.equal(it.clients.length, 2);
    it.clients[0].emit('end');
    await threads.until('it was renewed over another', () => it.steps.at(-1) === RENEW);
    assert.deepEqual([it.clients.length, it.keeper.stats().connects], [4, 2]);
    it.keeper.release(second, false);
    await it.keeper.releases.over();
    it.clients[3].emit('end');
    assert.equal(it.keeper.connections, 0);
    // Longer than the first pause before another would be begun.
    await sleep(200);
    assert.deepEqual([it.clients.length, it.destroyed], [4, 4]);
    const warnings = told.mock.calls.filter(({ arguments: [{ sablockWarning }] }) => sablockWarning !== undefined);
    assert.equal(warnings.length, 1, 'a server that evicts keys is warned of once');
  }),
);

/** By how it ends: what keeps a release from the server, and what ends that. */
const LATER = {
  'once it was heard': [
    (it) => {
      let failed = 0;
      it.answerRelease = () => {
        failed += 1;
        if (failed < 3) throw new Error('LOADING Redis is loading the dataset in memory');
      };
    },
    () => {},
    3,
  ],
  'with the time of its ticket': [
    (it) => {
      it.connect = () => Promise.reject(new Error('not there'));
      it.clients[0].emit('end');
    },
    (_, t) => {
      const { leaseTime } = binding;
      t.mock.method(binding, 'leaseTime', () => leaseTime() + 700_000);
    },
    0,
  ],
  'with the store': [
    (it) => {
      it.connect = () => Promise.reject(new Error('not there'));
      it.clients[0].emit('end');
    },
    (it) => it.keeper.close(),
    0,
  ],
};

for (const [how, [begin, end, times]] of Object.entries(LATER)) {
  test(
    `a release that the server has not heard is tried again, and that ends ${how}`,
    watched(async (t) => {
      const it = create(t, () => GRANTED, { lease: 600_000, renew: 200_000 });
      const [ticket, kept] = [ticketOf(), ticketOf()];
      await Promise.all([it.keeper.lock(ticket), it.keeper.lock(kept)]);
      begin(it);
      it.keeper.release(ticket, false);
      const over = it.keeper.releases.over();
      await end(it, t);
      await over;
      // A lock that is held still keeps nothing busy: no try is made without a pause.
      await sleep(1);
      assert.equal(it.steps.filter((step) => step === RELEASE).length, times);
    }),
  );
}

test('a request is called when its last time is over, and not at all once it is over', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout', 'setInterval'] });
  t.mock.method(clock, 'setTimeout', setTimeout);
  t.mock.method(clock, 'clearTimeout', clearTimeout);
  t.mock.method(clock, 'clearInterval', clearInterval);
  const place = new Place('its id', [], true);
  assert.deepEqual(
    [place.isShared, place.isHeld, place.isOver, place.isMarked, place.lease],
    [true, false, false, false, 0],
  );
  const called = [];
  place.callIn(10, () => called.push('first'));
  place.callIn(30, () => called.push('second'));
  t.mock.timers.tick(20);
  assert.deepEqual(called, []);
  t.mock.timers.tick(10);
  assert.deepEqual(called, ['second']);
  place.callIn(10, () => called.push('third'));
  place.renewal = setInterval(() => called.push('renewal'), 4);
  t.mock.timers.tick(5);
  place.end();
  t.mock.timers.tick(50);
  assert.deepEqual([called, place.isOver], [['second', 'renewal'], true]);
});
