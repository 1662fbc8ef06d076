// Several names at once: all or none.

const assert = require('node:assert/strict');
const { inspect } = require('node:util');
const { test } = require('node:test');
const { HeldLock, HeldLocks, LockManager, locks } = require('../..');
const clock = require('../../lib/load/clock.js');
const { startActors } = require('../helpers/actors.js');
const { createFolder } = require('../helpers/folder.js');
const { hold, modesOf, pendingFor, turns } = require('../helpers/names.js');
const { needs } = require('../helpers/runtime.js');
const { watched } = require('../helpers/threads.js');

const FREE = { held: [], pending: [] };
const blocking = new LockManager({ allowMainThread: true });
const never = () => assert.fail('the callback must not run');

/** Whether nobody holds, or waits for, any of them. */
const allFree = async (names, manager = locks) => {
  for (const name of names) assert.deepEqual(await modesOf(name, manager), FREE, name);
};

/** Managers of both scopes. */
const scopes = (t) => [locks, new LockManager({ directory: createFolder(t) })];

test('a request for several names gets an array of locks in the order asked for, each name once, and releases all', async (t) => {
  for (const manager of scopes(t)) {
    const names = ['b', 'a', 'c', 'a'];
    const seen = await manager.request(names, async (all) => {
      assert.ok(Array.isArray(all) && all.every((lock) => lock instanceof HeldLock));
      for (const name of names) assert.deepEqual((await modesOf(name, manager)).held, ['exclusive']);
      return all.map(({ name, mode }) => `${name} ${mode}`);
    });
    assert.deepEqual(seen, ['b exclusive', 'a exclusive', 'c exclusive']);
    await allFree(names, manager);
    assert.equal(await manager.request(['x', 'y'], { mode: 'shared' }, ([x, y]) => x.mode + y.mode), 'sharedshared');
    assert.deepEqual(await manager.request([], (none) => none), []);
  }
});

test('names that are one as text are one lock, by every verb', async (t) => {
  const names = [7, '7', { toString: () => '7' }, '8'];
  const options = { timeout: 5000 };
  const count = (all) => all.length;
  const end = (held) => held.unlock() && held.locks.length;
  for (const scope of [{}, { directory: createFolder(t) }]) {
    const manager = new LockManager({ ...scope, allowMainThread: true });
    assert.equal(await manager.request(names, options, count), 2);
    assert.equal(manager.requestSync(names, options, count), 2);
    assert.equal(end(await manager.acquireAsync(names, options)), 2);
    assert.equal(end(manager.acquire(names, options)), 2);
  }
});

test('it is all or none: while one is missing, the others are held for it, and show as pending', async (t) => {
  for (const manager of scopes(t)) {
    const held = await hold('2', {}, manager);
    const several = manager.request(['3', '1', '2'], (all) => all.length);
    await turns();
    assert.deepEqual(await modesOf('1', manager), { held: [], pending: ['exclusive'] });
    assert.deepEqual(await modesOf('3', manager), FREE);
    assert.equal(await manager.request('1', { ifAvailable: true }, (lock) => lock), null);
    assert.equal(await manager.request(['1', '3'], { ifAvailable: true }, (all) => all), null);
    assert.equal(await manager.request('3', { ifAvailable: true }, ({ name }) => name), '3');
    held.release();
    assert.equal(await several, 3);
    await allFree(['1', '2', '3'], manager);
  }
});

test('if one of them is not available none is held, by every verb, whichever it is', async (t) => {
  for (const scope of [{}, { directory: createFolder(t) }]) {
    const manager = new LockManager({ ...scope, allowMainThread: true });
    const names = ['1', '2', '3'];
    const options = { ifAvailable: true };
    const identity = (all) => all;
    const verbs = {
      request: () => manager.request(names, options, identity),
      acquireAsync: () => manager.acquireAsync(names, options),
      requestSync: () => manager.requestSync(names, options, identity),
      acquire: () => manager.acquire(names, options),
    };
    for (const taken of names) {
      const held = await hold(taken, {}, manager);
      for (const [verb, ask] of Object.entries(verbs)) {
        assert.equal(await ask(), null, verb);
        const { held: rows, pending } = await manager.query();
        assert.deepEqual([rows.map(({ name }) => name), pending], [[taken], []], `${verb} while ${taken} is taken`);
      }
      held.release();
      await held.request;
    }
  }
});

test('they are locked in the order of their code units, whatever the language', async () => {
  const names = ['ä', 'z', 'Z', 'a'];
  const held = await hold('a');
  const several = locks.request(names, (all) => all.length);
  await turns();
  const pending = await Promise.all(names.map(async (name) => (await modesOf(name)).pending.length));
  assert.deepEqual(pending, [0, 0, 1, 1]);
  held.release();
  assert.equal(await several, 4);
});

test('requests for the same names in other orders never wait for each other for ever', async (t) => {
  for (const manager of scopes(t)) {
    let inside = 0;
    const orders = [['a', 'b', 'c'], ['c', 'b', 'a'], ['b', 'c'], ['c', 'a'], ['a']];
    const work = async () => {
      inside += 1;
      assert.ok(inside <= 2, 'a with a, or b with c');
      await undefined;
      inside -= 1;
    };
    await Promise.all(Array.from({ length: 50 }, (_, index) => manager.request(orders[index % 5], work)));
    await allFree(['a', 'b', 'c'], manager);
  }
});

test('when the time is over, or the signal aborts, none is held, from the moment of the rejection', async (t) => {
  for (const manager of scopes(t)) {
    const held = await hold('b', {}, manager);
    await assert.rejects(manager.request(['c', 'a', 'b'], { timeout: 20 }, never), {
      code: 'ERR_LOCK_TIMEOUT',
      message:
        /request\(\) timed out after 20 ms waiting for the named lock 'b'\. It is held now, exclusive, by this thread, for \d+ ms\./,
    });
    await assert.rejects(manager.acquireAsync(['a', 'b'], { timeout: 0 }), { code: 'ERR_LOCK_TIMEOUT' });
    const controller = new AbortController();
    const reason = new Error('the reason');
    const aborted = manager.request(['a', 'b', 'c'], { signal: controller.signal }, never);
    await turns(5);
    assert.equal((await modesOf('b', manager)).pending.length, 1);
    controller.abort(reason);
    await assert.rejects(aborted, reason);
    assert.deepEqual(await modesOf('a', manager), FREE);
    held.release();
    await held.request;
    await allFree(['a', 'b', 'c'], manager);
  }
});

test('an abort at whatever moment before the callback gives all back', async () => {
  const outcomes = new Set();
  for (let moments = 0; moments < 24; moments++) {
    const controller = new AbortController();
    const reason = new Error('the reason');
    let hasRun = false;
    const request = locks.request(['m', 'n'], { signal: controller.signal }, () => {
      hasRun = true;
    });
    for (let moment = 0; moment < moments; moment++) await (moment % 4 === 3 ? turns(1) : undefined);
    const ranBefore = hasRun;
    controller.abort(reason);
    const outcome = await request.catch((error) => error);
    assert.equal(outcome, ranBefore ? undefined : reason, `${moments} moments`);
    assert.equal(hasRun, ranBefore);
    await allFree(['m', 'n']);
    outcomes.add(outcome);
  }
  assert.equal(outcomes.has(undefined), true);
});

test('an abort in the very turn in which the last name is granted gives all back, and none at all is refused too', async () => {
  const [mine, other] = [await hold('last'), await hold('other')];
  const controller = new AbortController();
  const reason = new Error('the reason');
  const several = locks.request(['free', 'last'], { signal: controller.signal }, never);
  await turns();
  // Its callback runs after the grant of the last name, and before what awaits that.
  const aborting = locks.request('other', () => controller.abort(reason));
  mine.release();
  other.release();
  await assert.rejects(several, reason);
  await aborting;
  await allFree(['free', 'last']);
  await assert.rejects(locks.request([], { signal: controller.signal }, never), reason);
});

test('the callback for several names, or for none, never runs before its request has returned', async () => {
  for (const names of [[], ['a'], ['a', 'b']]) {
    let isInside = true;
    const request = locks.request(names, () => isInside);
    isInside = false;
    assert.equal(await request, false, `${names.length} names`);
  }
});

test('one deadline is for all names', async () => {
  const [first, second] = [await hold('d1'), await hold('d2')];
  const late = locks.request(['d1', 'd2'], { timeout: 600_000 }, never);
  await turns();
  // The wait for the first name takes nearly all of its time, by the clock that says how much is left for the second.
  const { now } = clock;
  clock.now = () => now() + 599_000;
  try {
    first.release();
    for (let waiting = 0; waiting === 0; ) ({ length: waiting } = (await modesOf('d2')).pending);
  } finally {
    clock.now = now;
  }
  // Were the deadline of the second name another one, this would come first.
  const between = locks.request('d2', { timeout: 20_000 }, () => 'in time');
  await assert.rejects(Promise.race([late, between]), {
    code: 'ERR_LOCK_TIMEOUT',
    message: /after 600000 ms waiting for the named lock 'd2'/,
  });
  second.release();
  assert.equal(await between, 'in time');
});

test('what several names are refused for, before any is locked', async () => {
  const unsupported = { name: 'NotSupportedError' };
  await assert.rejects(locks.request(['a', 'b'], { steal: true }, never), unsupported);
  await assert.rejects(locks.request(['a', '-b'], never), unsupported);
  await assert.rejects(locks.acquireAsync(['a', Symbol('b')]), TypeError);
  await assert.rejects(locks.request(['a', 'b'], {}), {
    code: 'ERR_INVALID_ARG_TYPE',
    message: /for the named locks 'a', 'b' must be a function/,
  });
  assert.throws(() => blocking.requestSync(['a', 'b'], { mode: 'none' }, never), { code: 'ERR_INVALID_ARG_TYPE' });
  await allFree(['a', 'b']);
});

test('a message has five names, and says how many more there are', async () => {
  const messageOf = (count) =>
    locks.request(Array.from({ length: count }, (_, index) => `${index}`)).catch(({ message }) => message);
  const five = "for the named locks '0', '1', '2', '3', '4'";
  assert.match(await messageOf(5), new RegExp(`${five} must be`));
  assert.match(await messageOf(6), new RegExp(`${five}, and 1 more must be`));
  assert.match(await messageOf(12), new RegExp(`${five}, and 7 more must be`));
});

test('what the callback throws, or rejects with, is passed on, and all are released', async () => {
  const error = new Error('on purpose');
  const fail = () => {
    throw error;
  };
  await assert.rejects(locks.request(['a', 'b'], fail), error);
  await assert.rejects(
    locks.request(['a', 'b'], async () => fail()),
    error,
  );
  assert.throws(() => blocking.requestSync(['a', 'b'], fail), error);
  assert.throws(() => blocking.requestSync(['a', 'b'], async () => {}), {
    code: 'ERR_INVALID_ARG_TYPE',
    message: /the named locks 'a', 'b'/,
  });
  await allFree(['a', 'b']);
});

test('acquire() and acquireAsync() of several names return HeldLocks, which unlock together, once', async () => {
  for (const acquire of [(names) => blocking.acquire(names), (names) => locks.acquireAsync(names)]) {
    const held = await acquire(['q', 'p']);
    assert.ok(held instanceof HeldLocks);
    assert.throws(() => held.locks.pop(), TypeError);
    assert.match(inspect({ held }, { depth: 0 }), /held: \[HeldLocks\]/);
    assert.deepEqual(
      held.locks.map(({ name }) => name),
      ['q', 'p'],
    );
    assert.deepEqual([held.locked, held.abandoned], [true, []]);
    assert.match(
      inspect(held).replaceAll(/\s+/g, ' '),
      /^HeldLocks \{ locked: true, locks: \[ HeldLock 'q' .*HeldLock 'p' /,
    );
    assert.equal(blocking.acquire(['p', 'r'], { ifAvailable: true }), null);
    assert.equal(held.locks[1].unlock(), true);
    assert.deepEqual([held.unlock(), held.locked, held.unlock()], [true, false, false]);
    const others = await acquire(['q', 'p']);
    assert.equal(others.locks[0].unlock(), true);
    assert.deepEqual([others.locked, others.unlock(), others.locked, others.unlock()], [true, true, false, false]);
  }
  const held = await locks.acquireAsync(['p', 'q']);
  held[Symbol.dispose ?? Symbol.for('nodejs.dispose')]();
  await allFree(['p', 'q', 'r']);
  assert.throws(() => new HeldLocks(), TypeError);
});

for (const [stolen, other] of [
  ['s1', 's2'],
  ['s2', 's1'],
]) {
  test(`a theft of ${stolen} of ${stolen} and ${other} rejects the request; ${other} is released when the callback ends`, async () => {
    let release;
    const several = locks.request(['s1', 's2'], () => new Promise((resolve) => (release = resolve)));
    await turns();
    await locks.request(stolen, { steal: true }, (lock) => lock.markConsistent());
    await assert.rejects(several, { name: 'AbortError' });
    assert.deepEqual((await modesOf(other)).held, ['exclusive']);
    release();
    await turns();
    await allFree(['s1', 's2']);
  });
}

/** Asks for names by a verb, in a thread. Returns the error's name and message, and whether its code ran. */
const askInside = async (here, verb, names) => {
  const { locks } = here.sablock;
  let hasRun = false;
  const run = () => {
    hasRun = true;
  };
  try {
    await (verb.startsWith('request') ? locks[verb](names, run) : locks[verb](names));
    return ['no error', hasRun];
  } catch ({ name, message }) {
    return [name, message, hasRun];
  }
};

for (const verb of ['request', 'acquireAsync', 'requestSync', 'acquire']) {
  for (const which of ['first', 'second']) {
    test(
      `${verb} fails if the ${which} name is stolen while the third is waited for: none is held`,
      watched(async (_, threads) => {
        const names = [1, 2, 3].map((number) => `${verb}, ${which}: ${number}`);
        const [first, second, third] = names;
        const held = await hold(third);
        const [actor] = await startActors(threads, 1);
        const outcome = actor.do(askInside, verb, [third, second, first]);
        await pendingFor(threads, third, 1);
        const stolen = which === 'first' ? first : second;
        const thief = await locks.acquireAsync(stolen, { steal: true });
        held.release();
        const message = `The named lock '${stolen}' was stolen: another request took it with { steal: true }.`;
        assert.deepEqual(await outcome, ['AbortError', message, false]);
        assert.equal(thief.unlock(), true);
        await allFree(names);
      }),
    );
  }
}

test(
  'a blocked thread gets all of them, in its turn, and a deadlock of such threads is not possible',
  watched(async (_, threads) => {
    const held = await hold('w2');
    const actors = await startActors(threads, 2);
    const results = actors.map((actor, index) =>
      actor.do((here, index) => {
        const names = index === 0 ? ['w1', 'w2'] : ['w2', 'w1'];
        let times = 0;
        for (let time = 0; time < 200; time++) here.sablock.locks.requestSync(names, (all) => (times += all.length));
        return times;
      }, index),
    );
    await pendingFor(threads, 'w2', 1);
    held.release();
    assert.deepEqual(await Promise.all(results), [400, 400]);
    await allFree(['w1', 'w2']);
  }),
);

for (const scope of ['process', 'machine']) {
  test(
    `a thread that ends while it has some of the names and waits for the next marks none (${scope})`,
    needs('prompt ends', 'termination when busy'),
    watched(async (t, threads) => {
      const options = scope === 'machine' ? { directory: createFolder(t) } : {};
      const manager = new LockManager(options);
      const held = await manager.acquireAsync('e2');
      const [blocked, awaits] = await startActors(threads, 2);
      blocked.do((here, options) => void new here.sablock.LockManager(options).acquire(['e1', 'e2']), options);
      await pendingFor(threads, 'e2', 1, manager);
      awaits.do((here, options) => void new here.sablock.LockManager(options).acquireAsync(['e0', 'e2']), options);
      await pendingFor(threads, 'e2', 2, manager);
      await Promise.all([blocked.terminate(), awaits.terminate()]);
      await Promise.all([blocked.exited, awaits.exited]);
      for (const name of ['e0', 'e1']) {
        assert.equal(await manager.request(name, ({ abandoned }) => abandoned), false, name);
      }
      held.unlock();
      await allFree(['e0', 'e1', 'e2'], manager);
    }),
  );
}

/** Changes that a callback may make to the array that it is given. */
const CHANGES = {
  'takes the last out of': (held) => void held.pop(),
  'takes the first out of': (held) => void held.shift(),
  empties: (held) => {
    held.length = 0;
  },
  'puts something else into': (held) => {
    held[0] = null;
  },
  'adds to': (held) => void held.push(held[0]),
};

for (const [what, change] of Object.entries(CHANGES)) {
  test(`a callback that ${what} its array of locks keeps none of them held`, async (t) => {
    for (const manager of [blocking, new LockManager({ directory: createFolder(t), allowMainThread: true })]) {
      const verbs = {
        request: (names) => manager.request(names, change),
        'request of a promise': (names) => manager.request(names, async (held) => change(held)),
        requestSync: (names) => manager.requestSync(names, change),
      };
      for (const [verb, ask] of Object.entries(verbs)) {
        const names = ['1', '2', '3'].map((name) => `${what}, ${verb}: ${name}`);
        await ask(names);
        await allFree(names, manager);
      }
    }
  });
}
