const assert = require('node:assert/strict');
const { test } = require('node:test');
const vm = require('node:vm');
const { Condition, Latch, layout, LockTable, ManualResetEvent, Mutex } = require('../..');
const { watched } = require('../helpers/threads.js');

test('a layout has its fields in the order given, each aligned', () => {
  const places = layout({
    lock: Mutex,
    changed: Condition,
    flag: Uint8Array,
    total: Int32Array,
    rows: [LockTable, 3],
    prices: [Float64Array, 5],
    bytes: [Uint8Array, 3],
    shorts: [Int16Array, 2],
    ids: [BigInt64Array, 1],
  });
  const fields = places.on(places.create());
  const offsets = Object.entries(fields).map(([name, { byteOffset }]) => [name, byteOffset]);
  assert.deepEqual(offsets, [
    ['lock', 0],
    ['changed', 4],
    ['flag', 8],
    ['total', 12],
    ['rows', 16],
    ['prices', 32],
    ['bytes', 72],
    ['shorts', 76],
    ['ids', 80],
  ]);
  assert.equal(places.byteLength, 88);
  assert.deepEqual([fields.flag.length, fields.total.length, fields.prices.length, fields.rows.length], [1, 1, 5, 3]);
  assert.ok(
    fields.lock instanceof Mutex && fields.changed instanceof Condition && fields.prices instanceof Float64Array,
  );
});

test('a layout makes zeroed memory of its length, and may begin at any aligned place of a buffer', () => {
  const places = layout({ lock: Mutex, id: Float64Array, last: Uint8Array });
  assert.equal(places.byteLength, 24, 'rounded up, so that another may follow');
  const buffer = new SharedArrayBuffer(3 * places.byteLength);
  const [first, second] = [0, places.byteLength].map((byteOffset) => places.on(buffer, byteOffset));
  assert.equal(first.lock.tryLock(), true);
  assert.equal(second.lock.tryLock(), true);
  assert.deepEqual([second.lock.byteOffset, second.id.byteOffset, second.last.byteOffset], [24, 32, 40]);
  assert.equal(places.create().byteLength, 24);
});

test('what follows a class are its arguments after the offset', () => {
  const places = layout({
    lock: [Mutex, { name: 'the lock', allowMainThread: true }],
    open: [ManualResetEvent, { name: 'open' }],
    done: Latch,
    rows: [LockTable, 4, { name: 'rows' }],
  });
  const { lock, open, done, rows } = places.on(places.create());
  assert.deepEqual([lock.name, open.name, done.name, rows.name], ['the lock', 'open', null, 'rows']);
  assert.equal(lock.lock(), true);
});

test(
  'threads that have the same layout have the same places',
  watched(async (_, threads) => {
    const places = layout({ padding: [Uint8Array, 1045], lock: Mutex });
    const buffer = places.create();
    const { lock } = places.on(buffer);
    assert.equal(lock.byteOffset, 1048);
    const [worker] = await threads.puppets(1, buffer);
    assert.equal(await worker.call(1048, 'lock'), true);
    assert.equal(lock.tryLock(), false);
  }),
);

test('a layout of bytes alone takes whole words, where a lock may follow', () => {
  const places = layout({ flags: [Uint8Array, 5] });
  const buffer = new SharedArrayBuffer(16);
  assert.equal(places.byteLength, 8);
  assert.equal(places.on(buffer, 4).flags.byteOffset, 4);
  assert.throws(() => places.on(buffer, 2), { message: /"byteOffset".* a multiple of 4, 0 or more\. Received 2\./ });
  assert.throws(() => places.on(buffer, 12), { message: /8 bytes or more before the end of the 16 bytes/ });
});

test('an empty layout takes nothing, nor does an array without elements', () => {
  const { none, lock } = layout({ none: [Float64Array, 0], lock: Mutex }).on(new SharedArrayBuffer(8));
  assert.deepEqual([none.length, lock.byteOffset], [0, 0]);
  assert.equal(layout({}).byteLength, 0);
  assert.deepEqual(layout({}).on(new SharedArrayBuffer(0)), {});
});

test('what is no layout is refused when it is made', () => {
  const refuses = (fields, code, message) => assert.throws(() => layout(fields), { code, message });
  for (const fields of [undefined, null, 5, [Mutex]]) refuses(fields, 'ERR_INVALID_ARG_TYPE', /"fields"/);
  class Mine {}
  for (const field of [
    undefined,
    5,
    'Mutex',
    {},
    [],
    [5],
    () => {},
    Mine,
    Object.assign(class {}, { BYTES: 8 }),
    Object.assign(class {}, { ALIGN: 8 }),
    Object.assign(class {}, { BYTES_PER_ELEMENT: 8 }),
    Map,
    DataView,
    Object.getPrototypeOf(Int8Array),
  ]) {
    refuses({ lock: Mutex, field }, 'ERR_INVALID_ARG_TYPE', /"fields.field"/);
  }
  refuses({ prices: [Float64Array, '5'] }, 'ERR_INVALID_ARG_TYPE', /"fields.prices\[1\]"/);
  for (const length of [-1, 1.5, NaN]) refuses({ prices: [Float64Array, length] }, 'ERR_OUT_OF_RANGE', /prices/);
  refuses({ rows: [LockTable, 0] }, 'ERR_OUT_OF_RANGE', /"length"/);
  refuses({ rows: LockTable }, 'ERR_INVALID_ARG_TYPE', /"length"/);
});

test('a place that a layout cannot have is refused', () => {
  const places = layout({ lock: Mutex, id: Float64Array });
  const buffer = new SharedArrayBuffer(40);
  for (const each of [places, layout({ ids: [Float64Array, 2] })]) {
    for (const byteOffset of [-8, 4, 1.5, NaN, 32, 40]) {
      assert.throws(() => each.on(buffer, byteOffset), { name: 'RangeError', code: 'ERR_OUT_OF_RANGE' });
    }
  }
  assert.ok(places.on(buffer, 24));
  assert.throws(() => places.on(buffer, '8'), { code: 'ERR_INVALID_ARG_TYPE' });
  for (const other of [undefined, new ArrayBuffer(40), new Uint8Array(buffer)]) {
    assert.throws(() => places.on(other), { code: 'ERR_INVALID_ARG_TYPE', message: /SharedArrayBuffer/ });
  }
});

test('a key that is an array index is refused, since JavaScript does not keep its order', () => {
  for (const key of ['0', '1', '10', '4294967294']) {
    assert.throws(() => layout({ lock: Mutex, [key]: Latch }), { code: 'ERR_INVALID_ARG_TYPE', message: /"fields"/ });
  }
  for (const key of ['01', '-1', '1.5', 'a1', '', '12345678901']) {
    assert.equal(layout({ [key]: Mutex }).byteLength, 4);
  }
});

test('typed arrays of another realm, and classes that extend them, are as good as those of this one', () => {
  const other = vm.runInNewContext(
    '({ Float64Array, Mine: class extends Int32Array {}, Base: Object.getPrototypeOf(Int8Array) })',
  );
  const places = layout({ lock: Mutex, price: [other.Float64Array, 2], mine: other.Mine });
  const { price, mine } = places.on(places.create());
  assert.deepEqual([price.byteOffset, price.length, mine.byteOffset, mine.length], [8, 2, 24, 1]);
  assert.ok(price instanceof other.Float64Array && mine instanceof other.Mine);
  assert.throws(() => layout({ field: other.Base }), { code: 'ERR_INVALID_ARG_TYPE' });
});
