// The second step of a request, with a backend whose outer lock the test is.

const assert = require('node:assert/strict');
const { createHook } = require('node:async_hooks');
const { getEventListeners } = require('node:events');
const { unsubscribe } = require('node:diagnostics_channel');
const { isMainThread } = require('node:worker_threads');
const { test } = require('node:test');
const { locks } = require('../..');
const clock = require('../../lib/load/clock.js');
const { binding, thread } = require('../../lib/engine/thread.js');
const { MODES, toOptions } = require('../../lib/named/options.js');
const { obtain, runWith } = require('../../lib/named/requests.js');
const { obtainSeveral, obtainSeveralBlocking } = require('../../lib/named/several.js');
const takeOver = require('../../lib/named/take-over.js');
const { obtainBlocking } = require('../../lib/named/blocking.js');
const { startActors } = require('../helpers/actors.js');
const { subscribe, warningsOf } = require('../helpers/messages.js');
const { deferred, turns } = require('../helpers/names.js');
const { needs } = require('../helpers/runtime.js');
const { watched } = require('../helpers/threads.js');

/** A backend whose outer lock is free, or waits until the test settles it. */
const createBackend = (t, { isFree = true, blocked = null } = {}) => {
  const log = [];
  const held = (abandoned = false, ended = null) => ({
    abandoned,
    ended,
    markConsistent() {
      log.push('mark');
      this.abandoned = false;
    },
    unlock: () => log.push('unlock'),
  });
  const state = { log, held, isFree, waits: [] };
  state.outer = {
    tryLock(name, { mode }) {
      log.push(`try ${name} ${MODES[mode]}`);
      if (state.error !== undefined) throw state.error;
      return state.isFree ? held() : null;
    },
    lockIfAvailable(name, { mode }) {
      log.push(`if available ${name} ${MODES[mode]}`);
      return state.isFree ? held() : null;
    },
    lockAsync(name, { mode, ref }, limits) {
      const { timeout } = limits;
      const wait = Object.assign(deferred(), { limits });
      log.push(`wait ${name} ${MODES[mode]} ${timeout === Infinity ? 'for ever' : timeout > 0} ${ref}`);
      wait.cancel = () => {
        if (!wait.isOver) log.push('cancel');
      };
      state.waits.push(wait);
      return wait;
    },
    lockBlocking: (_name, _options, limits) => (typeof blocked === 'function' ? blocked(limits) : blocked),
    query: () => [],
  };
  state.space = binding.nameSpace(`test ${t.name}`);
  state.closing = new AbortController();
  const backend = {
    scope: 'machine',
    space: state.space,
    canSteal: false,
    canShare: true,
    outer: state.outer,
    closing: state.closing,
  };
  state.backend = backend;
  state.request = (options, callback) =>
    obtain(
      backend,
      'name',
      toOptions('name', options),
      (lock) =>
        lock === null ? callback(null) : takeOver.run([lock], callback, undefined, (run) => runWith(lock, run)),
      'request',
    );
  state.block = (options) => obtainBlocking(backend, 'name', toOptions('name', options), 'acquire');
  state.rows = () => {
    const times = binding.queryNames(backend.space).rows.filter((_, index) => index % 4 === 3);
    return Array.from(times, (heldMs) => (heldMs < 0 ? 'pending' : 'held'));
  };
  return state;
};

test('the outer lock is taken before the callback, and unlocked before the next of the process', async (t) => {
  const state = createBackend(t);
  const first = state.request({}, () => state.log.push('first'));
  const second = state.request({ mode: 'shared' }, () => state.log.push('second'));
  await Promise.all([first, second]);
  assert.deepEqual(state.log, ['try name exclusive', 'first', 'unlock', 'try name shared', 'second', 'unlock']);
  assert.deepEqual(state.rows(), []);
});

test('names of one space are none of another', async (t) => {
  const state = createBackend(t);
  await state.request({}, async () => {
    assert.equal(await locks.request('name', { ifAvailable: true }, (lock) => lock !== null), true);
    assert.deepEqual((await locks.query()).held, []);
  });
});

test('while the outer lock is waited for, the request shows as pending, and others of the process wait behind', async (t) => {
  const state = createBackend(t, { isFree: false });
  const first = state.request({ timeout: 60_000, ref: false }, () => 'first');
  const second = state.request({}, () => 'second');
  await turns();
  assert.deepEqual(state.rows(), ['pending', 'pending']);
  assert.deepEqual(state.log, ['try name exclusive', 'wait name exclusive true false']);
  state.waits[0].resolve(state.held());
  assert.equal(await first, 'first');
  await turns();
  assert.deepEqual(state.rows(), ['pending']);
  state.waits[1].resolve(state.held());
  assert.equal(await second, 'second');
  assert.deepEqual(state.rows(), []);
});

test('an outer lock that is not available, or not in time, lets the next of the process go on', async (t) => {
  const state = createBackend(t, { isFree: false });
  assert.equal(await state.request({ ifAvailable: true }, (lock) => lock), null);
  assert.equal(state.block({ ifAvailable: true, mode: 'shared' }), null);
  assert.deepEqual(state.log, ['if available name exclusive', 'if available name shared']);
  const late = state.request({ timeout: 5 }, () => {});
  await turns();
  state.waits[0].resolve(null);
  const message = /named lock 'name'\. Another process holds it, or came before\. Wait longer/;
  await assert.rejects(late, { code: 'ERR_LOCK_TIMEOUT', message });
  assert.deepEqual(state.rows(), []);
});

test('an error of the outer lock rejects the request, and nothing is held', async (t) => {
  const state = createBackend(t, { isFree: false });
  const error = new Error('no such directory');
  const failed = state.request({}, () => {});
  await turns();
  state.waits[0].reject(error);
  await assert.rejects(failed, error);
  state.error = error;
  await assert.rejects(
    state.request({}, () => {}),
    error,
  );
  assert.throws(() => state.block({}), error);
  assert.deepEqual(state.rows(), []);
});

test('a signal cancels the wait for the outer lock, and rejects once nothing of it is left', async (t) => {
  const state = createBackend(t, { isFree: false });
  const controller = new AbortController();
  const reason = new Error('the reason');
  const request = state.request({ signal: controller.signal }, () => {});
  await turns();
  controller.abort(reason);
  assert.equal(state.log.at(-1), 'cancel');
  let isRejected = false;
  request.catch(() => {
    isRejected = true;
  });
  await turns();
  assert.equal(isRejected, false);
  state.waits[0].resolve(null);
  await assert.rejects(request, reason);
  assert.deepEqual(state.rows(), []);
});

test('a signal that aborts while the outer lock is asked for, by code of users that runs there, cancels it too', async (t) => {
  const state = createBackend(t, { isFree: false });
  const controller = new AbortController();
  const reason = new Error('the reason');
  const { lockAsync } = state.outer;
  state.outer.lockAsync = (...args) => {
    const wait = lockAsync(...args);
    controller.abort(reason);
    return wait;
  };
  const request = state.request({ signal: controller.signal }, () => {});
  await turns();
  assert.equal(state.log.at(-1), 'cancel');
  state.waits[0].resolve(null);
  await assert.rejects(request, reason);
  assert.deepEqual(state.rows(), []);
});

test('nobody listens to a signal once the wait for the outer lock is over, however it ended', async (t) => {
  const state = createBackend(t, { isFree: false });
  const { signal } = new AbortController();
  const ends = [(wait) => wait.resolve(state.held()), (wait) => wait.resolve(null), (wait) => wait.reject(new Error())];
  for (const [index, end] of ends.entries()) {
    const request = state.request({ signal, timeout: 60_000 }, () => {}).catch(() => {});
    await turns();
    assert.equal(getEventListeners(signal, 'abort').length, 1);
    end(state.waits[index]);
    await request;
    assert.equal(getEventListeners(signal, 'abort').length, 0);
  }
});

test('a manager that can be closed takes back what waits, and forgets what has waited', async (t) => {
  const state = createBackend(t);
  const { closing } = state;
  const inside = deferred();
  const first = state.request({}, () => inside.promise);
  const second = state.request({}, () => {});
  await turns();
  assert.equal(getEventListeners(closing.signal, 'abort').length, 1);
  inside.resolve();
  await Promise.all([first, second]);
  assert.equal(getEventListeners(closing.signal, 'abort').length, 0);
  const held = deferred();
  const last = state.request({}, () => held.promise);
  const withdrawn = state.request({}, () => {});
  await turns();
  closing.abort(new Error('closed'));
  await assert.rejects(withdrawn, /closed/);
  held.resolve();
  await last;
});

test('a signal that aborts when the outer lock was granted, and the callback has not begun, unlocks and rejects', async (t) => {
  for (let moments = 0; moments < 6; moments++) {
    const state = createBackend(t, { isFree: false });
    const controller = new AbortController();
    const reason = new Error('the reason');
    let hasRun = false;
    const request = state.request({ signal: controller.signal }, () => {
      hasRun = true;
    });
    await turns();
    state.waits[0].isOver = true;
    state.waits[0].resolve(state.held());
    for (let moment = 0; moment < moments; moment++) await undefined;
    const ranBefore = hasRun;
    controller.abort(reason);
    assert.equal(await request.catch((error) => error), ranBefore ? undefined : reason, `${moments} microtasks`);
    assert.equal(hasRun, ranBefore);
    assert.equal(state.log.at(-1), 'unlock');
    assert.deepEqual(state.rows(), []);
  }
});

test('a mark of the outer lock is the mark of the lock, is reported, and taken off there', async (t) => {
  const warnings = warningsOf(t);
  const state = createBackend(t, { isFree: false });
  const request = state.request({}, async (lock) => {
    const before = lock.abandoned;
    await turns();
    lock.markConsistent();
    return [before, lock.abandoned];
  });
  await turns();
  state.waits[0].resolve(state.held(true, { pid: 4711, threadId: 3 }));
  assert.deepEqual(await request, [true, false]);
  assert.deepEqual(state.log.slice(-2), ['mark', 'unlock']);
  await turns();
  assert.equal(warnings.length, 1);
  assert.equal(warnings[0].code, 'SABLOCK_ABANDONED');
  assert.match(warnings[0].message, /Process 4711 \(its thread 3\) ended while it held the named lock 'name'/);
});

for (const [who, ended, threadId = ended.threadId] of [
  ['Process 4711 (its thread 3) ended', { pid: 4711, threadId: 3 }],
  ['Process 4711 ended', { pid: 4711, threadId: 0 }],
  ['Process 4711 ended', { pid: 4711, threadId: -1 }],
  ['A process ended', { pid: -1, threadId: -1 }],
  ['A holder ended, or lost the lock,', { pid: -1, threadId: -1, isOfStore: true }],
]) {
  for (const mode of ['exclusive', 'shared']) {
    test(`of a mark of ${JSON.stringify(ended)} outside the warning says: ${who} (${mode})`, async (t) => {
      const warnings = warningsOf(t);
      const told = [];
      const note = (message) => told.push([message.name, message.ownerThreadId]);
      subscribe('sablock:abandoned', note);
      t.after(() => unsubscribe('sablock:abandoned', note));
      const state = createBackend(t, { isFree: false });
      // It leaves no warning out.
      thread.warnings = undefined;
      const request = state.request({ mode }, () => {});
      await turns();
      state.waits[0].resolve(state.held(true, ended));
      await request;
      await turns();
      assert.deepEqual(told, [['name', threadId]]);
      assert.equal(warnings.length, 1);
      const what = `${who} while it held the named lock 'name', which ${mode === 'shared' ? 'this thread now reads' : 'now belongs to this thread'}. `;
      assert.equal(warnings[0].message.slice(0, what.length), what);
    });
  }
}

/** Collects the ends that are published during the test. */
const endsOf = (t) => {
  const told = [];
  const note = ({ ownerThreadId }) => told.push(ownerThreadId);
  subscribe('sablock:abandoned', note);
  t.after(() => unsubscribe('sablock:abandoned', note));
  return told;
};

const ENDED = { pid: 4711, threadId: 3 };

test('the end that a grant has to report is published once, at whatever moment a signal aborts', async (t) => {
  const warnings = warningsOf(t);
  for (let moments = 0; moments < 6; moments++) {
    const told = endsOf(t);
    const state = createBackend(t, { isFree: false });
    const controller = new AbortController();
    const request = state.request({ signal: controller.signal }, () => {});
    await turns();
    Object.assign(state.waits[0], { isOver: true }).resolve(state.held(true, ENDED));
    for (let moment = 0; moment < moments; moment++) await undefined;
    thread.warnings = undefined;
    controller.abort();
    await request.catch(() => {});
    await turns();
    assert.deepEqual([told, warnings.length], [[3], moments + 1], `${moments} microtasks`);
  }
});

/** The next grant outside after one that was lost on its way: the first end is the one that is told. */
const NEXT_GRANTS = {
  'the next': (state) => state.held(true),
  'one after another end': (state) => state.held(true, { pid: 4711, threadId: 4 }),
  none: () => null,
};

for (const [which, next] of Object.entries(NEXT_GRANTS)) {
  test(`the end that a grant has to report is published though that is lost on its way, and ${which} follows`, async (t) => {
    warningsOf(t);
    const told = endsOf(t);
    const lost = (state) => ({ ...state.held(true, ENDED), lost: LOST });
    const state = createBackend(t, { isFree: false });
    const request = state.request({ timeout: LIMIT }, () => {});
    await turns();
    state.waits[0].resolve(lost(state));
    await turns();
    state.waits[1].resolve(next(state));
    await request.catch(() => {});
    assert.deepEqual([told, state.rows()], [[3], []]);
    if (!isMainThread) return;
    const grants = [lost, next];
    const blocks = createBackend(t, { isFree: false, blocked: () => grants.shift()(blocks) });
    const accept = (lock) => takeOver.acceptBlocking(lock);
    const options = toOptions('name', { timeout: LIMIT });
    try {
      obtainBlocking(blocks.backend, 'name', options, 'acquire', accept).unlock();
    } catch ({ code }) {
      assert.equal(code, 'ERR_LOCK_TIMEOUT');
    }
    assert.deepEqual([told, blocks.rows()], [[3, 3], []]);
  });
}

test('blocking verbs take the outer lock too', { skip: !isMainThread }, (t) => {
  const free = createBackend(t);
  const lock = free.block({});
  assert.equal(lock.unlock(), true);
  assert.deepEqual(free.log, ['try name exclusive', 'unlock']);
  const none = createBackend(t, { isFree: false });
  assert.equal(none.block({ ifAvailable: true }), null);
  assert.throws(() => none.block({ timeout: 5 }), { code: 'ERR_LOCK_TIMEOUT' });
  assert.deepEqual(none.rows(), []);
  const waited = createBackend(t, { isFree: false, blocked: { abandoned: true, unlock() {} } });
  const late = waited.block({});
  assert.deepEqual([late.abandoned, waited.rows()], [true, ['held']]);
  late.unlock();
});

test(
  'a mark inside goes with the one outside, which another process may have taken off',
  needs('prompt ends'),
  watched(async (t, threads) => {
    const told = endsOf(t);
    const state = createBackend(t);
    const [holder] = await startActors(threads, 1);
    const hold = (here, space, mode) => {
      const { binding } = here.require('../../lib/engine/thread.js');
      const { toOptions } = here.require('../../lib/named/options.js');
      const { obtain } = here.require('../../lib/named/requests.js');
      const backend = {
        scope: 'process',
        space: binding.nameSpace(space),
        canSteal: false,
        canShare: true,
        outer: null,
      };
      obtain(backend, 'name', toOptions('name', { mode }), () => new Promise(() => {}), 'request');
    };
    const inside = { scope: 'process', space: state.space, canSteal: false, canShare: true, outer: null };
    const isMarkedInside = () =>
      obtain(inside, 'name', toOptions('name', {}), (lock) => runWith(lock, () => lock.abandoned), 'request');
    await holder.do(hold, `test ${t.name}`, 'exclusive');
    await holder.terminate();
    // Outside it was repaired before the next of this process came.
    assert.equal(await state.request({}, ({ abandoned }) => abandoned), false);
    assert.equal(await isMarkedInside(), false);
    assert.deepEqual(told, []);
  }),
);

/** By verb: asks for two names. Each of `grants` makes the outer lock of the next. */
const SEVERAL = {
  async obtainSeveral(t, grants) {
    const state = createBackend(t, { isFree: false });
    const request = obtainSeveral(state.backend, ['a', 'b'], toOptions('a', {}), runs, 'request');
    for (const [index, grant] of grants.entries()) {
      await turns();
      state.waits[index].resolve(grant(state));
    }
    return { state, request };
  },
  async obtainSeveralBlocking(t, grants) {
    const blocked = () => grants.shift()(state);
    const state = createBackend(t, { isFree: false, blocked });
    const request = async () => runs(obtainSeveralBlocking(state.backend, ['a', 'b'], toOptions('a', {}), 'acquire'));
    return { state, request: request() };
  },
};

const runs = () => 'its code runs';

for (const [verb, ask] of Object.entries(SEVERAL)) {
  test(
    `a name that is lost while the next is waited for fails the request of both, and the next goes back (${verb})`,
    { skip: !isMainThread },
    watched(async (t) => {
      let first;
      const grants = [
        (state) => {
          first = Object.assign(state.held(), { lost: null, onLost: null });
          return first;
        },
        (state) => {
          first.lost = { reason: 'taken', heldMs: 1 };
          return state.held();
        },
      ];
      const { state, request } = await ask(t, grants);
      await assert.rejects(request, { code: 'ERR_LOCK_LOST', lockName: 'a', reason: 'taken' });
      assert.deepEqual([state.log.at(-1), state.rows()], ['unlock', []]);
    }),
  );
}

/** Longer than any test, and the time that it has to have lost at least, in milliseconds. */
const LIMIT = 60_000;
const SPENT = 3;

/** Returns once that time is over, by the clock that counts it. */
function spend() {
  const begun = performance.now();
  while (performance.now() - begun <= SPENT);
}

const LOST = { reason: 'taken', heldMs: 1 };
const sorted = ['name', 'next'];

/** Each spends time and returns, or promises, what is left for the next step, as the outer lock is told. */
const LATE_STEPS = {
  async 'behind another of the process'(t) {
    const state = createBackend(t, { isFree: false });
    const first = state.request({}, () => {});
    const second = state.request({ timeout: LIMIT }, () => {});
    await turns();
    spend();
    state.waits[0].resolve(state.held());
    await first;
    await turns();
    state.waits[1].resolve(state.held());
    await second;
    return state.waits[1].limits;
  },
  async 'again, after a grant that was lost on its way'(t) {
    const state = createBackend(t, { isFree: false });
    const request = state.request({ timeout: LIMIT }, () => {});
    await turns();
    spend();
    state.waits[0].resolve({ ...state.held(), lost: LOST });
    await turns();
    state.waits[1].resolve(state.held());
    await request;
    return state.waits[1].limits;
  },
  async 'the next of several names'(t) {
    const state = createBackend(t, { isFree: false });
    const options = toOptions(sorted, { timeout: LIMIT });
    const request = obtainSeveral(state.backend, sorted, options, (locks) => locks, 'acquireAsync');
    await turns();
    spend();
    state.waits[0].resolve(state.held());
    await turns();
    state.waits[1].resolve(state.held());
    for (const lock of await request) lock.unlock();
    return state.waits[1].limits;
  },
  'again, in a thread that blocks'(t) {
    const limits = [];
    const blocked = (each) => {
      limits.push(each);
      if (limits.length > 1) return { abandoned: false, unlock() {} };
      spend();
      return { lost: LOST };
    };
    createBackend(t, { isFree: false, blocked }).block({ timeout: LIMIT }).unlock();
    return limits[1];
  },
  'the next of several names, in a thread that blocks'(t) {
    const limits = [];
    const blocked = (each) => {
      limits.push(each);
      spend();
      return { abandoned: false, unlock() {} };
    };
    const { backend } = createBackend(t, { isFree: false, blocked });
    const options = toOptions(sorted, { timeout: LIMIT });
    for (const lock of obtainSeveralBlocking(backend, sorted, options, 'acquire')) lock.unlock();
    return limits[1];
  },
};

for (const [step, run] of Object.entries(LATE_STEPS)) {
  test(
    `the time of a request counts from its call: ${step}, it waits outside for what is left`,
    { skip: !isMainThread },
    watched(async (t) => {
      const { timeout, patience } = await run(t);
      for (const left of [timeout, patience]) assert.ok(left > 0 && left <= LIMIT - SPENT, `${left} ms`);
    }),
  );
}

test('the next of several names is asked for outside in the turn in which the one before is there, though there is a signal', async (t) => {
  const state = createBackend(t, { isFree: false });
  const { signal } = new AbortController();
  const request = obtainSeveral(state.backend, sorted, toOptions(sorted, { signal }), (locks) => locks, 'request');
  await turns();
  state.waits[0].resolve(state.held());
  for (let microtasks = 0; microtasks < 50; microtasks++) await undefined;
  assert.equal(state.waits.length, 2);
  state.waits[1].resolve(state.held());
  for (const lock of await request) lock.unlock();
});

test('a request that is late outside asks there with some time still, for 0 would be a try; NaN is for ever', async (t) => {
  const state = createBackend(t, { isFree: false });
  const first = state.request({}, () => {});
  const late = state.request({ timeout: 60_000 }, () => {});
  const patient = state.request({ timeout: Number.NaN }, () => {});
  await turns();
  const { now } = clock;
  try {
    clock.now = () => now() + 120_000;
    state.waits[0].resolve(state.held());
    await first;
    await turns();
  } finally {
    clock.now = now;
  }
  const { timeout, patience } = state.waits[1].limits;
  for (const left of [timeout, patience]) assert.ok(left > 0 && left < 1, `${left} ms`);
  state.waits[1].resolve(null);
  await assert.rejects(late, { code: 'ERR_LOCK_TIMEOUT' });
  await turns();
  assert.deepEqual([state.waits[2].limits.timeout, state.waits[2].limits.patience], [Infinity, Infinity]);
  state.waits[2].resolve(state.held());
  await patient;
});

test('no wait is published for what a store is asked for: nobody may be in the way', async (t) => {
  const state = createBackend(t, { isFree: false });
  state.outer.isAsync = true;
  const waits = [];
  const note = (message) => waits.push(message);
  subscribe('sablock:contended', note);
  t.after(() => unsubscribe('sablock:contended', note));
  const request = state.request({}, () => {});
  await turns();
  state.waits[0].resolve(state.held());
  await request;
  assert.deepEqual(waits, []);
});

/** A backend whose outer lock is a store: it is not tried, and says who holds a name, or what keeps it from saying so. */
const createStore = (t) => {
  const state = createBackend(t, { isFree: false });
  state.asked = 0;
  state.holders = ['one', 'other'].map((clientId) => ({ clientId, mode: 'shared' }));
  const ask = () => {
    state.asked += 1;
    if (state.error !== undefined) throw state.error;
    return state.holders;
  };
  Object.assign(state.outer, { isAsync: true, askHolders: async () => ask(), askHoldersBlocking: ask });
  return state;
};

test('who is late at a store is told whom the store knows to hold the name, and in which mode, or why it does not say', async (t) => {
  for (const [error, expected] of [
    [undefined, { code: 'ERR_LOCK_TIMEOUT', message: /\. It is held now, shared, by one; by other\. Wait longer/ }],
    [new Error('silent'), { message: 'silent' }],
  ]) {
    const state = Object.assign(createStore(t), { error });
    const late = state.request({ timeout: 60_000 }, () => {});
    await turns();
    assert.deepEqual(state.rows(), ['pending'], 'until the store has answered');
    state.waits[0].resolve(null);
    await assert.rejects(late, expected);
    if (isMainThread) assert.throws(() => state.block({ timeout: 60_000 }), expected);
    assert.deepEqual([state.asked, state.rows()], [isMainThread ? 2 : 1, []]);
  }
});

test('while another request of the process asks the store, one that does not wait asks who holds the name; later it need not', async (t) => {
  const state = createStore(t);
  const inside = deferred();
  const first = state.request({}, () => inside.promise);
  await turns();
  const ways = [
    [() => state.request({ ifAvailable: true }, (lock) => lock), undefined],
    [() => state.request({ ifAvailable: true, timeout: 0 }, (lock) => lock), undefined],
    [() => state.request({ timeout: 0 }, () => {}), /by one; by other/],
    ...(isMainThread ? [[() => state.block({ ifAvailable: true, timeout: 0 }), undefined]] : []),
    ...(isMainThread ? [[() => state.block({ timeout: 0 }), /by one; by other/]] : []),
  ];
  const outcomes = async () => {
    for (const [ask, message] of ways) {
      const outcome = (async () => ask())();
      if (message === undefined) assert.equal(await outcome, null, `${ask}`);
      else
        await assert.rejects(outcome, {
          code: 'ERR_LOCK_TIMEOUT',
          message: state.isIn ? /by this thread, for/ : message,
        });
    }
  };
  await outcomes();
  assert.equal(state.asked, ways.length);
  state.error = new Error('silent');
  for (const [ask] of ways) await assert.rejects(async () => ask(), state.error, `${ask}`);
  state.waits[0].resolve(state.held());
  await turns();
  Object.assign(state, { isIn: true, asked: 0 });
  await outcomes();
  assert.equal(state.asked, 0);
  inside.resolve();
  await first;
});

/** As what a store grants: it may be lost while it is held. */
const losable = (state) => Object.assign(state.held(), { lost: null, fence: null, onLost: null });

test('the error of a loss has the fence and the time of its lock', async (t) => {
  const state = createBackend(t, { isFree: false });
  const held = Object.assign(losable(state), { fence: 5n });
  const request = state.request({ fence: true }, ({ fence }) => {
    held.lost = { reason: 'taken', heldMs: 77 };
    return fence;
  });
  await turns();
  state.waits[0].resolve(held);
  await assert.rejects(request, { code: 'ERR_LOCK_LOST', lockName: 'name', fence: 5n, reason: 'taken', heldMs: 77 });
});

test('unlock() that the store answers with a loss is false, and the lock is over from then on', async (t) => {
  const state = createBackend(t, { isFree: false });
  const held = losable(state);
  held.unlock = () => {
    held.lost = LOST;
    return false;
  };
  let seen;
  const request = state.request({}, (lock) => {
    const { signal } = lock;
    seen = [lock.unlock(), signal.reason?.code, state.rows()];
  });
  await turns();
  state.waits[0].resolve(held);
  await assert.rejects(request, { code: 'ERR_LOCK_LOST' });
  assert.deepEqual(seen, [false, 'ERR_LOCK_LOST', []]);
});

for (const [when, isNoticed] of [
  ['noticed before', true],
  ['not noticed before', false],
]) {
  test(`the signal of a lock that was lost is aborted with that, read first when it is over, ${when}`, async (t) => {
    const state = createBackend(t, { isFree: false });
    const held = losable(state);
    let reason;
    const request = state.request({}, (lock) => {
      held.lost = LOST;
      if (isNoticed) held.onLost();
      assert.equal(lock.signal.aborted, true);
      reason = lock.signal.reason;
      assert.equal(lock.signal.reason.code, 'ERR_LOCK_LOST');
    });
    await turns();
    state.waits[0].resolve(held);
    await assert.rejects(request, (error) => error === reason);
    assert.deepEqual(state.rows(), []);
  });
}

test('who is told of a loss finds the lock over, and is told once, whatever it looks at there', async (t) => {
  const state = createBackend(t, { isFree: false });
  const held = losable(state);
  const told = [];
  const look = (who, lock) => told.push([who, lock.locked, lock.unlock()]);
  let lock;
  const listen = () => look('channel', lock);
  subscribe('sablock:lost', listen);
  t.after(() => unsubscribe('sablock:lost', listen));
  const request = state.request({}, (given) => {
    lock = given;
    lock.signal.addEventListener('abort', () => look('signal', lock));
    Object.assign(held, { lost: LOST }).onLost();
  });
  await turns();
  state.waits[0].resolve(held);
  await assert.rejects(request, { code: 'ERR_LOCK_LOST' });
  assert.deepEqual(told, [
    ['channel', false, false],
    ['signal', false, false],
  ]);
  assert.deepEqual(state.log.filter((entry) => entry === 'unlock').length, 0);
});

const failed = new Error('on purpose');

for (const [what, toError, cause] of [
  ['the error of the loss', (lock) => lock.signal.reason, undefined],
  ['another error', () => failed, failed],
]) {
  for (const isAsync of [false, true]) {
    test(`a callback that fails with ${what}, ${isAsync ? 'by a promise' : 'at once'}: the request fails with that of the loss`, async (t) => {
      const state = createBackend(t, { isFree: false });
      const held = losable(state);
      let reason;
      const request = state.request({}, (lock) => {
        held.lost = LOST;
        reason = lock.signal.reason;
        const fail = () => {
          throw toError(lock);
        };
        return isAsync ? turns().then(fail) : fail();
      });
      await turns();
      state.waits[0].resolve(held);
      await assert.rejects(request, (error) => error === reason);
      assert.equal(reason.cause, cause);
    });
  }
}

/** The ways to a lock that comes to this thread marked: `take(state, onAbandoned)` is what they return. */
const TAKE_OVER = {
  'request()': (lock, onAbandoned) =>
    takeOver.run(
      [lock],
      () => assert.fail('the callback must not run'),
      onAbandoned,
      (run) => runWith(lock, run),
    ),
  'acquireAsync()': (lock, onAbandoned) => takeOver.accept(lock, [lock], onAbandoned),
  'acquire()': (lock, onAbandoned) => takeOver.acceptBlocking(lock, onAbandoned),
};

for (const [verb, take] of Object.entries(TAKE_OVER)) {
  for (const [isAsync, how] of [
    [false, 'at once'],
    [true, 'by a promise'],
  ]) {
    if (verb === 'acquire()' && isAsync) continue;
    for (const [what, code, end] of [
      ['was lost, and noticed', 'ERR_LOCK_LOST', (_, held) => Object.assign(held, { lost: LOST }).onLost()],
      ['was lost', 'ERR_LOCK_LOST', (_, held) => Object.assign(held, { lost: LOST })],
      ['was unlocked', 'ERR_LOCK_NOT_OWNER', (lock) => lock.unlock()],
    ]) {
      test(`${verb} of a marked lock that ${what} while onAbandoned ran, ${how}, fails with ${code}`, async (t) => {
        const state = createBackend(t, { isFree: false });
        const held = Object.assign(losable(state), { abandoned: true });
        const request = obtain(
          state.backend,
          'name',
          toOptions('name', {}),
          (lock) =>
            take(lock, () => {
              end(lock, held);
              return isAsync ? turns() : undefined;
            }),
          'request',
        );
        await turns();
        state.waits[0].resolve(held);
        await assert.rejects(request, { code });
        assert.deepEqual([state.log.includes('mark'), state.rows()], [false, []]);
      });
    }
  }
}

const failure = new Error('from outside');
const fails = () => {
  throw failure;
};

/** The waits that are watched, of those that begin from now on. */
function openWaits(t) {
  const open = new Set();
  const hook = createHook({
    init: (id, type) => type === 'SablockWait' && open.add(id),
    destroy: (id) => open.delete(id),
  }).enable();
  t.after(() => hook.disable());
  return open;
}

/** Ends of a wait for the outer lock: what it comes to outside, if the signal aborts, and what is published of the wait. */
const OUTER_ENDS = {
  'is granted': { outcome: 'acquired', come: (state) => state.held() },
  'is over in time': { outcome: 'timed-out', come: () => null },
  fails: { outcome: undefined, come: fails },
  'is aborted': { outcome: 'aborted', come: () => null, isAborted: true },
  'fails, though aborted': { outcome: 'aborted', come: fails, isAborted: true },
};

for (const [how, { outcome, come, isAborted = false }] of Object.entries(OUTER_ENDS)) {
  for (const blocks of isAborted ? [false] : [false, true]) {
    test(
      `${blocks ? 'a thread that blocks' : 'a promise'}: a wait outside that ${how} is published once, and watched no longer`,
      { ...needs('async hooks'), ...(blocks && !isMainThread && { skip: true }) },
      watched(async (t, threads) => {
        const outcomes = [];
        const note = (message) => outcomes.push(message.outcome);
        // Who publishes long holds keeps what it watches, which else would be collected.
        for (const [channel, listener] of [
          ['sablock:contended', note],
          ['sablock:long-hold', () => {}],
        ]) {
          subscribe(channel, listener);
          t.after(() => unsubscribe(channel, listener));
        }
        const open = openWaits(t);
        const state = createBackend(t, { isFree: false, blocked: () => come(state) });
        const controller = new AbortController();
        const ask = async () => {
          if (blocks) return state.block({ timeout: LIMIT }).unlock();
          const request = state.request({ timeout: LIMIT, signal: controller.signal }, () => {});
          request.catch(() => {});
          await turns();
          if (isAborted) controller.abort(new Error('aborted'));
          state.waits[0].resolve(new Promise((resolve) => resolve(come(state))));
          return request;
        };
        const error = await ask().then(
          () => undefined,
          (reason) => reason,
        );
        if (outcome === 'acquired') assert.equal(error, undefined);
        else if (outcome === 'timed-out') assert.equal(error.code, 'ERR_LOCK_TIMEOUT');
        else if (outcome === undefined) assert.equal(error, failure);
        assert.deepEqual(outcomes, outcome === undefined ? [] : [outcome]);
        await threads.until('the wait is watched no longer', () => open.size === 0);
      }),
    );
  }
}

test(
  'a request that waits in its process, and then outside, is published as one wait, and watched no longer',
  needs('async hooks'),
  async (t) => {
    const outcomes = [];
    const note = (message) => outcomes.push(message.outcome);
    subscribe('sablock:contended', note);
    t.after(() => unsubscribe('sablock:contended', note));
    const open = openWaits(t);
    const state = createBackend(t, { isFree: false });
    const requests = [1, 2].map(() => state.request({}, () => {}));
    for (const index of requests.keys()) {
      await turns();
      state.waits[index].resolve(state.held());
      await requests[index];
    }
    await turns();
    assert.deepEqual([outcomes, [...open]], [['acquired', 'acquired'], []]);
  },
);

test(
  'of another process, who holds a name again and again is no long hold; who holds it on is',
  watched(async (t, threads) => {
    const messages = [];
    const note = ({ name, ownerThreadId }) => messages.push([name, ownerThreadId]);
    subscribe('sablock:long-hold', note);
    t.after(() => unsubscribe('sablock:long-hold', note));
    const state = createBackend(t, { isFree: false });
    let since = 0;
    state.outer.holderOf = (name) => ({ pid: 4711, threadId: 5, heldMs: 1, since: name === 'on' ? 0 : since++ });
    const names = ['again', 'on'];
    const waits = names.map((name) => obtain(state.backend, name, toOptions(name, {}), () => {}, 'request'));
    await threads.until('the long hold is published', () => messages.length > 0 && since > 3);
    assert.deepEqual([...new Set(messages.map(([name]) => name))], ['on']);
    for (const wait of state.waits) wait.resolve(state.held());
    await Promise.all(waits);
  }),
);
