// Waits in Redis whose renewals fail, or that hear of their grant. The client is the test.

const assert = require('node:assert/strict');
const { EventEmitter } = require('node:events');
const fs = require('node:fs');
const path = require('node:path');
const { test } = require('node:test');
const threads = require('node:worker_threads');

// The thread that started the lock worker, which would be told.
threads.parentPort = { postMessage() {} };
const { binding } = require('../../lib/engine/thread.js');
const clock = require('../../lib/load/clock.js');
const { RedisKeeper } = require('../../lib/stores/redis/keeper.js');
const { ENQUEUE, RELEASE, RENEW } = require('../../lib/stores/redis/script.js');
const { createFolder } = require('../helpers/folder.js');
const { deferred } = require('../helpers/names.js');
const { watched } = require('../helpers/threads.js');

const WAITS = [1, '0', '0', '0'];
const GRANTED = [1, '7', '0', '0'];

/** A keeper, and the steps of its tickets; `answer(verb)` says what the script answers, or throws what the server says. */
function create(t, answer, more = {}) {
  const steps = [];
  const it = { steps, hear: null, countReplicas: () => 1 };
  const module = path.join(createFolder(t), 'client.js');
  fs.writeFileSync(module, '');
  require(module);
  const client = () =>
    Object.assign(new EventEmitter(), {
      async sendCommand(args) {
        const [, , , , , , verb, id] = args;
        if (args[0] === 'WAIT') return steps.push('WAIT') && it.countReplicas();
        // That of the probe has no number.
        if (!/\/\d+$/.test(id ?? '')) return '';
        steps.push(verb);
        it.id = id;
        return verb === RELEASE ? [0, '0', '0', '0'] : answer(verb, steps);
      },
      subscribe: async (_channel, act) => {
        it.hear = act;
      },
      destroy: async () => {},
    });
  require.cache[module].exports = { connect: async () => client() };
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

const ticketOf = () => ({
  name: 'a name',
  isShared: false,
  isTry: false,
  isCancelled: false,
  wantsFence: true,
  place: null,
});

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
