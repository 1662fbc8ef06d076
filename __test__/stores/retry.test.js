// The keepers of all stores connect again, and ask again; here without a store.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const threads = require('node:worker_threads');

/** The messages that the lock worker would tell the thread that started it. */
const told = [];
threads.parentPort = { postMessage: ({ sablockStore }) => told.push(sablockStore.event) };
const { Connection, Releases, pauses, within } = require('../../lib/stores/retry.js');
const { turns } = require('../helpers/names.js');
const clock = require('../../lib/load/clock.js');

const STORE = { code: 'ERR_LOCK_STORE' };
const begun = async () => ({});

/** A connection; `begin()` makes what it connects with, and `ended` has what was ended of it. */
const create = (begin = begun) => {
  told.length = 0;
  const ended = [];
  const connection = new Connection('It', { kind: 'it', settings: { namespace: '' } }, begin, (one) => ended.push(one));
  return { connection, ended };
};

/** Asks for a lock that fails at first, when `act(connection, ticket)` is called too; how often, and what came of it. */
const ask = async ({ isReached = true, isTry = false, error = new Error('at first'), act = () => {} }) => {
  const { connection } = create();
  if (isReached) await connection.get();
  const ticket = { isCancelled: false, isTry };
  let times = 0;
  const once = async () => {
    times += 1;
    if (times > 1) return 'granted';
    act(connection, ticket);
    throw error;
  };
  const outcome = await connection.lock(ticket, once).catch((failure) => failure);
  return [times, outcome?.code ?? outcome];
};

test('what has failed is asked for again, if that can help anybody', async () => {
  const final = Object.assign(new Error('for ever'), { isFinal: true, code: 'for ever' });
  assert.deepEqual(await ask({}), [2, 'granted']);
  assert.deepEqual(await ask({ isReached: false }), [1, STORE.code], 'a store that was never reached');
  assert.deepEqual(await ask({ isTry: true }), [1, STORE.code], 'a try');
  assert.deepEqual(await ask({ error: final }), [1, final.code], 'an error that stays');
  assert.deepEqual(await ask({ act: (connection) => connection.close() }), [1, STORE.code], 'a store that was closed');
  const cancel = (_, ticket) => {
    ticket.isCancelled = true;
  };
  assert.deepEqual(await ask({ isTry: true, act: cancel }), [1, null], 'nobody wants it');
  const later = (connection, ticket) => setImmediate(() => cancel(connection, ticket));
  assert.deepEqual(await ask({ act: later }), [1, null], 'nobody wants it any more after the pause');
});

test('between two tries it pauses longer each time, up to two seconds', async (t) => {
  const paused = [];
  t.mock.method(clock, 'setTimeout', (resolve, ms) => {
    paused.push(ms);
    queueMicrotask(resolve);
  });
  for await (const _ of pauses()) if (paused.length === 8) break;
  assert.deepEqual(paused, [50, 100, 200, 400, 800, 1600, 2000, 2000]);
});

test('those who can wait share one try, after a pause that grows with each in vain and is short again once it was reached', async (t) => {
  const paused = [];
  t.mock.method(clock, 'setTimeout', (resolve, ms) => {
    paused.push(ms);
    queueMicrotask(resolve);
  });
  let isThere = false;
  let tries = 0;
  const { connection } = create(async () => {
    tries += 1;
    if (!isThere) throw new Error('not there');
    return {};
  });
  const tryAll = () => Promise.allSettled([connection.getLater(), connection.getLater(), connection.getLater()]);
  for (let round = 0; round < 3; round += 1) {
    const outcomes = await tryAll();
    assert.ok(outcomes.every(({ status }) => status === 'rejected'));
  }
  isThere = true;
  const [{ value }] = await tryAll();
  assert.equal(await connection.getLater(), value, 'without a pause');
  connection.lose(value, new Error('lost'));
  await tryAll();
  assert.deepEqual([paused, tries], [[50, 100, 200, 400, 50], 5]);
});

test('there is one connection at a time; another follows when it is lost, and each change is told once', async () => {
  const { connection } = create();
  const [one, same] = await Promise.all([connection.get(), connection.get()]);
  assert.equal(same, one);
  assert.equal(connection.lose({}, new Error('of an earlier one')), false);
  assert.equal(await connection.get(), one);
  assert.equal(connection.lose(one, new Error('lost')), true);
  assert.equal(connection.lose(null, new Error('none')), false);
  assert.notEqual(await connection.get(), one);
  assert.deepEqual(told, ['connected', 'unreachable', 'reconnected']);
  connection.close();
  await assert.rejects(connection.get(), STORE);
});

test('one that was over as soon as it had begun, or that began when all was closed, is ended', async () => {
  const over = { isOver: true };
  const ofOver = create(async () => over);
  await assert.rejects(ofOver.connection.get(), STORE);
  assert.deepEqual([ofOver.ended, ofOver.connection.current, told], [[over], null, ['unreachable']]);

  const late = {};
  const ofLate = create(async () => late);
  const connecting = ofLate.connection.get();
  ofLate.connection.close();
  await assert.rejects(connecting, STORE);
  assert.deepEqual([ofLate.ended, ofLate.connection.current, told], [[late], null, []]);
});

test('what comes in time leaves no timer behind, and what does not fails', async (t) => {
  const cleared = t.mock.method(clock, 'clearTimeout');
  assert.equal(await within(10_000, Promise.resolve('in time')), 'in time');
  assert.equal(cleared.mock.callCount(), 1);
  await assert.rejects(within(1, new Promise(() => {})), STORE);
});

test('who tries a name comes after all of its releases that are under way, and no others', async () => {
  const releases = new Releases();
  const settle = {};
  for (const [name, label] of [
    ['a', 'first'],
    ['a', 'second'],
    ['b', 'other'],
  ]) {
    releases.add(name, new Promise((resolve) => Object.assign(settle, { [label]: resolve })));
  }
  const over = [];
  releases.over('a').then(() => over.push('a'));
  releases.over().then(() => over.push('all'));
  settle.second();
  await turns();
  assert.deepEqual(over, []);
  settle.first();
  await turns();
  assert.deepEqual(over, ['a']);
  settle.other();
  await turns();
  assert.deepEqual(over, ['a', 'all']);
});
