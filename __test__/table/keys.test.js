// Which lock of a table a key has: the same in every thread, version and runtime. Never change an expected number here.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { LockTable } = require('../..');
const { murmur3 } = require('../../lib/primitives/hash.js');

const table = (length) => new LockTable(new SharedArrayBuffer(LockTable.bytes(length)), 0, length);

test('the hash is MurmurHash3 (x86, 32 bits) of the UTF-16 code units, low byte first', () => {
  // Vectors that its implementations share, as bytes: 21 43 65 87 and so on.
  for (const [text, seed, expected] of [
    ['', 0, 0],
    ['', 1, 0x514e28b7],
    ['', 0xffffffff, 0x81f16f39],
    ['\uffff\uffff', 0, 0x76293b50],
    ['\u4321\u8765', 0, 0xf55b516b],
    ['\u4321\u8765', 0x5082edee, 0x2362f9de],
    ['\u4321', 0, 0xa0f7b07a],
    ['\0\0', 0, 0x2362f9de],
    ['\0', 0, 0x30f4c306],
  ]) {
    assert.equal(murmur3(text, seed).toString(16), expected.toString(16), JSON.stringify([text, seed]));
  }
});

test('numbers and bigints of the same value are one key, whose text is its decimal digits', () => {
  const length = 1_000_003;
  const { indexFor } = { indexFor: (key) => table(length).indexFor(key) };
  // Where a kind of integer ends, or what String() makes of one; each with its neighbours that are numbers too.
  const boundaries = [0, 1, 17, 2 ** 30, 2 ** 31, 2 ** 32, 2 ** 53, 2 ** 60, 2 ** 63, 2 ** 64, 1e20, 1e21, 1e22, 1e25];
  const neighbours = boundaries.flatMap((number) => {
    const step = Math.max(1, 2 ** (Math.floor(Math.log2(number)) - 52));
    return [number - step, number, number + step];
  });
  for (const magnitude of [...neighbours, Number.MAX_SAFE_INTEGER, Number.MAX_VALUE]) {
    for (const number of [magnitude, -magnitude]) {
      const bigint = BigInt(number);
      assert.equal(indexFor(number), indexFor(bigint), String(number));
      assert.equal(indexFor(bigint), murmur3(bigint.toString(), 1) % length, String(bigint));
    }
  }
  for (const bigint of [2n ** 53n + 1n, 2n ** 64n - 1n, 10n ** 21n - 1n, 10n ** 400n]) {
    for (const key of [bigint, -bigint]) assert.equal(indexFor(key), murmur3(key.toString(), 1) % length, String(key));
  }
  assert.notEqual(indexFor(1), indexFor('1'), 'a string is another key');
  assert.notEqual(indexFor(1.5), indexFor(1));
  assert.equal(indexFor(Number.NaN), indexFor(0 / 0));
});

test('a string is its code units, also where they make no character', () => {
  const { indexFor } = { indexFor: (key) => table(1_000_003).indexFor(key) };
  const keys = ['\ud800', '\udc00', '\ud83d\ude00', '\ufffd', 'e\u0301', '\u00e9', ''];
  assert.equal(new Set(keys.map(indexFor)).size, keys.length);
});

test('keys spread over all locks', () => {
  const length = 16;
  const short = table(length);
  for (const keyOf of [(n) => n, (n) => 16 * n, (n) => `user:${n}`, (n) => BigInt(n) << 64n]) {
    const counts = new Array(length).fill(0);
    for (let n = 0; n < 16_000; n++) counts[short.indexFor(keyOf(n))] += 1;
    // The deviation is about 31.
    assert.ok(Math.min(...counts) > 800 && Math.max(...counts) < 1200, `${keyOf}: ${counts}`);
  }
});

test('what is no key is refused', () => {
  for (const key of [undefined, null, true, Symbol('key'), {}, [1], () => {}, new String('key')]) {
    assert.throws(() => table(4).indexFor(key), { name: 'TypeError', code: 'ERR_INVALID_ARG_TYPE', message: /"key"/ });
  }
});

test('keys have the indices that they always had', () => {
  const million = table(1_000_000);
  const found = ['', 'a', 'user:1', 'Ünïcödé', 0, 1, -1, 1.5, 42n, 2n ** 64n].map((key) => million.indexFor(key));
  assert.deepEqual(found, [0, 108634, 978177, 16105, 481018, 522973, 611424, 97869, 323159, 976625]);
});
