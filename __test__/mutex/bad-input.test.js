const assert = require('node:assert/strict');
const { test } = require('node:test');
const { inspect } = require('node:util');
const vm = require('node:vm');
const { Condition, Mutex, waitAsync } = require('../..');
const expected = require('../helpers/expected.js');
const { BYTES, createMutex, OFFSET } = require('../helpers/memory.js');
const { watched } = require('../helpers/threads.js');

const named = (value) => inspect(value);

const fakeBuffer = Object.create(SharedArrayBuffer.prototype);
const NO_SHARED_BUFFERS = [
  ['undefined', undefined],
  ['null', null],
  ['a number', 16],
  ['a string', 'buffer'],
  ['an object', {}],
  ['an ArrayBuffer', new ArrayBuffer(16)],
  ['a typed array over shared memory', new Int32Array(new SharedArrayBuffer(16))],
  ['a DataView over shared memory', new DataView(new SharedArrayBuffer(16))],
  ['a Buffer', Buffer.alloc(16)],
  ['an object that only inherits from SharedArrayBuffer', fakeBuffer],
  ['a WebAssembly.Memory', new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true })],
];

for (const [kind, buffer] of NO_SHARED_BUFFERS) {
  test(`new Mutex() of ${kind} throws ERR_INVALID_ARG_TYPE`, () => {
    assert.throws(() => new Mutex(buffer, 0), expected.invalidArgType());
    assert.throws(() => new Mutex(buffer, 0), TypeError);
  });
}

for (const [kind, byteOffset] of [
  ["'0'", '0'],
  ['4n', 4n],
  ['null', null],
  ['true', true],
  ['an object', {}],
  ['a symbol', Symbol('offset')],
]) {
  test(`an offset that is ${kind} throws ERR_INVALID_ARG_TYPE`, () => {
    assert.throws(() => new Mutex(new SharedArrayBuffer(BYTES), byteOffset), expected.invalidArgType());
  });
}

for (const byteOffset of [
  -4,
  2,
  1.5,
  NaN,
  2 ** 53,
  2 ** 32,
  2 ** 31,
  Infinity,
  -Infinity,
  BYTES,
  BYTES - 2,
  BYTES + 4,
  -0.5,
]) {
  test(`an offset of ${byteOffset} in ${BYTES} bytes throws ERR_OUT_OF_RANGE and names it`, () => {
    const buffer = new SharedArrayBuffer(BYTES);
    assert.throws(() => new Mutex(buffer, byteOffset), expected.outOfRange());
    assert.throws(() => new Mutex(buffer, byteOffset), RangeError);
    assert.throws(
      () => new Mutex(buffer, byteOffset),
      (error) => error.message.includes(String(byteOffset)),
    );
  });
}

for (const byteLength of [0, 1, 3]) {
  test(`a buffer of ${byteLength} bytes has no room for a mutex: ERR_OUT_OF_RANGE`, () => {
    assert.throws(() => new Mutex(new SharedArrayBuffer(byteLength)), expected.outOfRange());
  });
}

test('four bytes at the end of an odd-sized buffer that are not all inside throw ERR_OUT_OF_RANGE', () => {
  assert.throws(() => new Mutex(new SharedArrayBuffer(11), 8), expected.outOfRange());
  assert.equal(new Mutex(new SharedArrayBuffer(11), 4).tryLock(), true);
});

test('an offset beyond the present end of a growable buffer throws ERR_OUT_OF_RANGE', () => {
  const buffer = new SharedArrayBuffer(8, { maxByteLength: 64 });
  assert.throws(() => new Mutex(buffer, 8), expected.outOfRange());
});

test('an offset left out is 0', () => {
  const buffer = new SharedArrayBuffer(8);
  assert.equal(new Mutex(buffer).byteOffset, 0);
  assert.equal(new Mutex(buffer, undefined).byteOffset, 0);
});

test('a refused constructor leaves the memory as it was', () => {
  const buffer = new SharedArrayBuffer(8);
  const bytes = new Uint8Array(buffer).fill(7);
  for (const byteOffset of [2, 8, '0', null]) assert.throws(() => new Mutex(buffer, byteOffset));
  assert.deepEqual([...bytes], Array(8).fill(7));
});

test('Mutex() without new throws a TypeError', () => {
  assert.throws(() => Mutex(new SharedArrayBuffer(4)), TypeError);
});

test('the buffer of a vm context is accepted', async () => {
  const buffer = vm.runInNewContext('new SharedArrayBuffer(16)');
  assert.equal(buffer instanceof SharedArrayBuffer, false);
  const mutex = new Mutex(buffer, 8);
  assert.equal(mutex.buffer, buffer);
  assert.equal(mutex.tryLock(), true);
  const pending = mutex.lockAsync();
  mutex.unlock();
  assert.equal(await pending, true);
  mutex.unlock();
});

test('a subclass of SharedArrayBuffer is accepted', () => {
  class Region extends SharedArrayBuffer {}
  const mutex = new Mutex(new Region(8), 4);
  assert.equal(mutex.tryLock(), true);
  mutex.unlock();
});

const BAD_TIMEOUTS = ['5', 5n, true, null, Symbol('soon'), () => 5];
const BAD_SIGNALS = [{}, null, 'abort', 0, new AbortController(), new EventTarget()];
const BAD_REFS = [1, 0, null, 'true', {}];
const BAD_FUNCTIONS = [undefined, null, 0, 'run', {}, Promise.resolve()];

/** The verbs that throw, with the timeout where each takes it. */
const throwingVerbs = {
  'lock(timeout)': (mutex, timeout) => mutex.lock(timeout),
  'lock({ timeout })': (mutex, timeout) => mutex.lock({ timeout }),
  'acquire(options)': (mutex, timeout) => mutex.acquire(timeout),
  'acquire({ timeout })': (mutex, timeout) => mutex.acquire({ timeout }),
  'executeLockedSync(fn, options)': (mutex, timeout, run) => mutex.executeLockedSync(run, timeout),
  'executeLockedSync(fn, { timeout })': (mutex, timeout, run) => mutex.executeLockedSync(run, { timeout }),
};

const rejectingVerbs = {
  'lockAsync(timeout)': (mutex, timeout) => mutex.lockAsync(timeout),
  'lockAsync({ timeout })': (mutex, timeout) => mutex.lockAsync({ timeout }),
  'acquireAsync(options)': (mutex, timeout) => mutex.acquireAsync(timeout),
  'acquireAsync({ timeout })': (mutex, timeout) => mutex.acquireAsync({ timeout }),
  'executeLocked(fn, options)': (mutex, timeout, run) => mutex.executeLocked(run, timeout),
  'executeLocked(fn, { timeout })': (mutex, timeout, run) => mutex.executeLocked(run, { timeout }),
};

const optionVerbs = {
  lockAsync: (mutex, options) => mutex.lockAsync(options),
  acquireAsync: (mutex, options) => mutex.acquireAsync(options),
  executeLocked: (mutex, options, run) => mutex.executeLocked(run, options),
};

/** A promise verb must not throw, whatever it is given. */
const called = (call) => {
  try {
    return call();
  } catch (error) {
    return assert.fail(`threw instead of rejecting: ${error}`);
  }
};

for (const [verb, call] of Object.entries(throwingVerbs)) {
  for (const timeout of BAD_TIMEOUTS) {
    test(`${verb} with ${named(timeout)} throws ERR_INVALID_ARG_TYPE and takes nothing`, (t) => {
      const { mutex, word } = createMutex({ allowMainThread: true });
      const run = t.mock.fn();
      assert.throws(() => call(mutex, timeout, run), expected.invalidArgType());
      assert.equal(word(), 0);
      assert.equal(run.mock.callCount(), 0);
    });
  }
}

for (const [verb, call] of Object.entries(rejectingVerbs)) {
  for (const timeout of BAD_TIMEOUTS) {
    test(`${verb} with ${named(timeout)} rejects with ERR_INVALID_ARG_TYPE and takes nothing`, async (t) => {
      const { mutex, word } = createMutex();
      const run = t.mock.fn();
      await assert.rejects(
        called(() => call(mutex, timeout, run)),
        expected.invalidArgType(),
      );
      assert.equal(word(), 0);
      assert.equal(run.mock.callCount(), 0);
    });
  }
}

for (const [verb, call] of Object.entries(optionVerbs)) {
  for (const signal of BAD_SIGNALS) {
    const kind = signal?.constructor?.name ?? 'null';
    test(`${verb} with a signal that is no AbortSignal but ${kind} rejects with ERR_INVALID_ARG_TYPE`, async (t) => {
      const { mutex, word } = createMutex();
      const run = t.mock.fn();
      await assert.rejects(
        called(() => call(mutex, { signal }, run)),
        expected.invalidArgType(),
      );
      assert.equal(word(), 0);
      assert.equal(run.mock.callCount(), 0);
    });
  }
  for (const ref of BAD_REFS) {
    test(`${verb} with a ref that is ${named(ref)} rejects with ERR_INVALID_ARG_TYPE`, async (t) => {
      const { mutex, word } = createMutex();
      const run = t.mock.fn();
      await assert.rejects(
        called(() => call(mutex, { ref }, run)),
        expected.invalidArgType(),
      );
      assert.equal(word(), 0);
      assert.equal(run.mock.callCount(), 0);
    });
  }
  test(`${verb} rejects when reading its options throws`, async (t) => {
    const { mutex, word } = createMutex();
    const error = new Error('Thrown by a getter');
    const options = {
      get timeout() {
        throw error;
      },
    };
    await assert.rejects(
      called(() => call(mutex, options, t.mock.fn())),
      (caught) => caught === error,
    );
    assert.equal(word(), 0);
  });
}

for (const run of BAD_FUNCTIONS) {
  const kind = run === null ? 'null' : (run?.constructor?.name ?? 'undefined');
  test(`a callback that is no function but ${kind} is refused by every verb that takes one`, async () => {
    const { mutex, word } = createMutex({ allowMainThread: true });
    assert.throws(() => mutex.enter(run), expected.invalidArgType());
    assert.throws(() => mutex.executeLockedSync(run), expected.invalidArgType());
    await assert.rejects(
      called(() => mutex.executeLocked(run)),
      expected.invalidArgType(),
    );
    assert.equal(word(), 0);
  });
}

test(
  'bad input is refused also while the mutex is held, without queueing',
  watched(async (_, threads) => {
    const { buffer, mutex, word } = createMutex({ allowMainThread: true });
    const [worker] = await threads.puppets(1, buffer);
    await worker.call('lock');
    const held = word();
    assert.throws(() => mutex.lock('5'), expected.invalidArgType());
    await assert.rejects(mutex.lockAsync('5'), expected.invalidArgType());
    await assert.rejects(mutex.lockAsync({ signal: {} }), expected.invalidArgType());
    await assert.rejects(mutex.executeLocked('5'), expected.invalidArgType());
    assert.equal(word(), held);
    assert.deepEqual(mutex.inspect().waiters, []);
  }),
);

test('undefined options are no options', async () => {
  const { mutex } = createMutex({ allowMainThread: true });
  mutex.acquire(undefined).unlock();
  (await mutex.acquireAsync({ signal: undefined, ref: undefined, timeout: undefined })).unlock();
  assert.equal(await mutex.executeLocked(() => 1, undefined), 1);
  assert.equal(
    mutex.executeLockedSync(() => 2, undefined),
    2,
  );
  assert.equal(mutex.isLocked, false);
});

test('an AbortSignal that lacks a part is refused, and takes nothing', async () => {
  const { mutex, word } = createMutex();
  const whole = { aborted: false, addEventListener() {}, removeEventListener() {} };
  for (const part of Object.keys(whole)) {
    await assert.rejects(
      called(() => mutex.lockAsync({ signal: { ...whole, [part]: undefined } })),
      expected.invalidArgType(),
    );
  }
  assert.equal(word(), 0);
  assert.equal(await mutex.lockAsync({ signal: whole }), true);
  mutex.unlock();
});

test('the error of a bad argument says which one it is, and what it must be', async () => {
  const { buffer, mutex } = createMutex({ allowMainThread: true });
  const duration = 'a number of milliseconds';
  for (const [name, must, call] of [
    ['timeout', `${duration} or an options object`, () => mutex.lock('5')],
    ['timeout', `${duration} or an options object`, () => mutex.lockAsync('5')],
    ['options.timeout', duration, () => mutex.lock({ timeout: '5' })],
    ['options.timeout', duration, () => mutex.lockAsync({ timeout: '5' })],
    ['options.signal', 'an AbortSignal', () => mutex.lockAsync({ signal: {} })],
    ['options.ref', 'a boolean', () => mutex.lockAsync({ ref: 1 })],
    ['options', 'an object', () => waitAsync(new Int32Array(buffer), 0, 0, 0, 1)],
    ['byteOffset', 'a number', () => new Mutex(buffer, '0')],
    ['options', 'an object', () => new Mutex(buffer, 0, 1)],
    ['options.allowMainThread', 'a boolean', () => new Mutex(buffer, 0, { allowMainThread: 1 })],
    ['options.maySleep', 'a boolean', () => new Mutex(buffer, 0, { maySleep: 1 })],
    ['options.name', 'a string', () => new Mutex(buffer, 0, { name: 1 })],
    ['options.onAbandoned', 'a function', () => new Mutex(buffer, 0, { onAbandoned: 1 })],
  ]) {
    await assert.rejects(
      async () => call(),
      ({ message }) => message.startsWith(`The "${name}" argument`) && message.includes(` must be ${must}. Received `),
    );
  }
  for (const [byteOffset, must] of [
    [2, 'a multiple of 4, 0 or more'],
    [BYTES, `4 bytes or more before the end of the ${BYTES} bytes`],
    [BYTES + 4, `4 bytes or more before the end of the ${BYTES} bytes`],
  ]) {
    assert.throws(() => new Mutex(buffer, byteOffset), {
      message: `The "byteOffset" argument is out of range: it must be ${must}. Received ${byteOffset}.`,
    });
  }
});

test('the error of a bad argument says what was received: a value as it is, of an object the class', () => {
  const { mutex } = createMutex({ allowMainThread: true });
  class Delay {}
  for (const [value, received] of [
    ['5', "'5'"],
    [null, 'null'],
    [{ timeout: new Delay() }, 'an instance of Delay'],
    [{ timeout: [5] }, 'an instance of Array'],
    [{ timeout: Object.create(null) }, 'an instance of an unknown class'],
  ]) {
    assert.throws(
      () => mutex.lock(value),
      ({ message }) => message.endsWith(` Received ${received}.`),
    );
  }
});

test('the error of a bad argument names the mutex that it was given to', async () => {
  const { mutex } = createMutex({ allowMainThread: true });
  const named = expected.invalidArgType(OFFSET);
  assert.throws(() => mutex.lock('5'), named);
  assert.throws(() => mutex.acquire({ timeout: '5' }), named);
  assert.throws(() => mutex.executeLockedSync(undefined), named);
  assert.throws(() => mutex.enter(undefined), named);
  await assert.rejects(mutex.lockAsync({ timeout: '5' }), named);
  await assert.rejects(mutex.acquireAsync({ signal: {} }), named);
  await assert.rejects(
    mutex.executeLocked(() => {}, { ref: 1 }),
    named,
  );
});

test('mutex methods refuse to work on anything but a Mutex', () => {
  const { lock, tryLock, unlock } = Mutex.prototype;
  for (const method of [lock, tryLock, unlock]) assert.throws(() => method.call({}), TypeError);
});

const BAD_OPTIONS = {
  'options.allowMainThread': [1, null, 'true'],
  'options.name': [1, null, {}, Symbol('jobs')],
  'options.onAbandoned': [1, null, {}, 'markConsistent'],
};

for (const [option, values] of Object.entries(BAD_OPTIONS)) {
  for (const value of values) {
    test(`a constructor refuses ${option} of ${String(value)}`, () => {
      const options = { [option.slice('options.'.length)]: value };
      for (const lock of option === 'options.onAbandoned' ? [Mutex] : [Mutex, Condition]) {
        assert.throws(() => new lock(new SharedArrayBuffer(4), 0, options), {
          name: 'TypeError',
          code: 'ERR_INVALID_ARG_TYPE',
          message: new RegExp(`"${option}"`),
        });
      }
    });
  }
}

test('memory that came through JSON or as a copy is refused with the reason', () => {
  const refused = (buffer, reason) => {
    for (const lock of [Mutex, Condition]) {
      assert.throws(() => new lock(buffer), { code: 'ERR_INVALID_ARG_TYPE', message: reason });
    }
  };
  const sent = JSON.parse(JSON.stringify({ buffer: new SharedArrayBuffer(8) }));
  refused(sent.buffer, /sent to another process .* node:worker_threads/);
  refused(Object.create(null), /sent to another process/);
  refused(new ArrayBuffer(8), /new SharedArrayBuffer\(\).* arrives there as a copy/);
  refused(new Uint8Array(8), /new SharedArrayBuffer\(\)/);
  // There is shared memory in it.
  refused(new Int32Array(new SharedArrayBuffer(8)), /Int32Array\. Pass its buffer\.$/);
  refused(new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true }), /Memory\. Pass its buffer\.$/);
  for (const other of [{ memory: 1 }, [], new Map(), null, 5, new (class Memory {})()]) {
    refused(other, /^(?!.*process).*$/);
  }
});
