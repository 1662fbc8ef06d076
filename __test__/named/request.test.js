// The arguments of request(), step by step, and what its callback and its promise do.

const assert = require('node:assert/strict');
const { AsyncLocalStorage } = require('node:async_hooks');
const { getEventListeners } = require('node:events');
const { test } = require('node:test');
const sablock = require('../..');
const { createFolder } = require('../helpers/folder.js');
const { deferred, hold, modesOf, turns } = require('../helpers/names.js');
const { watched } = require('../helpers/threads.js');

const { HeldLock, LockManager, locks } = sablock;

const invalid = { code: 'ERR_INVALID_ARG_TYPE', name: 'TypeError' };
const unsupported = { name: 'NotSupportedError' };
const never = () => assert.fail('the callback must not run');

test('locks is one LockManager, whose request() takes two arguments at least', () => {
  assert.ok(locks instanceof LockManager);
  assert.equal(sablock.locks, locks);
  assert.equal(locks.request.length, 2);
});

test('a request without a callback is rejected, and nothing is asked for', async () => {
  await assert.rejects(locks.request(), invalid);
  await assert.rejects(locks.request('no callback'), invalid);
  for (const value of [undefined, null, 123, 'text', [], {}, Promise.resolve()]) {
    await assert.rejects(locks.request('no callback', value), invalid);
    await assert.rejects(locks.request('no callback', {}, value), invalid);
  }
  assert.deepEqual(await modesOf('no callback'), { held: [], pending: [] });
});

test('names of any length are two if they differ in their last letter', async () => {
  for (let length = 1; length < 300; length++) {
    const [name, other] = ['x', 'y'].map((last) => last.padStart(length, 'a'));
    const seen = await locks.request(name, () =>
      locks.request(other, { ifAvailable: true }, async (lock) => {
        const { held } = await locks.query();
        return [lock !== null, held.map((row) => row.name)];
      }),
    );
    assert.deepEqual(seen, [true, [name, other]], `${length} letters`);
  }
});

test('what is no manager cannot be asked: the promise is rejected', async () => {
  await assert.rejects(locks.request.call({}, 'name', never), TypeError);
});

test('options that are no object, a mode that is none, and a signal that is none are rejected', async () => {
  for (const options of [true, 1, 'shared', Symbol('options'), never]) {
    await assert.rejects(locks.request('bad options', options, never), invalid);
    await assert.rejects(locks.acquireAsync('bad options', options), invalid);
  }
  for (const mode of ['foo', null, '', 'Shared', 1]) {
    await assert.rejects(locks.request('bad options', { mode }, never), invalid);
  }
  for (const signal of ['text', 1, false, {}, () => {}, null]) {
    await assert.rejects(locks.request('bad options', { signal }, never), invalid);
  }
  for (const timeout of ['1', null, {}, 1n]) {
    await assert.rejects(locks.request('bad options', { timeout }, never), invalid);
  }
  for (const ref of ['true', null, 0]) await assert.rejects(locks.request('bad options', { ref }, never), invalid);
  await assert.rejects(locks.request(Symbol('name'), never), TypeError);
});

test('options are read once each, in the order of their names', async () => {
  const read = [];
  const options = new Proxy({}, { get: (_, key) => void read.push(key) });
  await locks.request('order of options', options, () => {});
  assert.deepEqual(read, ['fence', 'ifAvailable', 'mode', 'ref', 'signal', 'steal', 'timeout']);
});

test('null and undefined are no options; a mode may be an object that says it', async () => {
  for (const options of [null, undefined]) {
    assert.equal(await locks.request('defaults', options, ({ mode }) => mode), 'exclusive');
  }
  const mode = { toString: () => 'shared' };
  assert.equal(await locks.request('defaults', { mode }, (lock) => lock.mode), 'shared');
});

test('ifAvailable and steal are what Boolean() makes of them', async () => {
  const held = await hold('booleans');
  for (const ifAvailable of [1, 'no', {}, Symbol('yes')]) {
    assert.equal(await locks.request('booleans', { ifAvailable }, (lock) => lock), null);
  }
  for (const none of [0, '', null, Number.NaN]) {
    const options = { ifAvailable: none, steal: none, timeout: 1 };
    await assert.rejects(locks.request('booleans', options, never), { code: 'ERR_LOCK_TIMEOUT' });
  }
  for (const steal of [1, 'no', {}]) {
    assert.equal(await locks.request('booleans', { steal }, (lock) => lock.markConsistent() ?? lock.abandoned), false);
  }
  await assert.rejects(held.request, { name: 'AbortError' });
});

test('names that begin with a hyphen are refused, before the other options are looked at', async () => {
  for (const name of ['-', '-x']) {
    await assert.rejects(locks.request(name, never), unsupported);
    await assert.rejects(locks.request(name, { signal: AbortSignal.abort(new Error('later')) }, never), unsupported);
  }
  assert.equal(await locks.request('x-', ({ name }) => name), 'x-');
});

test('options that exclude each other are refused in the order of the specification', async () => {
  const { signal } = new AbortController();
  for (const options of [
    { steal: true, ifAvailable: true },
    { steal: true, mode: 'shared' },
    { signal, steal: true },
    { signal, ifAvailable: true },
    { signal: AbortSignal.abort('aborted'), steal: true },
  ]) {
    await assert.rejects(locks.request('exclusive options', options, never), unsupported);
  }
  assert.ok((await locks.request('-', never).catch((error) => error)) instanceof DOMException);
});

test('names are UTF-16: nothing is mangled, and different ones are different locks', async () => {
  const names = [
    '',
    'a\0b',
    '\ud800',
    '\udc00',
    '\udc00\ud800',
    '\uffff',
    '\ufffd',
    '\u00e9',
    'e\u0301',
    'x'.repeat(70_000),
  ];
  const held = await Promise.all(names.map((name) => hold(name, { ifAvailable: true })));
  assert.deepEqual(
    held.map(({ lock }) => lock.name),
    names,
  );
  const { held: rows } = await locks.query();
  for (const name of names) assert.equal(rows.filter((row) => row.name === name).length, 1);
  for (const { release } of held) release();
  await Promise.all(held.map(({ request }) => request));
});

test('what is no string is a name as String() makes it', async () => {
  for (const name of [1, null, new Set(['a', 'b']), { toString: () => 'object' }]) {
    assert.equal(await locks.request(name, (lock) => lock.name), `${name}`);
  }
  const held = await hold('7');
  assert.equal(await locks.request(7, { ifAvailable: true }, (lock) => lock), null);
  held.release();
  await held.request;
});

test('the callback never runs synchronously, whether the name is free or not', async () => {
  const order = [];
  const first = locks.request('order', () => order.push('first'));
  const second = locks.request('order', () => order.push('second'));
  const none = locks.request('order', { ifAvailable: true }, (lock) => order.push(lock));
  order.push('asked');
  await Promise.all([first, second, none]);
  assert.deepEqual(order, ['asked', 'first', null, 'second']);
});

test('the promise is fulfilled with what the callback returns, awaited, after the lock is released', async () => {
  assert.equal(await locks.request('result', () => 7), 7);
  assert.deepEqual(await locks.request('result', () => ({ plain: true })), { plain: true });
  const end = deferred();
  const order = [];
  const request = locks.request('result', () => end.promise).then(() => order.push('released'));
  end.promise.then(() => order.push('ended'));
  await turns();
  assert.deepEqual(await modesOf('result'), { held: ['exclusive'], pending: [] });
  end.resolve();
  await request;
  assert.deepEqual(order, ['ended', 'released']);
  assert.deepEqual(await modesOf('result'), { held: [], pending: [] });
});

test('a thenable result is awaited, by one look at its then', async () => {
  let looks = 0;
  const thenable = {
    // biome-ignore lint/suspicious/noThenProperty: it is the subject.
    get then() {
      looks += 1;
      return (resolve) => setImmediate(resolve, 'settled');
    },
  };
  const request = locks.request('thenable', () => thenable);
  await turns(1);
  assert.equal(await request, 'settled');
  assert.equal(looks, 1);
});

const refuse = () => {
  throw new Error('on purpose');
};

const withThen = (promise, then) => Object.assign(promise, { then });

/** Results of a callback that do not let themselves be awaited in the usual way, and the outcome: the value, or an error. */
const RESULTS = {
  'a promise whose own then throws': [() => withThen(Promise.resolve(7), refuse), 7],
  'a promise whose own then does nothing': [() => withThen(Promise.resolve(7), () => {}), 7],
  'a rejected promise whose own then throws': [() => withThen(Promise.reject(new Error('on purpose')), refuse)],
  'a promise whose constructor cannot be read': [
    () => Object.defineProperty(Promise.resolve(7), 'constructor', { get: refuse }),
  ],
  // biome-ignore lint/suspicious/noThenProperty: it is the subject.
  'an object whose then throws': [() => ({ then: refuse })],
  'an object whose then cannot be read': [() => Object.defineProperty({}, 'then', { get: refuse })],
};

for (const [what, [make, value]] of Object.entries(RESULTS)) {
  test(
    `a callback that returns ${what} ends its request, and the names are free`,
    watched(async () => {
      for (const names of [what, [`${what}, 1`, `${what}, 2`]]) {
        const request = locks.request(names, make);
        if (value === undefined) await assert.rejects(request, /on purpose/);
        else assert.equal(await request, value);
        for (const name of [names].flat()) assert.deepEqual(await modesOf(name), { held: [], pending: [] });
      }
    }, 5000),
  );
}

test('what the callback throws, or rejects with, rejects the promise as it is, and releases', async () => {
  // biome-ignore lint/suspicious/noThenProperty: it is the subject.
  const thenable = { then: () => assert.fail('what is thrown is not awaited') };
  for (const fail of [
    () => {
      throw thenable;
    },
    async () => {
      throw thenable;
    },
  ]) {
    const thrown = await locks.request('fails', fail).then(never, (error) => ({ error }));
    assert.equal(thrown.error, thenable);
    assert.deepEqual(await modesOf('fails'), { held: [], pending: [] });
  }
});

test('after a callback that threw, the next in line goes on', async () => {
  const failed = locks.request('fails, next', () => {
    throw new Error('on purpose');
  });
  const next = locks.request('fails, next', () => 'went on');
  await assert.rejects(failed, /on purpose/);
  assert.equal(await next, 'went on');
});

test('the promise waits for the result though the callback unlocks early', async () => {
  const end = deferred();
  let isDone = false;
  const request = locks
    .request('early', (lock) => {
      assert.equal(lock.unlock(), true);
      assert.equal(lock.unlock(), false);
      return end.promise;
    })
    .finally(() => {
      isDone = true;
    });
  await turns();
  assert.equal(await locks.request('early', { ifAvailable: true }, (lock) => lock.locked), true);
  assert.equal(isDone, false);
  end.resolve('result');
  assert.equal(await request, 'result');
});

test('the callback keeps the AsyncLocalStorage of its request, granted at once or later', async () => {
  const storage = new AsyncLocalStorage();
  const held = await hold('context');
  const waiting = storage.run('later', () => locks.request('context', () => storage.getStore()));
  const { signal } = new AbortController();
  const aborting = storage.run('aborting', () => locks.request('context', { signal }, () => storage.getStore()));
  const none = storage.run('none', () => locks.request('context', { ifAvailable: true }, () => storage.getStore()));
  storage.run('the releasing one', () => held.release());
  assert.deepEqual(await Promise.all([waiting, aborting, none]), ['later', 'aborting', 'none']);
  assert.equal(await storage.run('at once', () => locks.request('context', () => storage.getStore())), 'at once');
  const free = storage.run('signal', () => locks.request('context', { signal }, () => storage.getStore()));
  assert.equal(await free, 'signal');
});

test('the callback keeps the AsyncLocalStorage of its request in the scope machine, and for several names, too', async (t) => {
  const storage = new AsyncLocalStorage();
  for (const manager of [locks, new LockManager({ directory: createFolder(t) })]) {
    const { signal } = new AbortController();
    for (const options of [{}, { signal }, { timeout: 60_000 }]) {
      for (const name of ['first', ['first', 'last'], ['none', 'first']]) {
        const held = await hold('first', {}, manager);
        const waiting = storage.run('waiting', () => manager.request(name, options, () => storage.getStore()));
        await turns();
        storage.run('the releasing one', () => held.release());
        assert.equal(await waiting, 'waiting', `${name}`);
        const free = storage.run('free', () => manager.request(name, options, () => storage.getStore()));
        assert.equal(await free, 'free', `${name}`);
      }
    }
  }
});

test('the signal of a lock that was unlocked never aborts, whoever loses the name later', async () => {
  const lock = await locks.acquireAsync('over');
  const { signal } = lock;
  const unread = await locks.acquireAsync('over too');
  for (const each of [lock, unread]) each.unlock();
  for (const name of ['over', 'over too']) {
    const next = await locks.acquireAsync(name);
    await locks.request(name, { steal: true }, (thief) => thief.markConsistent());
    assert.deepEqual([next.locked, next.signal.aborted], [false, true]);
  }
  assert.deepEqual([signal.aborted, lock.signal, unread.signal.aborted], [false, signal, false]);
});

test('the lock of the callback is a HeldLock, and nobody else can make one', async () => {
  await locks.request('class', (lock) => assert.ok(lock instanceof HeldLock));
  assert.throws(() => new HeldLock(), { name: 'TypeError', message: /Illegal constructor/ });
});

test('a manager of the process has the same locks as every other', async () => {
  for (const manager of [new LockManager(), new LockManager({ scope: 'process' })]) {
    const held = await hold('one for all', {}, manager);
    assert.equal(await locks.request('one for all', { ifAvailable: true }, (lock) => lock), null);
    held.release();
    await held.request;
  }
});

test('bad options of a manager are refused', () => {
  for (const options of [
    null,
    1,
    'process',
    { scope: 'thread' },
    { scope: null },
    { directory: 7 },
    { directory: '' },
  ]) {
    assert.throws(() => new LockManager(options), invalid);
  }
  assert.throws(() => new LockManager({ allowMainThread: 1 }), invalid);
  assert.throws(() => new LockManager({ scope: 'process', directory: '/tmp' }), invalid);
});

test('what is for stores is refused, or does nothing, where there is none', async () => {
  const manager = new LockManager();
  for (const verb of ['check', 'stats']) {
    const message = `${verb}() is for a LockManager with a store.`;
    await assert.rejects(manager[verb](), { name: 'NotSupportedError', message });
    await assert.rejects(manager[verb].call({}), {
      code: 'ERR_INVALID_THIS',
      message: new RegExp(`^${verb}\\(\\) was`),
    });
  }
  for (const options of [null, 'wait', { wait: 1 }]) await assert.rejects(manager.close(options), invalid);
  for (const options of [undefined, {}, { wait: true }]) assert.equal(await manager.close(options), undefined);
  await manager[Symbol.asyncDispose ?? Symbol.for('nodejs.asyncDispose')]();
  assert.equal(await manager.request('goes on', () => 'went on'), 'went on');
});

test('a pending request does not disturb the errors of other locks', async () => {
  const held = await hold('beside');
  const waiting = locks.request('beside', () => 'went on');
  const mutex = new sablock.Mutex(new SharedArrayBuffer(4));
  const pending = mutex.tryLock() && mutex.lockAsync();
  mutex.unlock();
  await pending;
  mutex.unlock();
  assert.throws(() => mutex.unlock(), { code: 'ERR_LOCK_NOT_OWNER' });
  held.release();
  assert.equal(await waiting, 'went on');
});

test('a manager cannot be cloned', { skip: !require('node:worker_threads').markAsUncloneable }, () => {
  assert.throws(() => structuredClone(locks), { name: 'DataCloneError' });
});

test(
  'ten thousand requests for one name are served in their order',
  watched(async () => {
    const served = [];
    const requests = Array.from({ length: 10_000 }, (_, index) => locks.request('long line', () => served.push(index)));
    await Promise.all(requests);
    assert.deepEqual(
      served,
      served.map((_, index) => index),
    );
    assert.equal(served.length, 10_000);
  }),
);

test(
  'fifty thousand requests in a thousand lines take time in proportion to their number',
  watched(async () => {
    // With a copy of the table of waits for each of them this would take minutes.
    const last = new Map();
    let served = 0;
    const requests = Array.from({ length: 50_000 }, (_, index) =>
      locks.request(`line ${index % 1_000}`, ({ name }) => {
        assert.ok(index > (last.get(name) ?? -1));
        last.set(name, index);
        served += 1;
      }),
    );
    await Promise.all(requests);
    assert.equal(served, 50_000);
    assert.deepEqual(await locks.query(), { held: [], pending: [] });
  }),
);

test('a free name with a signal: nobody listens to that, and until the end of the turn it aborts', async () => {
  for (const manager of [locks, new LockManager({ scope: 'machine' })]) {
    for (const name of [`free ${process.pid}`, [`free ${process.pid}`, `too ${process.pid}`]]) {
      const controller = new AbortController();
      const { signal } = controller;
      assert.equal(await manager.request(name, { signal }, () => 'done'), 'done');
      const refused = manager.request(name, { signal }, never);
      assert.equal(getEventListeners(signal, 'abort').length, 0);
      // In a microtask behind those of a request without a signal.
      for (let hop = 0; hop < 10; hop++) await null;
      controller.abort(new Error('on purpose'));
      await assert.rejects(refused, { message: 'on purpose' });
      assert.equal(await manager.request(name, { ifAvailable: true }, (lock) => lock !== null), true);
    }
  }
});
