// The promises of the Web Locks API, without `steal`, as a list of cases: each is run over every scope.
//
// `manager` of the `scope` is asked; `other` is a second client of the same locks: to a store, another machine. `name` is of the case
// alone.

const assert = require('node:assert/strict');
const { AVAILABLE, deferred, hold, modesOf } = require('../helpers/names.js');

const cases = [];
const add = (title, run) => cases.push({ title, run });

const invalid = { name: 'TypeError' };
const unsupported = { name: 'NotSupportedError' };
const never = () => assert.fail('the callback must not run');
const shared = { mode: 'shared' };

/** Looks until the name is held and waited for in these modes, in order. */
async function seen(manager, name, held, pending) {
  const expected = JSON.stringify({ held, pending });
  while (JSON.stringify(await modesOf(name, manager)) !== expected) {
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}

/** As `hold`, without waiting until it is granted. */
function ask(manager, name, options = {}) {
  const end = deferred();
  const asked = { isGranted: false, release: end.resolve, fail: end.reject };
  asked.request = manager.request(name, options, () => {
    asked.isGranted = true;
    return end.promise;
  });
  asked.request.catch(() => {});
  return asked;
}

// The arguments of request().

add('a request needs a name and a callback', async ({ manager, name }) => {
  await assert.rejects(manager.request(), invalid);
  await assert.rejects(manager.request(name), invalid);
});

add('what is no function is no callback', async ({ manager, name }) => {
  for (const value of [undefined, null, 123, 'abc', [], {}, Promise.resolve()]) {
    await assert.rejects(manager.request(name, value), invalid);
    await assert.rejects(manager.request(name, {}, value), invalid);
  }
});

add('a mode is "exclusive" or "shared"', async ({ manager, name }) => {
  for (const mode of ['foo', null]) await assert.rejects(manager.request(name, { mode }, never), invalid);
  for (const mode of ['exclusive', 'shared']) {
    assert.equal(await manager.request(name, { mode }, (lock) => lock.mode), mode);
  }
});

add('a name that begins with a hyphen is refused', async ({ manager }) => {
  await assert.rejects(manager.request('-', never), unsupported);
  await assert.rejects(manager.request('-foo', never), unsupported);
  assert.equal(await manager.request('x-anything', (lock) => lock.name), 'x-anything');
});

add('a signal is for requests that wait', async ({ manager, name }) => {
  const { signal } = new AbortController();
  await assert.rejects(manager.request(name, { signal, ifAvailable: true }, never), unsupported);
  for (const value of ['string', 12.34, false, {}, Symbol('signal'), () => {}, globalThis]) {
    await assert.rejects(manager.request(name, { signal: value }, never), invalid);
  }
});

add('a name may be any text, and no two are the same', async ({ manager, name }) => {
  const names = ['', '\0', 'abc\0def', '\ud800', '\udc00', '\ufffd', '\ud83d\ude00', 'caf\u00e9', 'cafe\u0301'];
  const all = names.map((text) => `${name} ${text}`).concat(`${name} ${'x'.repeat(20_000)}`);
  const locks = await Promise.all(all.map((each) => hold(each, { ifAvailable: true }, manager)));
  assert.deepEqual(
    locks.map(({ lock }) => lock.name),
    all,
  );
  for (const { release } of locks) release();
  await Promise.all(locks.map(({ request }) => request));
  assert.equal(await manager.request('', (lock) => lock.name), '');
});

// Cases of what is granted.

add('the callback gets the lock, and its result is what the promise is fulfilled with', async ({ manager, name }) => {
  assert.equal(await manager.request(name, () => 123), 123);
  assert.equal(await manager.request(name, async (lock) => `${lock.mode} ${lock.name}`), `exclusive ${name}`);
  assert.equal(await manager.request(name, shared, (lock) => lock.mode), 'shared');
});

add('what a callback throws, or rejects with, is what the request rejects with', async ({ manager, name }) => {
  const error = new Error('on purpose');
  const throws = () => {
    throw error;
  };
  for (const fail of [throws, async () => throws()]) {
    assert.equal(await manager.request(name, fail).then(never, (thrown) => thrown), error);
  }
  assert.equal(await manager.request(name, () => 'free again'), 'free again');
});

add('a lock is held until the promise of its callback is settled', async ({ manager, name }) => {
  for (const end of ['release', 'fail']) {
    const first = await hold(name, {}, manager);
    const second = ask(manager, name);
    await seen(manager, name, ['exclusive'], ['exclusive']);
    assert.equal(second.isGranted, false);
    first.request.catch(() => {});
    first[end](new Error('on purpose'));
    second.release();
    await second.request;
    assert.equal(second.isGranted, true);
  }
});

add('who holds a lock does not get it again', async ({ manager, name }) => {
  const inner = await manager.request(name, () => manager.request(name, { ifAvailable: true }, (lock) => lock));
  assert.equal(inner, null);
});

// Modes.

add('exclusive requests are granted in the order in which they were made', async ({ manager, name }) => {
  const granted = [];
  const asked = [1, 2, 3].map((index) => manager.request(name, () => granted.push(index)));
  await Promise.all(asked);
  assert.deepEqual(granted, [1, 2, 3]);
});

add('requests for other names are granted meanwhile, in the same order', async ({ manager, name }) => {
  const held = await hold(`${name} 1`, {}, manager);
  const granted = [];
  const first = [1, 2].map((index) => manager.request(`${name} 1`, () => granted.push(`1 ${index}`)));
  await Promise.all([1, 2].map((index) => manager.request(`${name} 2`, () => granted.push(`2 ${index}`))));
  assert.deepEqual(granted, ['2 1', '2 2']);
  held.release();
  await Promise.all(first);
  assert.deepEqual(granted, ['2 1', '2 2', '1 1', '1 2']);
});

add('shared locks are held together', async ({ manager, name }) => {
  const asked = [1, 2, 3].map(() => ask(manager, name, shared));
  await seen(manager, name, ['shared', 'shared', 'shared'], []);
  for (const { release } of asked) release();
  await Promise.all(asked.map(({ request }) => request));
});

add('an exclusive request waits for all that share, and those behind it wait for it', async ({ manager, name }) => {
  const sharers = await Promise.all([1, 2, 3].map(() => hold(name, shared, manager)));
  const granted = [];
  const alone = manager.request(name, () => granted.push('exclusive'));
  const late = manager.request(name, shared, () => granted.push('shared'));
  assert.equal(await manager.request(`${name}, another`, () => 'granted'), 'granted');
  await seen(manager, name, ['shared', 'shared', 'shared'], ['exclusive', 'shared']);
  sharers[0].release();
  sharers[2].release();
  await seen(manager, name, ['shared'], ['exclusive', 'shared']);
  assert.deepEqual(granted, []);
  sharers[1].release();
  await Promise.all([alone, late]);
  assert.deepEqual(granted, ['exclusive', 'shared']);
});

// All verbs, blocking or not, of one name and of several.

/** Returns what `look` makes of the first lock; null if there is none. */
const lookAt = (locks, look) => (locks === null ? null : look([locks].flat()[0]));

function letGo(held, look) {
  const seen = held === null ? null : look(held.locks?.[0] ?? held);
  held?.unlock();
  return seen;
}

const modeOf = ({ mode }) => mode;

/** The verbs of requests: each is a promise of what `look` makes of the lock that it got first, or of null. */
const VERBS = {
  request: (manager, names, options, look = modeOf) => manager.request(names, options, (got) => lookAt(got, look)),
  acquireAsync: async (manager, names, options, look = modeOf) =>
    letGo(await manager.acquireAsync(names, options), look),
  requestSync: async (manager, names, options, look = modeOf) =>
    manager.requestSync(names, options, (got) => lookAt(got, look)),
  acquire: async (manager, names, options, look = modeOf) => letGo(manager.acquire(names, options), look),
};

/** Each of them, of the name that `nameOf(index)` gives it alone and of that with another: `{ ask, names, form }`. */
const formsOf = (nameOf) =>
  Object.values(VERBS)
    .flatMap((ask) => [false, true].map((isOfSeveral) => ({ ask, isOfSeveral })))
    .map(({ ask, isOfSeveral }, index) => {
      const name = nameOf(index);
      const names = isOfSeveral ? [name, `${name} too`] : name;
      return { ask, names, form: `${ask.name}(${names})` };
    });

/** Calls `act(ask, names, form)` with each of them, one after the other. */
async function byEveryVerb(name, act) {
  for (const { ask, names, form } of formsOf(() => name)) await act(ask, names, form);
}

add('a fence grows, by every verb', async ({ manager, other, name }) => {
  let last = 0n;
  await byEveryVerb(name, async (ask, names, form) => {
    for (const asked of [manager, other]) {
      const fence = await ask(asked, names, { fence: true }, (lock) => lock.fence);
      assert.ok(fence > last, `${form}: ${fence} after ${last}`);
      last = fence;
    }
    assert.ok((await ask(manager, names, { fence: true, mode: 'shared' }, (lock) => lock.fence)) >= last, form);
  });
});

add('a request whose time is over says so, by every verb', async ({ manager, other, name }) => {
  for (const who of [manager, other]) {
    const held = await hold(name, {}, who);
    await byEveryVerb(name, async (ask, names, form) => {
      const since = performance.now();
      await assert.rejects(ask(manager, names, { timeout: 50 }), { code: 'ERR_LOCK_TIMEOUT' }, form);
      // A clock of whole milliseconds may be a part of one ahead.
      assert.ok(performance.now() - since >= 49, form);
    });
    held.release();
    await held.request;
  }
});

add(
  'the lock of a thread that ended inside is abandoned until somebody says that all is well, by every verb',
  async ({ manager, name, scope, thread }) => {
    const forms = formsOf((index) => `${name} ${index}`);
    const actor = await thread();
    await actor.do(
      async (here, wanted) => {
        for (const each of wanted) await here.manager.acquireAsync(each);
      },
      forms.map(({ names }) => [names].flat()[0]),
    );
    await actor.terminate();
    for (const { ask, names, form } of forms) {
      const isAbandoned = (lock) => lock.abandoned;
      const restore = (lock) => {
        lock.markConsistent();
        return lock.abandoned;
      };
      const looks = [];
      for (const look of [isAbandoned, isAbandoned, restore, isAbandoned])
        looks.push(await ask(manager, names, {}, look));
      // Sessions leave no mark.
      const isTold = scope !== 'postgres' && scope !== 'mysql';
      assert.deepEqual(looks, [isTold, isTold, false, false], form);
    }
  },
);

for (const [holder, asked, isAvailable] of AVAILABLE) {
  for (const who of ['manager', 'other']) {
    if (holder === null && who === 'other') continue;
    const by = who === 'manager' ? (holder ?? 'nobody') : `another client, ${holder}`;
    add(`without a wait, by every verb, ${asked}, held by ${by}: ${isAvailable ? 'granted' : 'not'}`, async (world) => {
      const { manager, name } = world;
      const held = holder === null ? null : await hold(name, { mode: holder }, world[who]);
      await byEveryVerb(name, async (ask, names, form) => {
        const got = await ask(manager, names, { mode: asked, ifAvailable: true });
        assert.equal(got, isAvailable ? asked : null, form);
        const now = ask(manager, names, { mode: asked, timeout: 0 });
        if (isAvailable) assert.equal(await now, asked);
        else await assert.rejects(now, { code: 'ERR_LOCK_TIMEOUT' }, form);
      });
      held?.release();
      await held?.request;
    });
  }
}

add('a callback that gets null may return, or fail: its request does the same', async ({ manager, name }) => {
  const held = await hold(name, {}, manager);
  const none = (callback) => manager.request(name, { ifAvailable: true }, callback);
  const error = new Error('on purpose');
  const throws = (lock) => {
    assert.equal(lock, null);
    throw error;
  };
  assert.equal(await none(() => 1), 1);
  assert.equal(await none(async () => 2), 2);
  for (const fail of [throws, async (lock) => throws(lock)]) {
    assert.equal(await none(fail).then(never, (thrown) => thrown), error);
  }
  held.release();
  await held.request;
});

add('who got null keeps nobody out, however long its callback goes on', async ({ manager, name }) => {
  const held = await hold(name, {}, manager);
  const end = deferred();
  const without = manager.request(name, { ifAvailable: true }, () => end.promise);
  held.release();
  await held.request;
  assert.equal(await manager.request(name, () => 'granted'), 'granted');
  end.resolve();
  await without;
});

add('ifAvailable overtakes nobody who waits', async ({ manager, name }) => {
  const held = await hold(name, shared, manager);
  const alone = ask(manager, name);
  await seen(manager, name, ['shared'], ['exclusive']);
  assert.equal(await manager.request(name, { ...shared, ifAvailable: true }, (lock) => lock), null);
  held.release();
  alone.release();
  await alone.request;
});

// Signals.

add('a signal that has aborted: the request rejects with its reason', async ({ manager, name }) => {
  await assert.rejects(manager.request(name, { signal: AbortSignal.abort() }, never), { name: 'AbortError' });
  const reason = { any: 'reason' };
  const rejected = manager.request(name, { signal: AbortSignal.abort(reason) }, never);
  assert.equal(await rejected.then(never, (thrown) => thrown), reason);
  assert.equal(await manager.request(name, { ifAvailable: true }, (lock) => lock !== null), true);
});

for (const who of ['manager', 'other']) {
  add(`a request that is aborted while ${who === 'manager' ? 'its own client' : 'another'} holds`, async (world) => {
    const { manager, name } = world;
    const held = await hold(name, {}, world[who]);
    for (const reason of [undefined, { any: 'reason' }]) {
      const controller = new AbortController();
      const asked = manager.request(name, { signal: controller.signal }, never);
      await seen(manager, name, ['exclusive'], ['exclusive']);
      controller.abort(reason);
      assert.equal(await asked.then(never, (error) => error), controller.signal.reason);
      assert.deepEqual((await modesOf(name, manager)).pending, []);
    }
    held.release();
    await held.request;
    assert.equal(await manager.request(name, () => 'granted'), 'granted');
  });
}

add('an abort right after the request of a free name: it rejects, and blocks nobody', async ({ manager, name }) => {
  const controller = new AbortController();
  const asked = manager.request(name, { signal: controller.signal }, never);
  const next = manager.request(name, () => 'next');
  controller.abort();
  await assert.rejects(asked, { name: 'AbortError' });
  assert.equal(await next, 'next');
});

add('a signal that does not abort changes nothing', async ({ manager, name }) => {
  assert.equal(await manager.request(name, { signal: new AbortController().signal }, () => 'granted'), 'granted');
});

add('an abort after the grant, or after the release, changes nothing', async ({ manager, name }) => {
  for (const isEarly of [true, false]) {
    const controller = new AbortController();
    const held = await hold(name, { signal: controller.signal }, manager);
    if (isEarly) controller.abort();
    held.release('the result');
    if (!isEarly) controller.abort();
    assert.equal(await held.request, 'the result');
  }
});

add('a request in the middle of the line that is aborted: those behind it go on', async ({ manager, name }) => {
  const held = await hold(name, shared, manager);
  const controller = new AbortController();
  const alone = manager.request(name, { signal: controller.signal }, never);
  const late = manager.request(name, shared, () => 'late');
  await seen(manager, name, ['shared'], ['exclusive', 'shared']);
  controller.abort();
  await assert.rejects(alone, { name: 'AbortError' });
  assert.equal(await late, 'late');
  held.release();
  await held.request;
});

// query().

add('query() shows who holds and who waits, by name, mode and client', async ({ manager, name }) => {
  assert.deepEqual(await modesOf(name, manager), { held: [], pending: [] });
  const held = await hold(name, shared, manager);
  const asked = [{}, shared, {}].map((options) => ask(manager, name, options));
  await seen(manager, name, ['shared'], ['exclusive', 'shared', 'exclusive']);
  const state = await manager.query();
  const rows = [...state.held, ...state.pending].filter((row) => row.name === name);
  assert.deepEqual(new Set(rows.map(({ clientId }) => typeof clientId)), new Set(['string']));
  assert.equal(new Set(rows.map(({ clientId }) => clientId)).size, 1);
  held.release();
  for (const { release } of asked) release();
  await Promise.all(asked.map(({ request }) => request));
  assert.deepEqual(await modesOf(name, manager), { held: [], pending: [] });
});

add('query() shows a deadlock', async ({ manager, name }) => {
  const [one, two] = await Promise.all([1, 2].map((index) => hold(`${name} ${index}`, {}, manager)));
  const asked = [2, 1].map((index) => ask(manager, `${name} ${index}`));
  for (const index of [1, 2]) await seen(manager, `${name} ${index}`, ['exclusive'], ['exclusive']);
  for (const { release } of [one, two, ...asked]) release();
  await Promise.all(asked.map(({ request }) => request));
});

// Other clients, and other threads.

add('clients exclude each other, and each is served in its order', async ({ manager, other, name }) => {
  const held = await hold(name, {}, manager);
  const granted = [];
  let inside = 0;
  const waits = [other, manager, other, manager].map((client, index) =>
    client.request(name, async () => {
      inside += 1;
      await new Promise(setImmediate);
      assert.equal(inside, 1);
      inside -= 1;
      granted.push(index);
    }),
  );
  for (const client of [manager, other]) {
    while ((await modesOf(name, client)).pending.length < 2);
  }
  held.release();
  await Promise.all(waits);
  const order = (own) => granted.filter((index) => own.includes(index));
  assert.deepEqual(
    [order([0, 2]), order([1, 3])],
    [
      [0, 2],
      [1, 3],
    ],
  );
});

add('clients share, and one that wants to be alone waits for all of them', async ({ manager, other, name }) => {
  const holders = [await hold(name, shared, manager), await hold(name, shared, other)];
  const alone = ask(manager, name);
  holders[0].release();
  await holders[0].request;
  assert.equal(alone.isGranted, false);
  holders[1].release();
  alone.release();
  await alone.request;
});

add('a thread and its main exclude each other, and are two clients', async ({ manager, name, thread }) => {
  const actor = await thread();
  await actor.do(async (here, wanted) => {
    here.lock = await here.manager.acquireAsync(wanted);
  }, name);
  assert.equal(await manager.request(name, { ifAvailable: true }, (lock) => lock), null);
  const asked = ask(manager, name);
  await seen(manager, name, ['exclusive'], ['exclusive']);
  const { held, pending } = await manager.query();
  const [theirs] = held.filter((row) => row.name === name);
  const [mine] = pending.filter((row) => row.name === name);
  assert.notEqual(theirs.clientId, mine.clientId);
  await actor.do((here) => here.lock.unlock());
  asked.release();
  await asked.request;
});

add('a thread that ends gives back what it held, and waits no longer', async ({ manager, name, thread }) => {
  const [holder, waiter] = [await thread(), await thread()];
  await holder.do((here, wanted) => here.manager.acquireAsync(wanted).then(() => {}), name);
  waiter.do((here, wanted) => here.manager.request(wanted, () => {}), name);
  await seen(manager, name, ['exclusive'], ['exclusive']);
  const asked = ask(manager, name);
  await seen(manager, name, ['exclusive'], ['exclusive', 'exclusive']);
  await waiter.terminate();
  await seen(manager, name, ['exclusive'], ['exclusive']);
  await holder.terminate();
  asked.release();
  await asked.request;
});

exports.cases = cases;
