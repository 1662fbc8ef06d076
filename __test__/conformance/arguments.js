// DoWait and Atomics.notify (ECMA-262, "The Atomics Object"), up to where a thread would wait: each step of the
// algorithms that looks at an argument, for `wait`, `waitAsync` and `notify`. Nothing here blocks.

const assert = require('node:assert/strict');

const shared = (length = 4) => new Int32Array(new SharedArrayBuffer(4 * length));
const sharedBig = (length = 4) => new BigInt64Array(new SharedArrayBuffer(8 * length));
const throwing = (message) => ({
  valueOf() {
    throw new EvalError(message);
  },
});
/** An object whose conversion is noted in `log`. */
const noting = (log, name, value) => ({
  valueOf() {
    log.push(name);
    return value;
  },
});
const thrown = (message) => ({ name: 'EvalError', message });

/** Calls `wait` or `waitAsync`, and returns what was known at once. */
const atOnce =
  (face, name) =>
  (...args) => {
    const answer = face[name](...args);
    if (name === 'wait') return answer;
    assert.equal(answer.async, false, 'it need not have waited');
    return answer.value;
  };

const ALL = ['wait', 'waitAsync', 'notify'];
const WAITS = ['wait', 'waitAsync'];
const steps = [];
const step = (names, text, run) => {
  for (const name of names) steps.push({ name: `${name}: ${text}`, run: (face) => run(face[name], face, name) });
};

const OTHER_TYPES = [
  Int8Array,
  Uint8Array,
  Uint8ClampedArray,
  Int16Array,
  Uint16Array,
  Uint32Array,
  Float32Array,
  Float64Array,
  BigUint64Array,
  ...(globalThis.Float16Array ? [globalThis.Float16Array] : []),
];

step(ALL, 'what is no typed array is a TypeError', (call) => {
  const imitation = Object.create(Int32Array.prototype, { length: { value: 4 } });
  for (const value of [undefined, null, 0, '', true, 1n, Symbol('s'), {}, [0], () => 0, imitation]) {
    assert.throws(() => call(value, 0, 0, 0), TypeError);
  }
});

step(ALL, 'a buffer, a DataView or a proxy of an array is a TypeError', (call) => {
  const buffer = new SharedArrayBuffer(8);
  for (const value of [buffer, new ArrayBuffer(8), new DataView(buffer), new Proxy(new Int32Array(buffer), {})]) {
    assert.throws(() => call(value, 0, 0, 0), TypeError);
  }
});

step(ALL, 'an array of another element type is a TypeError', (call) => {
  for (const Type of OTHER_TYPES) assert.throws(() => call(new Type(new SharedArrayBuffer(8)), 0, 0, 0), TypeError);
});

step(ALL, "a subclass's array is an array, whatever it overrides", (call, face, name) => {
  class Odd extends Int32Array {
    get length() {
      throw new Error('length was read');
    }
    get buffer() {
      throw new Error('buffer was read');
    }
    get [Symbol.toStringTag]() {
      throw new Error('the tag was read');
    }
  }
  const odd = new Odd(new SharedArrayBuffer(16));
  if (name === 'notify') assert.equal(call(odd, 3, 1), 0);
  else assert.equal(atOnce(face, name)(odd, 3, 1), 'not-equal');
});

step(ALL, 'the array is checked before the index is converted', (call) => {
  assert.throws(() => call(new Uint32Array(new SharedArrayBuffer(8)), throwing('index')), TypeError);
});

step(['notify'], 'an array with a detached buffer is a TypeError, before the index is converted', (call) => {
  const array = new Int32Array(4);
  structuredClone(array.buffer, { transfer: [array.buffer] });
  assert.throws(() => call(array, throwing('index')), TypeError);
});

step(['notify'], 'an array that its resizable buffer no longer reaches is a TypeError', (call) => {
  const buffer = new ArrayBuffer(32, { maxByteLength: 32 });
  const array = new Int32Array(buffer, 16);
  const fixed = new Int32Array(buffer, 8, 4);
  buffer.resize(12);
  assert.throws(() => call(array, throwing('index')), TypeError);
  assert.throws(() => call(fixed, throwing('index')), TypeError);
});

step(['notify'], 'an empty array that is in bounds is a RangeError at any index', (call) => {
  assert.throws(() => call(new Int32Array(0), 0, 0), RangeError);
  assert.throws(() => call(shared(0), 0, 0), RangeError);
});

step(WAITS, 'an array that is not shared is a TypeError, before the index is converted', (call) => {
  assert.throws(() => call(new Int32Array(4), throwing('index'), 0, 0), TypeError);
  assert.throws(() => call(new BigInt64Array(4), throwing('index'), 0n, 0), TypeError);
});

step(['notify'], 'on memory that is not shared it returns 0, after index and count were converted', (call) => {
  const log = [];
  assert.equal(call(new Int32Array(4), noting(log, 'index', 1), noting(log, 'count', 1)), 0);
  assert.equal(call(new BigInt64Array(4), 1), 0);
  assert.deepEqual(log, ['index', 'count']);
  assert.throws(() => call(new Int32Array(4), 4), RangeError);
  assert.throws(() => call(new Int32Array(4), 0, throwing('count')), thrown('count'));
});

// Each index with the element that it stands for.
const INDICES = [
  [undefined, 0],
  [null, 0],
  [NaN, 0],
  [-0, 0],
  [-0.9, 0],
  ['', 0],
  ['nothing', 0],
  [false, 0],
  [true, 1],
  [1.9, 1],
  ['2', 2],
  [' 0x2 ', 2],
  [[3], 3],
  [{ valueOf: () => 3 }, 3],
  [{ toString: () => '3' }, 3],
  [{ [Symbol.toPrimitive]: () => 2.5 }, 2],
];

step(WAITS, 'the index is converted as ToIndex does', (_call, face, name) => {
  const array = shared();
  array.set([10, 11, 12, 13]);
  for (const [index, element] of INDICES) {
    assert.equal(atOnce(face, name)(array, index, 10 + element, 0), 'timed-out', String(index));
  }
});

step(['notify'], 'the index is converted as ToIndex does', (call) => {
  for (const [index] of INDICES) assert.equal(call(shared(), index), 0);
});

step(ALL, 'an index outside of the array is a RangeError, before the rest is converted', (call) => {
  for (const index of [-1, -1.5, 4, 4.5, '4', Infinity, -Infinity, 2 ** 32, 2 ** 53, -(2 ** 53)]) {
    assert.throws(() => call(shared(), index, throwing('next'), throwing('last')), RangeError, String(index));
  }
});

step(ALL, 'an index that is a symbol or a bigint is a TypeError', (call) => {
  for (const index of [Symbol('s'), 1n, { valueOf: () => 1n }]) {
    assert.throws(() => call(shared(), index, throwing('next')), TypeError);
  }
});

step(ALL, 'what the conversion of the index throws is passed on, and nothing else is converted', (call) => {
  assert.throws(() => call(shared(), throwing('index'), throwing('next'), throwing('last')), thrown('index'));
});

step(ALL, 'the length is read before the index is converted', (call) => {
  const buffer = new SharedArrayBuffer(16, { maxByteLength: 64 });
  const tracking = new Int32Array(buffer);
  const grow = () => {
    buffer.grow(64);
    return 8;
  };
  assert.throws(() => call(tracking, { valueOf: grow }, 1, 0), RangeError);
  assert.equal(tracking.length, 16);
});

step(WAITS, 'the elements of an array that has grown with its buffer can be waited for', (call, face, name) => {
  const buffer = new SharedArrayBuffer(16, { maxByteLength: 64 });
  const tracking = new Int32Array(buffer);
  buffer.grow(64);
  assert.equal(atOnce(face, name)(tracking, 15, 0, 0), 'timed-out');
  assert.throws(() => call(tracking, 16, 0, 0), RangeError);
});

// Each value with what ToInt32 makes of it.
const INT32 = [
  [undefined, 0],
  [null, 0],
  [NaN, 0],
  [Infinity, 0],
  [-Infinity, 0],
  ['7', 7],
  [true, 1],
  [-1.9, -1],
  [2 ** 31, -(2 ** 31)],
  [2 ** 32 + 5, 5],
  [-(2 ** 32) - 5, -5],
  [{ valueOf: () => 7 }, 7],
  [{ toString: () => '7' }, 7],
];

step(WAITS, 'with an Int32Array the value is converted as ToInt32 does', (_call, face, name) => {
  for (const [value, element] of INT32) {
    const array = shared();
    array[1] = element;
    assert.equal(atOnce(face, name)(array, 1, value, 0), 'timed-out', String(value));
  }
});

step(WAITS, 'with an Int32Array a value that is a bigint or a symbol is a TypeError', (call) => {
  for (const value of [0n, Symbol('s'), { valueOf: () => 0n }]) {
    assert.throws(() => call(shared(), 0, value, throwing('timeout')), TypeError);
  }
});

const BIG_INT64 = [
  [0n, 0n],
  [2n ** 64n + 5n, 5n],
  [2n ** 63n, -(2n ** 63n)],
  [-1n, -1n],
  [true, 1n],
  ['7', 7n],
  ['', 0n],
  [{ valueOf: () => 7n }, 7n],
];

step(WAITS, 'with a BigInt64Array the value is converted as ToBigInt64 does', (_call, face, name) => {
  for (const [value, element] of BIG_INT64) {
    const array = sharedBig();
    array[1] = element;
    assert.equal(atOnce(face, name)(array, 1, value, 0), 'timed-out', String(value));
  }
});

step(WAITS, 'with a BigInt64Array a value that ToBigInt refuses throws what that throws', (call) => {
  for (const value of [undefined, null, 0, 1.5, Symbol('s')]) {
    assert.throws(() => call(sharedBig(), 0, value, throwing('timeout')), TypeError);
  }
  assert.throws(() => call(sharedBig(), 0, 'seven', throwing('timeout')), SyntaxError);
});

step(WAITS, 'with a BigInt64Array all 64 bits are compared', (_call, face, name) => {
  const array = sharedBig();
  array[0] = 2n ** 40n;
  assert.equal(atOnce(face, name)(array, 0, 0n, 0), 'not-equal');
  assert.equal(atOnce(face, name)(array, 0, 2n ** 40n, 0), 'timed-out');
});

step(WAITS, 'what the conversion of the value throws is passed on, and the timeout is not converted', (call) => {
  assert.throws(() => call(shared(), 0, throwing('value'), throwing('timeout')), thrown('value'));
  assert.throws(() => call(sharedBig(), 0, throwing('value'), throwing('timeout')), thrown('value'));
});

step(WAITS, 'a timeout that is a symbol or a bigint is a TypeError, also where the values differ', (call) => {
  for (const timeout of [Symbol('s'), 1n]) assert.throws(() => call(shared(), 0, 1, timeout), TypeError);
});

step(WAITS, 'what the conversion of the timeout throws is passed on, also where the values differ', (call) => {
  assert.throws(() => call(shared(), 0, 1, throwing('timeout')), thrown('timeout'));
});

step(WAITS, 'index, value and timeout are converted once each, in this order', (call) => {
  const log = [];
  call(shared(), noting(log, 'index', 0), noting(log, 'value', 1), noting(log, 'timeout', 0));
  assert.deepEqual(log, ['index', 'value', 'timeout']);
});

step(WAITS, 'the element is read after the last conversion', (_call, face, name) => {
  const array = shared();
  const timeout = () => {
    array[0] = 5;
    return 0;
  };
  assert.equal(atOnce(face, name)(array, 0, 5, { valueOf: timeout }), 'timed-out');
});

step(WAITS, 'a timeout of zero or less is over at once', (_call, face, name) => {
  for (const timeout of [0, -0, -1, -Infinity, null, false, '', '0', { valueOf: () => -5 }]) {
    assert.equal(atOnce(face, name)(shared(), 0, 0, timeout), 'timed-out', String(timeout));
  }
});

step(WAITS, "'not-equal' comes before 'timed-out'", (_call, face, name) => {
  assert.equal(atOnce(face, name)(shared(), 0, 1, 0), 'not-equal');
  assert.equal(atOnce(face, name)(shared(), 0, 1), 'not-equal');
});

step(WAITS, 'the element is the one at the index of the array, wherever that begins', (_call, face, name) => {
  const array = new Int32Array(new SharedArrayBuffer(32), 8, 4);
  array[2] = 7;
  assert.equal(atOnce(face, name)(array, 2, 7, 0), 'timed-out');
  const big = new BigInt64Array(new SharedArrayBuffer(64), 16, 4);
  big[2] = 7n;
  assert.equal(atOnce(face, name)(big, 2, 7n, 0), 'timed-out');
});

step(['waitAsync'], 'what need not wait returns a plain object with async and value', (call) => {
  const answer = call(shared(), 0, 1);
  assert.equal(Object.getPrototypeOf(answer), Object.prototype);
  const property = (value) => ({ value, writable: true, enumerable: true, configurable: true });
  assert.deepEqual(Object.entries(Object.getOwnPropertyDescriptors(answer)), [
    ['async', property(false)],
    ['value', property('not-equal')],
  ]);
});

step(['waitAsync'], 'what waits returns a plain object with async and a promise', (call, face) => {
  const array = shared();
  const answer = call(array, 0, 0);
  assert.equal(face.notify(array, 0), 1);
  assert.equal(Object.getPrototypeOf(answer), Object.prototype);
  assert.deepEqual(Object.keys(answer), ['async', 'value']);
  assert.equal(answer.async, true);
  assert.equal(Object.getPrototypeOf(answer.value), Promise.prototype);
});

step(['waitAsync'], 'a timeout that is undefined, NaN or Infinity never ends', (call, face) => {
  for (const timeout of [undefined, NaN, Infinity, 'never', {}]) {
    const array = shared();
    assert.equal(call(array, 0, 0, timeout).async, true);
    assert.equal(face.notify(array, 0), 1);
  }
});

step(['notify'], 'returns 0 where nobody waits', (call) => {
  assert.equal(call(shared(), 0), 0);
  assert.equal(call(sharedBig(), 3, 5), 0);
});

// Each count with how many of five waiters it wakes.
const COUNTS = [
  [undefined, 5],
  [Infinity, 5],
  [2 ** 60, 5],
  [5, 5],
  [3.9, 3],
  ['2', 2],
  [true, 1],
  [{ valueOf: () => 2 }, 2],
  [0, 0],
  [-0, 0],
  [0.9, 0],
  [NaN, 0],
  [null, 0],
  [-1, 0],
  [-Infinity, 0],
];

step(
  ['notify'],
  'the count is converted as ToIntegerOrInfinity does, negative ones are 0, none is all',
  (call, face) => {
    for (const [count, woken] of COUNTS) {
      const array = shared();
      for (let waiter = 0; waiter < 5; waiter++) face.waitAsync(array, 1, 0);
      assert.equal(call(array, 1, count), woken, String(count));
      assert.equal(call(array, 1), 5 - woken);
    }
  },
);

step(['notify'], 'a count that is a symbol or a bigint is a TypeError', (call) => {
  for (const count of [Symbol('s'), 1n]) assert.throws(() => call(shared(), 0, count), TypeError);
});

step(['notify'], 'what the conversion of the count throws is passed on, and nobody is woken', (call, face) => {
  const array = shared();
  face.waitAsync(array, 0, 0);
  assert.throws(() => call(array, 0, throwing('count')), thrown('count'));
  assert.equal(call(array, 0), 1);
});

step(['notify'], 'index and count are converted once each, in this order', (call) => {
  const log = [];
  call(shared(), noting(log, 'index', 0), noting(log, 'count', 0));
  assert.deepEqual(log, ['index', 'count']);
});

step(ALL, 'has the length and the name of the original, and is no constructor', (call, _, name) => {
  assert.equal(call.length, name === 'notify' ? 3 : 4);
  assert.equal(call.name, name);
  assert.equal(Object.hasOwn(call, 'prototype'), false);
  assert.throws(() => new call(shared(), 0, 1, 0), TypeError);
});

exports.steps = steps;
