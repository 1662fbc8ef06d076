// The next holder of a name repairs what an ended thread has left: `onAbandoned`, or a warning, which waits for the callback.

const assert = require('node:assert/strict');
const { AsyncLocalStorage } = require('node:async_hooks');
const { unsubscribe } = require('node:diagnostics_channel');
const { test } = require('node:test');
const { LockManager, locks } = require('../..');
const { thread } = require('../../lib/engine/thread.js');
const { startActors } = require('../helpers/actors.js');
const { subscribe, warningsOf } = require('../helpers/messages.js');
const { abandon, hold, pendingFor, turns } = require('../helpers/names.js');
const { needs } = require('../helpers/runtime.js');
const { watched } = require('../helpers/threads.js');

const blocking = new LockManager({ allowMainThread: true });

/** What is stolen in this thread is told in a microtask. */
const turnOfMicrotasks = async () => {
  for (let count = 0; count < 4; count++) await undefined;
};

/** Messages of warnings about these names; those of an earlier test may come meanwhile. */
const warningsAbout = (names, warnings) =>
  warnings.map(({ message }) => message).filter((text) => names.some((name) => text.includes(`'${name}'`)));

const isMarked = (name) => locks.request(name, ({ abandoned }) => abandoned);

/** A manager that notes what it repairs. */
const repairing = (repair = () => {}) => {
  const repaired = [];
  const onAbandoned = (lock) => {
    repaired.push([lock.name, lock.locked, lock.abandoned]);
    return repair(lock);
  };
  return { repaired, manager: new LockManager({ onAbandoned, allowMainThread: true }) };
};

/** Each verb, with what happens inside. */
const VERBS = {
  request: (manager, name, inside) => manager.request(name, inside),
  'request with a signal': (manager, name, inside) =>
    manager.request(name, { signal: new AbortController().signal }, inside),
  acquireAsync: async (manager, name, inside) => {
    const lock = await manager.acquireAsync(name);
    const result = inside(lock);
    lock.unlock();
    return result;
  },
  requestSync: (manager, name, inside) => manager.requestSync(name, inside),
  acquire: (manager, name, inside) => {
    const lock = manager.acquire(name);
    const result = inside(lock);
    lock.unlock();
    return result;
  },
};

for (const [verb, call] of Object.entries(VERBS)) {
  test(
    `${verb}: onAbandoned is called with the lock held, before its code, in place of the warning; then the lock is consistent`,
    needs('prompt ends'),
    watched(async (t, threads) => {
      const warnings = warningsOf(t, 'SABLOCK_ABANDONED');
      await abandon(threads, 'left');
      const { manager, repaired } = repairing();
      const seen = await call(manager, 'left', (lock) => [lock.abandoned, repaired.length]);
      assert.deepEqual([seen, repaired], [[false, 1], [['left', true, true]]]);
      assert.equal(await isMarked('left'), false);
      await call(manager, 'left', () => {});
      await turns();
      assert.deepEqual([repaired.length, warnings], [1, []]);
    }),
  );

  test(
    `${verb}: what onAbandoned throws is thrown, its code does not run, and the mark stays`,
    needs('prompt ends'),
    watched(async (t, threads) => {
      const warnings = warningsOf(t, 'SABLOCK_ABANDONED');
      await abandon(threads, 'broken');
      const error = new Error('on purpose');
      const { manager } = repairing(() => {
        throw error;
      });
      await assert.rejects(async () => call(manager, 'broken', () => assert.fail('must not run')), error);
      assert.equal(await isMarked('broken'), true);
      const early = repairing((lock) => void lock.unlock());
      await assert.rejects(async () => call(early.manager, 'broken', () => assert.fail('must not run')), {
        code: 'ERR_LOCK_NOT_OWNER',
        message: /onAbandoned\(\) has unlocked it/,
      });
      await locks.request('broken', (lock) => lock.markConsistent());
      await turns();
      assert.deepEqual(warnings, []);
    }),
  );
}

test(
  'onAbandoned may return a promise where the verb awaits, and is refused to where it blocks',
  needs('prompt ends'),
  watched(async (_, threads) => {
    await abandon(threads, 'slowly');
    let isDone = false;
    const { manager, repaired } = repairing(async () => {
      await turns();
      isDone = true;
    });
    assert.deepEqual(await manager.request('slowly', (lock) => [isDone, lock.abandoned]), [true, false]);
    await abandon(threads, 'slowly', 'fails');
    const lock = await manager.acquireAsync('slowly');
    assert.deepEqual([lock.abandoned, repaired.length], [false, 2]);
    lock.unlock();
    const error = new Error('on purpose');
    const failing = repairing(() => Promise.reject(error));
    await assert.rejects(
      failing.manager.request('fails', () => {}),
      error,
    );
    for (const block of [() => manager.acquire('fails'), () => manager.requestSync('fails', () => {})]) {
      assert.throws(block, { code: 'ERR_INVALID_ARG_TYPE', message: /onAbandoned/ });
    }
    assert.equal(await isMarked('fails'), true);
    await locks.request('fails', (held) => held.markConsistent());
  }),
);

test(
  'onAbandoned may return a promise whose own then throws: it is awaited',
  needs('prompt ends'),
  watched(async (_, threads) => {
    await abandon(threads, 'own then');
    const then = () => {
      throw new Error('on purpose');
    };
    const { manager } = repairing(() => Object.assign(Promise.resolve(), { then }));
    assert.equal(await manager.request('own then', ({ abandoned }) => abandoned), false);
  }),
);

test(
  'a shared holder calls no onAbandoned, nor is it warned; the next exclusive one repairs',
  needs('prompt ends'),
  watched(async (t, threads) => {
    const warnings = warningsOf(t, 'SABLOCK_ABANDONED');
    await abandon(threads, 'shared');
    const { manager, repaired } = repairing();
    assert.equal(await manager.request('shared', { mode: 'shared' }, ({ abandoned }) => abandoned), true);
    assert.equal(await manager.request('shared', ({ abandoned }) => abandoned), false);
    await turns();
    assert.deepEqual([repaired.length, warnings], [1, []]);
  }),
);

test(
  'onAbandoned is called for a request that waited, in its asynchronous context',
  needs('prompt ends'),
  watched(async (_, threads) => {
    const [doomed] = await startActors(threads, 1);
    await doomed.do(async (here) => {
      here.kept = await here.sablock.locks.acquireAsync('waited for');
    });
    const context = new AsyncLocalStorage();
    const { manager, repaired } = repairing(() => assert.equal(context.getStore(), 'mine'));
    const request = context.run('mine', () => manager.request('waited for', ({ abandoned }) => abandoned));
    await pendingFor(threads, 'waited for', 1);
    await doomed.terminate();
    assert.equal(await request, false);
    assert.equal(repaired.length, 1);
  }),
);

test('what a thief has stolen is repaired too', async () => {
  const held = await hold('stolen');
  const { manager, repaired } = repairing();
  assert.equal(await manager.request('stolen', { steal: true }, ({ abandoned }) => abandoned), false);
  await assert.rejects(held.request, { name: 'AbortError' });
  assert.equal(repaired.length, 1);
});

test(
  'of several names each that is marked is repaired; if one cannot be, none is held',
  needs('prompt ends'),
  watched(async (_, threads) => {
    await abandon(threads, 'r3', 'r1');
    const { manager, repaired } = repairing();
    assert.deepEqual(await manager.request(['r3', 'r2', 'r1'], (all) => all.map(({ abandoned }) => abandoned)), [
      false,
      false,
      false,
    ]);
    assert.deepEqual(
      repaired.map(([name]) => name),
      ['r3', 'r1'],
    );
    const error = new Error('on purpose');
    const asks = {
      request: (fails, names) => fails.request(names, () => {}),
      acquireAsync: (fails, names) => fails.acquireAsync(names),
      requestSync: async (fails, names) => fails.requestSync(names, () => {}),
      acquire: async (fails, names) => fails.acquire(names),
    };
    const rows = Object.entries(asks).flatMap(([verb, ask]) =>
      [0, 1, 2].map((failing) => {
        const what = `${verb}, of which ${failing} fails`;
        return { what, ask, names: [0, 1, 2].map((index) => `${what}: ${index}`), failing };
      }),
    );
    await abandon(threads, ...rows.flatMap(({ names }) => names));
    for (const { what, ask, names, failing } of rows) {
      const { manager: fails } = repairing((lock) => {
        if (lock.name === names[failing]) throw error;
      });
      await assert.rejects(async () => ask(fails, names), error, what);
      assert.deepEqual(await locks.query(), { held: [], pending: [] }, what);
      // The names before it are repaired.
      const rest = repairing();
      await rest.manager.request(names, () => {});
      const marked = rest.repaired.map(([name]) => name);
      assert.deepEqual(marked, names.slice(failing), what);
    }
  }),
);

/** The things that a callback may do about the mark, and whether it is warned. */
const CALLBACKS = {
  'marks it as consistent at once': [(lock) => lock.markConsistent(), false],
  'marks it in its first turn, awaiting': [
    async (lock) => {
      await undefined;
      lock.markConsistent();
    },
    false,
  ],
  'marks it and throws': [
    (lock) => {
      lock.markConsistent();
      throw new Error('on purpose');
    },
    false,
  ],
  'does not look': [() => 7, true],
  throws: [
    () => {
      throw new Error('on purpose');
    },
    true,
  ],
  'marks it later': [
    async (lock) => {
      await turns();
      lock.markConsistent();
    },
    true,
  ],
};

for (const [what, [callback, isWarned]] of Object.entries(CALLBACKS)) {
  test(
    `a callback that ${what} is ${isWarned ? 'warned, once' : 'not warned'}`,
    needs('prompt ends'),
    watched(async (t, threads) => {
      const warnings = warningsOf(t, 'SABLOCK_ABANDONED');
      const ended = await abandon(threads, 'turn', 'other');
      await locks.request('turn', callback).catch(() => {});
      await locks.request('turn', (lock) => lock.markConsistent());
      await turns();
      const message = `Thread ${ended} ended while it held the named lock 'turn', which now belongs to this thread.`;
      assert.deepEqual(
        warnings.map(({ name, message: text }) => [name, text.slice(0, message.length)]),
        isWarned ? [['AbandonedLockWarning', message]] : [],
      );
      const manager = new LockManager({ allowMainThread: true });
      if (what !== 'marks it later' && !what.includes('awaiting')) {
        await abandon(threads, 'turn');
        try {
          manager.requestSync('turn', callback);
        } catch {}
        await locks.request('turn', (lock) => lock.markConsistent());
        await turns();
        assert.equal(warnings.length, isWarned ? 2 : 0);
      }
    }),
  );
}

test(
  'a request that is aborted between the grant and its callback leaves the report to the next',
  needs('prompt ends'),
  watched(async (t, threads) => {
    const told = [];
    const note = ({ name }) => told.push(name);
    subscribe('sablock:abandoned', note);
    t.after(() => unsubscribe('sablock:abandoned', note));
    await abandon(threads, 'passed on');
    const controller = new AbortController();
    const aborted = locks.request('passed on', { signal: controller.signal }, () => assert.fail('must not run'));
    controller.abort();
    await assert.rejects(aborted, { name: 'AbortError' });
    assert.equal(await isMarked('passed on'), true);
    assert.deepEqual(told, ['passed on']);
    // A set that cannot be had leaves it too.
    await abandon(threads, 'set 1');
    const held = await hold('set 2');
    await assert.rejects(
      locks.request(['set 1', 'set 2'], { timeout: 5 }, () => {}),
      { code: 'ERR_LOCK_TIMEOUT' },
    );
    assert.deepEqual(told, ['passed on']);
    assert.equal(await isMarked('set 1'), true);
    assert.deepEqual(told, ['passed on', 'set 1']);
    held.release();
    for (const name of ['passed on', 'set 1']) await locks.request(name, (lock) => lock.markConsistent());
  }),
);

for (const verb of ['request', 'acquireAsync', 'requestSync', 'acquire']) {
  test(
    `${verb}: who shares a marked name without onAbandoned is warned that it reads, and the mark stays`,
    needs('prompt ends'),
    watched(async (t, threads) => {
      const warnings = warningsOf(t, 'SABLOCK_ABANDONED');
      // It leaves no warning out.
      thread.warnings = undefined;
      const name = `read by ${verb}`;
      const ended = await abandon(threads, name);
      const held = await blocking[verb](name, { mode: 'shared' }, ...(/^request/.test(verb) ? [() => {}] : []));
      held?.unlock();
      await turns();
      const message = `Thread ${ended} ended while it held the named lock '${name}', which this thread now reads. `;
      assert.deepEqual(
        warningsAbout([name], warnings).map((text) => text.slice(0, message.length)),
        [message],
      );
      assert.equal(await locks.request(name, (lock) => lock.abandoned && lock.markConsistent() === undefined), true);
    }),
  );
}

for (const verb of ['request', 'requestSync']) {
  test(
    `${verb}: a callback that marks one of several names as consistent is warned of the others`,
    needs('prompt ends'),
    watched(async (t, threads) => {
      const names = ['a', 'b', 'c'].map((name) => `${verb}, some: ${name}`);
      for (const repaired of names) {
        const warnings = warningsOf(t, 'SABLOCK_ABANDONED');
        thread.warnings = undefined;
        await abandon(threads, ...names);
        await blocking[verb](names, (all) => void all.find(({ name }) => name === repaired).markConsistent());
        await turns();
        assert.deepEqual(
          warningsAbout(names, warnings).map((text) => /'(.*)'/.exec(text)[1]),
          names.filter((name) => name !== repaired),
        );
        await locks.request(names, (all) => all.forEach((lock) => void lock.markConsistent()));
      }
    }),
  );
}

for (const verb of ['request', 'acquireAsync']) {
  test(
    `${verb} of several names awaits onAbandoned of one after the other; if a later one is rejected, none is held`,
    needs('prompt ends'),
    watched(async (_, threads) => {
      const names = ['a', 'b', 'c'].map((name) => `${verb}, slowly: ${name}`);
      for (const failing of [undefined, ...names]) {
        await abandon(threads, ...names);
        const steps = [];
        const { manager } = repairing(async ({ name }) => {
          steps.push(`${name} begins`);
          await turns();
          if (name === failing) throw new Error('on purpose');
          steps.push(`${name} ends`);
        });
        const expected = names.flatMap((name) => [`${name} begins`, `${name} ends`]);
        const asked = manager[verb](names, ...(verb === 'request' ? [(all) => all.map((lock) => lock.abandoned)] : []));
        if (failing === undefined) {
          const held = await asked;
          assert.deepEqual(verb === 'request' ? held : held.abandoned, verb === 'request' ? [false, false, false] : []);
          if (verb === 'acquireAsync') held.unlock();
          assert.deepEqual(steps, expected);
        } else {
          await assert.rejects(asked, /on purpose/);
          assert.deepEqual(await locks.query(), { held: [], pending: [] });
          assert.deepEqual(steps, expected.slice(0, expected.indexOf(`${failing} ends`)));
          for (const name of names) assert.equal(await isMarked(name), name >= failing, name);
        }
        await locks.request(names, (all) => all.forEach((lock) => void lock.markConsistent()));
      }
    }),
  );
}

test('an onAbandoned that is none is refused', () => {
  for (const onAbandoned of [null, 'repair', {}]) {
    assert.throws(() => new LockManager({ onAbandoned }), {
      code: 'ERR_INVALID_ARG_TYPE',
      message: /options\.onAbandoned/,
    });
  }
});

/** Of these names A was free; the others are marked. The last tests: each end that is told of is a warning, and there are many. */
const LISTS = ['AAB', 'ABA', 'BAA', 'BAB', 'ABB', 'ABAC', 'CAAB', 'ACCBA'];

for (const isRepaired of [true, false]) {
  test(
    `of names that are named several times each that is marked is ${isRepaired ? 'repaired' : 'told of'} once, by every verb`,
    needs('prompt ends'),
    watched(async (t, threads) => {
      const told = [];
      const note = ({ name, ownerThreadId }) => told.push([name, ownerThreadId]);
      subscribe('sablock:abandoned', note);
      t.after(() => unsubscribe('sablock:abandoned', note));
      const sets = Object.keys(VERBS).flatMap((verb) =>
        LISTS.map((list) => {
          const names = Array.from(list, (letter) => `${verb} of ${list}: ${letter}`);
          return { verb, names, marked: [...new Set(names)].filter((name) => !name.endsWith('A')) };
        }),
      );
      const ended = await abandon(threads, ...sets.flatMap(({ marked }) => marked));
      const { manager, repaired } = isRepaired ? repairing() : { manager: blocking, repaired: [] };
      for (const { verb, names, marked } of sets) {
        const inside = (held) => {
          const all = held.locks ?? held;
          const left = all.filter(({ abandoned }) => abandoned);
          for (const lock of left) lock.markConsistent();
          return [all.length, left.length];
        };
        const expected = [new Set(names).size, isRepaired ? 0 : marked.length];
        assert.deepEqual(await VERBS[verb](manager, names, inside), expected, names[0]);
        const ends = marked.map((name) => [name, ended]);
        assert.deepEqual(told.splice(0), ends, names[0]);
        assert.deepEqual(
          repaired.splice(0).map(([name]) => name),
          isRepaired ? marked : [],
        );
        await VERBS[verb](manager, names, inside);
        assert.deepEqual([told, repaired], [[], []], names[0]);
      }
    }),
  );
}

test(
  'a marked name that is stolen before its request is aborted marks no other name whose request is aborted with it',
  needs('prompt ends'),
  watched(async (t, threads) => {
    warningsOf(t, 'SABLOCK_ABANDONED');
    await abandon(threads, 'marked and stolen');
    const controller = new AbortController();
    const requests = ['marked and stolen', 'not marked'].map((name) =>
      locks.acquireAsync(name, { signal: controller.signal }),
    );
    const thief = locks.request('marked and stolen', { steal: true }, (lock) => lock.markConsistent());
    await turnOfMicrotasks();
    controller.abort();
    for (const request of requests) await assert.rejects(request, { name: 'AbortError' });
    await thief;
    assert.equal(await isMarked('not marked'), false);
  }),
);

for (const verb of ['request', 'acquireAsync', 'requestSync', 'acquire']) {
  test(
    `${verb}: a lock that is stolen while onAbandoned blocks its thread fails as stolen, not as one that is not held`,
    needs('prompt ends'),
    watched(async (_, threads) => {
      await abandon(threads, 'repaired too long');
      const [victim] = await startActors(threads, 1);
      const [INSIDE, GO] = [0, 1];
      const failed = victim.do(
        async (here, verb, inside, go) => {
          const onAbandoned = () => {
            here.raise(inside);
            here.waitForFlag(go);
          };
          const manager = new here.sablock.LockManager({ onAbandoned });
          try {
            await manager[verb]('repaired too long', ...(/^request/.test(verb) ? [() => {}] : []));
          } catch ({ name, message }) {
            return [name, /stolen/.test(message)];
          }
          return 'nothing was thrown';
        },
        verb,
        INSIDE,
        GO,
      );
      await threads.raised(INSIDE);
      await locks.request('repaired too long', { steal: true }, (lock) => {
        lock.markConsistent();
        threads.raise(GO);
      });
      assert.deepEqual(await failed, ['AbortError', true]);
    }),
  );
}
