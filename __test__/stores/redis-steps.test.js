// One step of the script in Redis: its cost, and the server's clock.

const assert = require('node:assert/strict');
const { spawnSync } = require('node:child_process');
const { test } = require('node:test');
const { setTimeout: sleep } = require('node:timers/promises');
const { CLEAR, ENQUEUE, RELEASE, RENEW, SCRIPT, TRY, readTicket } = require('../../lib/stores/redis/script.js');
const { hasRedis, startRedis } = require('../helpers/servers.js');
const { limit } = require('../helpers/limits.js');

const options = { skip: hasRedis ? false : 'redis-server is not installed', timeout: limit(180_000) };

const LEASE = 60_000;
const HOUR = 3_600_000;
/** Between two looks at whether a time is over. */
const LOOK_MS = 10;
const KEYS = ['line', 'tickets', 'name'].map((kind) => `steps:{name}:${kind}`);
const [LINE, TICKETS, NAME] = KEYS;

/** A server with one name: `step(verb, id, { shared, mark })` says what the script answers. */
async function serve(t) {
  const server = await startRedis();
  t.after(() => server.stop());
  const step = async (verb, id, { shared = false, mark = '', lease = LEASE, script = SCRIPT } = {}) => {
    const args = [verb, id, String(lease), shared ? '1' : '0', 'nobody', mark];
    const [isKnown, fence, isMarked, soonest] = await server.ask('EVAL', script, '3', ...KEYS, ...args);
    return {
      isKnown: Number(isKnown) === 1,
      isGranted: fence !== '0',
      fence: BigInt(fence),
      isMarked: isMarked === '1',
      soonest: Number(soonest),
    };
  };
  /** Returns how many commands the script of the step runs. */
  const cost = async (...args) => {
    await server.ask('CONFIG', 'RESETSTAT');
    await step(...args);
    const stats = await server.ask('INFO', 'commandstats');
    const calls = String(stats).matchAll(/cmdstat_(?!eval|config|info)\S*:calls=(\d+)/g);
    return [...calls].reduce((sum, [, number]) => sum + Number(number), 0);
  };
  return { server, step, cost };
}

/** The server takes them in this order, since all go over one connection. */
const enqueue = (step, prefix, count, how) =>
  Promise.all(Array.from({ length: count }, (_, index) => step(ENQUEUE, `${prefix}${index}`, how)));

/** The lines before a step, and the steps that a ticket of each kind takes behind them. */
const LINES = {
  'shared holds': (step, count) => enqueue(step, 's', count, { shared: true }),
  'waiters behind one that holds alone': (step, count) => enqueue(step, 'w', count + 1),
  'shared waiters behind one that holds alone': async (step, count) => {
    await step(ENQUEUE, 'alone');
    await enqueue(step, 's', count, { shared: true });
  },
};

for (const [title, fill] of Object.entries(LINES)) {
  test(`a step costs the same behind 5 and 300 ${title}`, options, async (t) => {
    const costs = [];
    for (const count of [5, 300]) {
      const { step, cost } = await serve(t);
      await fill(step, count);
      const all = {};
      for (const shared of [false, true]) {
        for (const verb of [TRY, ENQUEUE, RENEW, CLEAR, RELEASE]) {
          all[`${verb}, ${shared ? 'shared' : 'alone'}`] = await cost(verb, 'the last', { shared });
        }
      }
      costs.push(all);
    }
    const [few, many] = costs;
    assert.ok(Object.values(few).every((number) => number > 3 && number < 40));
    assert.deepEqual(many, few);
  });
}

test('who stands behind a wait that is given up gets in where it can', options, async (t) => {
  const { step } = await serve(t);
  await step(ENQUEUE, 'first', { shared: true });
  await step(ENQUEUE, 'second', { shared: true });
  assert.equal((await step(ENQUEUE, 'alone')).isGranted, false);
  assert.equal((await step(ENQUEUE, 'third', { shared: true })).isGranted, false);
  assert.equal((await step(ENQUEUE, 'last')).isGranted, false);
  await step(RELEASE, 'alone');
  assert.equal((await step(RENEW, 'third')).isGranted, true);
  // In another order than they came.
  for (const id of ['second', 'third']) {
    await step(RELEASE, id);
    assert.equal((await step(RENEW, 'last')).isGranted, false, `after ${id}`);
  }
  await step(RELEASE, 'first');
  assert.equal((await step(RENEW, 'last')).isGranted, true);
});

test('of holders and waiters whose time is over none is in the way, whoever asks', options, async (t) => {
  for (const verb of [ENQUEUE, TRY]) {
    const { step, server } = await serve(t);
    await step(ENQUEUE, 'dead', { lease: 300 });
    await step(ENQUEUE, 'dead as well', { lease: 300 });
    await step(ENQUEUE, 'living');
    const { soonest } = await step(RENEW, 'living');
    assert.ok(soonest > 0 && soonest <= 300, `is to ask again in ${soonest} ms`);
    const over = Date.now() + 5000;
    let living = await step(RENEW, 'living');
    while (!living.isGranted && Date.now() < over) {
      await sleep(LOOK_MS);
      living = await step(RENEW, 'living');
    }
    assert.deepEqual([living.isGranted, living.isMarked], [true, true]);
    assert.equal((await step(verb, 'late')).isGranted, false);
    assert.deepEqual((await server.ask('HKEYS', TICKETS)).includes('dead'), false);
  }
});

test('whoever only waited to be alone, and whose time is over, leaves no mark', options, async (t) => {
  const { step, server } = await serve(t);
  await step(ENQUEUE, 'holder');
  await step(ENQUEUE, 'dead', { lease: 300 });
  await step(ENQUEUE, 'living');
  while ((await server.ask('HKEYS', TICKETS)).includes('dead')) {
    await sleep(LOOK_MS);
    await step(RENEW, 'living');
  }
  await step(RELEASE, 'holder');
  const { isGranted, isMarked } = await step(RENEW, 'living');
  assert.deepEqual({ isGranted, isMarked }, { isGranted: true, isMarked: false });
});

test('what is known of a name goes a day after the longest time that a ticket of it has', options, async (t) => {
  const { step, server } = await serve(t);
  const days = 3;
  await step(ENQUEUE, 'shares', { shared: true, lease: days * 24 * HOUR });
  for (const key of KEYS) {
    const left = Number(await server.ask('TTL', key)) / 86_400;
    assert.ok(left > days + 0.9 && left <= days + 1, `${key}: ${left} days`);
  }
});

test('of those who share, and get in by one step, each has a fence of its own', options, async (t) => {
  const { step } = await serve(t);
  const alone = await step(ENQUEUE, 'alone');
  for (const id of ['first', 'second']) await step(ENQUEUE, id, { shared: true });
  await step(RELEASE, 'alone');
  const [first, second] = [await step(RENEW, 'first'), await step(RENEW, 'second')];
  assert.deepEqual([first.isGranted, second.isGranted], [true, true]);
  assert.ok(alone.fence < first.fence && first.fence < second.fence, `${alone.fence}, ${first.fence}, ${second.fence}`);
});

test(
  "the server's clock is set back: nobody's time is over later for that, and nobody's sooner",
  options,
  async (t) => {
    const { step, server } = await serve(t);
    await step(ENQUEUE, 'holder', { lease: 1000 });
    await step(ENQUEUE, 'waiter');
    const deadlines = async () => {
      const texts = await Promise.all(['holder', 'waiter'].map((id) => server.ask('HGET', TICKETS, id)));
      return texts.map((text) => readTicket(text).deadline);
    };
    const before = await deadlines();
    // As if it had been an hour later so far.
    for (const [id, deadline] of [
      ['holder', before[0]],
      ['waiter', before[1]],
    ]) {
      const text = await server.ask('HGET', TICKETS, id);
      await server.ask('HSET', TICKETS, id, String(text).replace(/^\d+/, String(deadline + HOUR)));
    }
    for (const field of ['seen', 'soonest']) await server.ask('HINCRBY', NAME, field, String(HOUR));
    const { soonest } = await step(CLEAR, 'nobody').then(() => step(RENEW, 'waiter'));
    const [holder] = await deadlines();
    const late = holder - before[0];
    assert.ok(late >= 0 && late < 1000, `${late} ms later`);
    assert.ok(soonest <= 1000, `is to ask again in ${soonest} ms`);
    const over = Date.now() + 5000;
    let isGranted = false;
    while (!isGranted && Date.now() < over) {
      await sleep(LOOK_MS);
      ({ isGranted } = await step(RENEW, 'waiter'));
    }
    assert.equal(isGranted, true);
  },
);

test('a step that takes the mark off is the last word of its client, as any other: it renews', options, async (t) => {
  const { step, server } = await serve(t);
  const deadline = async () => readTicket(await server.ask('HGET', TICKETS, 'holder')).deadline;
  await step(ENQUEUE, 'holder');
  await server.ask('HSET', NAME, 'mark', '1');
  const before = await deadline();
  assert.equal((await step(CLEAR, 'holder', { lease: 2 * LEASE })).isMarked, false);
  assert.ok((await deadline()) >= before + LEASE);
  assert.deepEqual([(await step(CLEAR, 'nobody')).isKnown, await server.ask('HLEN', TICKETS)].map(Number), [0, 1]);
});

test(
  'only who has the lock sets the mark, or takes it off, by its release; whoever shared and is over leaves none',
  options,
  async (t) => {
    const { step, server } = await serve(t);
    const isMarked = async () => (await server.ask('HGET', NAME, 'mark')) !== null;
    await step(ENQUEUE, 'holder');
    for (const id of ['waiter', 'nobody']) {
      if (id === 'waiter') await step(ENQUEUE, id);
      const { isKnown } = await step(RELEASE, id, { mark: 'set' });
      assert.deepEqual([isKnown, await isMarked()], [false, false], id);
    }
    assert.equal((await step(RELEASE, 'holder', { mark: 'set' })).isMarked, true);
    assert.equal((await step(TRY, 'next')).isMarked, true);
    await step(ENQUEUE, 'waiter');
    for (const id of ['waiter', 'nobody']) {
      await step(RELEASE, id, { mark: 'clear' });
      assert.equal(await isMarked(), true, id);
    }
    await step(ENQUEUE, 'waiter');
    await step(CLEAR, 'waiter');
    assert.equal(await isMarked(), true, 'a step of who waits');
    await step(RELEASE, 'waiter');
    assert.equal((await step(RELEASE, 'next')).isMarked, true, 'it says nothing of it');
    await step(ENQUEUE, 'another');
    assert.equal((await step(RELEASE, 'another', { mark: 'clear' })).isMarked, false);
    await step(ENQUEUE, 'shared', { shared: true, lease: 50 });
    let alone;
    do alone = await step(ENQUEUE, 'alone');
    while (!alone.isGranted);
    assert.equal(alone.isMarked, false);
  },
);

test(
  'who asks again keeps its place, its mode and its fence; a try of who waits takes its place away',
  options,
  async (t) => {
    const { step, server } = await serve(t);
    const { fence } = await step(ENQUEUE, 'holder');
    await step(ENQUEUE, 'first');
    await step(ENQUEUE, 'second');
    for (const id of ['first', 'holder', 'holder']) await step(ENQUEUE, id, { shared: true });
    assert.deepEqual((await server.ask('ZRANGE', LINE, '0', '-1')).map(String), ['holder', 'first', 'second']);
    const again = await step(TRY, 'holder', { shared: true });
    assert.deepEqual([again.isGranted, again.fence, again.soonest], [true, fence, 0]);
    const tried = await step(TRY, 'first');
    assert.deepEqual([tried.isKnown, tried.isGranted, tried.soonest], [false, false, 0]);
    assert.deepEqual((await server.ask('ZRANGE', LINE, '0', '-1')).map(String), ['holder', 'second']);
    assert.equal(readTicket(await server.ask('HGET', TICKETS, 'holder')).isShared, false);
    assert.equal((await step(RENEW, 'nobody')).isKnown, false);
    assert.equal((await server.ask('HKEYS', TICKETS)).length, 2);
  },
);

test('a fence is larger than all before, though the clock was ahead, and has all its digits', options, async (t) => {
  const { step, server } = await serve(t);
  const [seconds] = await server.ask('TIME');
  assert.ok((await step(TRY, 'first')).fence >= BigInt(seconds) * 1_000_000n, 'not below the clock');
  await step(RELEASE, 'first');
  for (const last of ['9007199254740993', '9999999999999998', '9999999999999999', '10000000000000000']) {
    await server.ask('HSET', NAME, 'fence', last);
    assert.equal((await step(TRY, 'next')).fence, BigInt(last) + 1n);
    await step(RELEASE, 'next');
  }
  await server.ask('HSET', NAME, 'fence', '999');
  assert.ok((await step(TRY, 'next')).fence >= BigInt(seconds) * 1_000_000n, 'a number of fewer digits');
});

test(
  'whoever is let in by the step of another is told, with its fence and the mark, and nobody else',
  options,
  async (t) => {
    const { step, server } = await serve(t);
    const client = require('redis').createClient({ url: server.url });
    // It ends before the server does, or that would be an error of it.
    client.on('error', () => {});
    await client.connect();
    const heard = [];
    await client.subscribe('nobody', (message) => heard.push(message));
    for (const id of ['holder', 'next', 'last']) await step(ENQUEUE, id);
    for (const id of ['one', 'two']) await step(ENQUEUE, id, { shared: true });
    await step(RELEASE, 'holder');
    await step(RELEASE, 'next', { mark: 'set' });
    await step(RELEASE, 'last');
    const fences = [];
    for (const id of ['one', 'two']) fences.push((await step(RENEW, id)).fence);
    await step(RELEASE, 'one');
    await step(RELEASE, 'two');
    // The last one lets itself in, by what it sees is over.
    await step(ENQUEUE, 'short', { lease: 30 });
    await step(ENQUEUE, 'itself');
    while (!(await step(RENEW, 'itself')).isGranted);
    await client.ping();
    await client.close();
    const tickets = heard.map((message) => /^(\d{16}) ([01]) (.*)$/.exec(message).slice(1));
    assert.deepEqual(
      tickets.map(([, mark, id]) => `${mark} ${id}`),
      ['0 next', '1 last', '1 one', '1 two'],
    );
    assert.deepEqual(
      tickets.slice(2).map(([fence]) => BigInt(fence)),
      fences,
    );
  },
);

test("a place in line of which nothing else is known is in nobody's way once others are over", options, async (t) => {
  const { step, server } = await serve(t);
  await server.ask('ZADD', LINE, '0', 'lost');
  assert.equal((await step(ENQUEUE, 'first')).isGranted, true);
  assert.deepEqual((await server.ask('ZRANGE', LINE, '0', '-1')).map(String), ['first']);
});

/** The script of a copy of the package that may share a server with this one while a program is deployed; null without its history. */
function scriptOf(commit) {
  const { status, stdout } = spawnSync('git', ['show', `${commit}:lib/stores/redis/script.js`], {
    cwd: __dirname,
    encoding: 'utf8',
  });
  if (status !== 0) return null;
  const exported = {};
  new Function('require', 'exports', stdout)(require, exported);
  return exported.SCRIPT;
}

const earlier = scriptOf('93cb67b');

for (const [title, scripts] of Object.entries({ alone: [SCRIPT], 'beside 93cb67b': [SCRIPT, earlier] })) {
  const skip = scripts.includes(null) ? 'the history of this checkout does not go back that far' : options.skip;
  test(`whatever was asked, the first in line have the lock, and nobody else: ${title}`, {
    ...options,
    skip,
  }, async (t) => {
    const { step, server } = await serve(t);
    const seed = Date.now() % 2 ** 31;
    t.diagnostic(`seed ${seed}`);
    let state = seed;
    const random = (below) => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
      return (state >>> 8) % below;
    };
    const shares = Array.from({ length: 12 }, () => random(3) > 0);
    const verbs = [ENQUEUE, ENQUEUE, TRY, RENEW, RELEASE, RELEASE, CLEAR];
    for (let round = 0; round < 1500; round++) {
      const [verb, index, script] = [
        verbs[random(verbs.length)],
        random(shares.length),
        scripts[random(scripts.length)],
      ];
      await step(verb, `t${index}`, { shared: shares[index], script, lease: random(20) === 0 ? 1 : LEASE });
      const line = await server.ask('ZRANGE', LINE, '0', '-1');
      const texts = line.length > 0 ? await server.ask('HMGET', TICKETS, ...line) : [];
      const tickets = texts.map(readTicket);
      const alone = tickets.findIndex(({ isShared }) => !isShared);
      const first = alone === 0 ? 1 : alone === -1 ? tickets.length : alone;
      // The next step takes care of those whose time is over.
      const isOver = tickets.some(({ deadline }) => deadline < Date.now() + 5);
      const granted = tickets.map(({ isGranted }) => isGranted);
      const expected = tickets.map((_, place) => place < first);
      assert.ok(isOver || granted.join() === expected.join(), `round ${round}, ${verb}: ${texts.join(' | ')}`);
    }
  });
}
