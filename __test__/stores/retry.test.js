// The keepers of all stores connect again, and ask again; here without a store.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const threads = require('node:worker_threads');

/** The messages that the lock worker would tell the thread that started it. */
const told = [];
const messages = [];
threads.parentPort = {
  postMessage(message) {
    messages.push(message);
    told.push(message.sablockStore?.event);
  },
};
const { fromText } = require('../../lib/engine/error-text.js');
const { noClient, notConnected, storeError } = require('../../lib/stores/errors.js');
const { Reach, warn } = require('../../lib/stores/events.js');
const retry = require('../../lib/stores/retry.js');
const { turns } = require('../helpers/names.js');
const clock = require('../../lib/load/clock.js');

const { Connection, Releases, pauses, within } = retry;
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

test('a loop of tries that is left is over before anything else comes', async () => {
  let isOver = false;
  let seen;
  for await (const _ of pauses()) {
    queueMicrotask(() => {
      seen = isOver;
    });
    break;
  }
  isOver = true;
  await turns();
  assert.equal(seen, true);
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

test('a wait that fails again and again pauses longer each time; one whose connection is lost asks once there is another', async (t) => {
  const paused = [];
  t.mock.method(clock, 'setTimeout', (resolve, ms) => {
    paused.push(ms);
    queueMicrotask(resolve);
  });
  let begins = 0;
  const { connection } = create(async () => {
    begins += 1;
    // The second is reached at the third try.
    if (begins === 2 || begins === 3) throw new Error('not there');
    return {};
  });
  await connection.get();
  let asked = 0;
  const once = async () => {
    asked += 1;
    if (asked === 8) return 'granted';
    if (asked === 7) connection.lose(connection.current, new Error('lost'));
    throw new Error('not now');
  };
  assert.equal(await connection.lock({ isCancelled: false, isTry: false }, once), 'granted');
  assert.deepEqual(paused, [50, 100, 200, 400, 800, 1600, 50, 100, 200]);
  assert.deepEqual([asked, begins], [8, 4]);
});

test('there is one connection at a time; another follows when it is lost, and each change is told once', async () => {
  const { connection, ended } = create();
  const [one, same] = await Promise.all([connection.get(), connection.get()]);
  assert.equal(same, one);
  assert.equal(connection.lose({}, new Error('of an earlier one')), false);
  assert.equal(await connection.get(), one);
  assert.equal(connection.lose(one, new Error('lost')), true);
  assert.equal(connection.lose(null, new Error('none')), false);
  assert.notEqual(await connection.get(), one);
  assert.deepEqual(told, ['connected', 'unreachable', 'reconnected']);
  connection.close();
  for (const verb of ['get', 'getLater']) await assert.rejects(connection[verb](), { ...STORE, message: /was closed/ });
  assert.deepEqual([connection.count, ended], [2, []]);
});

test('one that was over as soon as it had begun, or that began when all was closed, is ended', async () => {
  const over = { isOver: true };
  const ofOver = create(async () => over);
  await assert.rejects(ofOver.connection.get(), { ...STORE, message: 'It has ended the connection.' });
  assert.deepEqual([ofOver.ended, ofOver.connection.current, told], [[over], null, ['unreachable']]);

  const late = {};
  const ofLate = create(async () => late);
  const connecting = ofLate.connection.get();
  ofLate.connection.close();
  await assert.rejects(connecting, { ...STORE, message: /was closed/ });
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

/** Errors of a request, and whether they may be those of a connection that was forgotten on its way while it was idle. */
const CUTS = [
  [{ code: 'ECONNRESET' }, true],
  [{ code: 'EPIPE' }, true],
  [{ code: 'ERR_LOCK_STORE', cause: { code: 'ECONNRESET' } }, true],
  [{ code: 'ECONNREFUSED' }, false],
  [{}, false],
];

test('what fails by a connection that was forgotten is asked once more, if it fails at once and stood before', async (t) => {
  let now = 1000;
  t.mock.method(clock, 'now', () => now);
  /** The number of times that a question, and a try, are asked, of which the first `fails` fail with this error after so many milliseconds. */
  const count = async (error, { isReached = true, ms = 0, fails = 9, act = () => {} } = {}) => {
    const [times, repeated] = [[], []];
    for (const verb of ['ask', 'lock']) {
      const { connection } = create();
      if (isReached) await connection.get();
      const ticket = { isCancelled: false, isTry: true, isRepeated: false };
      let asked = 0;
      const once = async () => {
        asked += 1;
        repeated.push(ticket.isRepeated === (verb === 'lock' && asked > 1));
        now += ms;
        act(connection);
        if (asked <= fails) throw Object.assign(new Error('cut'), error);
      };
      await (verb === 'ask' ? connection.ask(once) : connection.lock(ticket, once)).catch(() => {});
      times.push(asked);
    }
    assert.ok(repeated.every(Boolean), 'a ticket says that it is asked for again');
    return times;
  };
  for (const [error, mayBe] of CUTS) {
    const often = mayBe ? 2 : 1;
    assert.deepEqual(await count(error, { fails: 1 }), [often, often], JSON.stringify(error));
    assert.deepEqual(await count(error), [often, often], 'never a third time');
    assert.deepEqual(await count(error, { isReached: false }), [1, 1]);
    assert.deepEqual(await count(error, { ms: 249 }), [often, often]);
    assert.deepEqual(await count(error, { ms: 250 }), [1, 1]);
    assert.equal((await count(error, { act: (connection) => connection.close() }))[0], 1);
    // Its end is known already, whatever the error says.
    assert.deepEqual(await count(error, { act: (connection) => connection.lose(connection.current) }), [2, 2]);
  }
});

test('a client gives up a twentieth of a lease, ten milliseconds at least and a second at most', () => {
  const margins = [100, 200, 201, 2000, 20_000, 30_000, 2 ** 31 - 1].map(retry.marginOf);
  assert.deepEqual(margins, [10, 10, 10.05, 100, 1000, 1000, 1000]);
});

test('names of any 16-bit units have hashes of their own, of the same length', () => {
  const names = ['', '\0', 'a', 'A', 'a\0', '\ud800', '\ud801', '\udc00', '\ufffd', 'x'.repeat(10_000)];
  const hashes = names.map(retry.hashOf);
  assert.equal(new Set(hashes).size, names.length);
  for (const hash of hashes) assert.match(hash, /^[\w-]{43}$/);
});

test('the errors of clients keep their words, and say which store and what to do', () => {
  const own = Object.assign(new Error('refused.'), { isFinal: false });
  assert.equal(retry.asStoreError('It', own), own);
  const cause = new Error('not today.');
  const { message, code, isFinal, cause: kept } = retry.asStoreError('It', cause);
  assert.deepEqual([message, code, isFinal, kept], ['It failed: not today.', 'ERR_LOCK_STORE', false, cause]);
  const many = new AggregateError([new Error('one'), new Error('other')], '');
  for (const [error, words] of [
    [many, 'one; other'],
    [Object.assign(new Error(''), { code: 'ENONE' }), 'ENONE'],
    [new TypeError(''), 'TypeError'],
  ]) {
    const said = notConnected('It', error, true);
    assert.deepEqual([said.message, said.isFinal, said.cause], [`It cannot be reached: ${words}.`, true, error]);
  }
  assert.match(noClient(['one']).message, /`npm install one`, or give/);
  assert.match(noClient(['one', 'two', 'three']).message, /`npm install one` \(or two, three\), or give/);
});

test('each change of how a store is reached is told once, with what is not so any more', () => {
  const reach = new Reach({ kind: 'it', settings: { namespace: 'its own' } });
  const tell = (act) => {
    messages.length = 0;
    act();
    return messages.map(({ sablockStore: { error, ...rest } }) => {
      assert.deepEqual([rest.store, rest.namespace], ['it', 'its own']);
      return error === null ? rest.event : [rest.event, fromText(error)];
    });
  };
  const cut = new Error('cut');
  const [[event, { code, message, cause }], ...others] = tell(() => {
    reach.down(cut);
    reach.down(new Error('once more'));
  });
  assert.deepEqual([event, code, cause.message, others], ['unreachable', 'ERR_LOCK_STORE', 'cut', []]);
  assert.equal(message, 'The connection to the store has ended.');
  assert.deepEqual(
    tell(() => [reach.up(), reach.up()]),
    ['connected'],
  );
  const [[, own]] = tell(() => reach.down(storeError('refused')));
  assert.equal(own.message, 'refused');
  assert.deepEqual(
    tell(() => [reach.up(), reach.pooler(), reach.up()]),
    ['reconnected', 'pooler'],
  );
  // A connection that ended by itself.
  const [[, bare]] = tell(() => reach.down());
  assert.deepEqual([bare.message, bare.cause], ['The connection to the store has ended.', undefined]);
  messages.length = 0;
  warn('ITS_CODE', 'Its words.');
  assert.deepEqual(messages, [{ sablockWarning: { code: 'ITS_CODE', message: 'Its words.' } }]);
});
