const assert = require('node:assert/strict');
const { test } = require('node:test');
const { Latch } = require('../..');
const { slotFor } = require('../../lib/engine/register.js');
const { binding } = require('../../lib/engine/thread.js');
const { corrupt } = require('../helpers/expected.js');
const { loadAgain } = require('../helpers/load-again.js');
const { OFFSET } = require('../helpers/memory.js');
const { create } = require('../helpers/primitives.js');
const { runProgram } = require('../helpers/processes.js');
const { needs } = require('../helpers/runtime.js');

const { Ask } = binding;

const run = async (name) => {
  const { code, stdout, stderr } = await runProgram('register-slots', [name], { nodeArgs: ['--expose-gc'] });
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout);
};

test('two objects at one address share a slot, also by another buffer object, and of another load of the package', () => {
  const { buffer, object } = create('Latch');
  const clone = structuredClone(buffer);
  assert.notEqual(clone, buffer);
  const other = new Latch(clone, OFFSET);
  const again = new (loadAgain().Latch)(buffer, OFFSET);
  const entries = [object, other, again].map((latch) => latch.enter());
  assert.equal(object.count, 3);
  assert.deepEqual(object.inspect().holders, [{ threadId: 0, mode: 'entry', count: 3 }]);
  assert.deepEqual(
    entries.map((entry) => entry.leave()),
    [true, true, true],
  );
  assert.deepEqual([other.count, other.inspect().holders], [0, []]);
});

test('a slot is two zeros at first, of this primitive alone', () => {
  const words = new Int32Array(new SharedArrayBuffer(8));
  const [first, second] = [words.subarray(0, 1), words.subarray(1, 2)].map((word) => slotFor(word, Ask.LatchEntry));
  assert.deepEqual(
    [[...first], [...second]],
    [
      [0, 0],
      [0, 0],
    ],
  );
  first[1] = 5;
  assert.equal(second[1], 0);
  assert.equal(slotFor(words.subarray(0, 1), Ask.LatchEntry), first);
  first[1] = 0;
});

test('memory that becomes another kind of primitive gets a slot of that kind, unless something is held', () => {
  const word = new Int32Array(new SharedArrayBuffer(4));
  const slot = slotFor(word, Ask.LatchEntry);
  slot[1] = 1;
  assert.throws(() => slotFor(word, Ask.Permits), corrupt(0));
  slot[1] = 0;
  assert.equal(slotFor(word, Ask.Permits), slot);
  assert.equal(binding.acquire(word, Ask.Permits, 0, 2, 2), binding.GRANTED);
  assert.equal(slot[1], 2, 'the core writes it');
  assert.deepEqual(binding.inspect(word, Ask.Permits).holders, [{ threadId: 0, mode: 'permits', count: 2 }]);
  assert.equal(binding.release(word, Ask.Permits, 2, 2), binding.RELEASED);
  assert.deepEqual([...slot], [0, 0]);
  // A guard's hold counts as much.
  slot[0] = 1;
  assert.throws(() => slotFor(word, Ask.LatchEntry), corrupt(0));
  slot[0] = 0;
  assert.equal(slotFor(word, Ask.LatchEntry), slot);
  assert.equal(binding.acquire(word, Ask.LatchEntry, 0, 1, 0), binding.GRANTED);
  assert.deepEqual(binding.inspect(word, Ask.LatchEntry).holders, [{ threadId: 0, mode: 'entry', count: 1 }]);
  assert.equal(binding.release(word, Ask.LatchEntry, 1, 0), binding.RELEASED);
});

test('more slots than a chunk has are in several, and each is of its own', async () => {
  assert.deepEqual(await run('growth'), { entered: true, held: true, chunks: 5, left: true });
});

test('slots that nobody uses any more are used again', async () => {
  assert.deepEqual(await run('reuse'), { left: true, chunks: true });
});

test('a slot keeps its buffer while it is used, and no longer', async () => {
  assert.deepEqual(await run('collection'), { isCollected: true, kept: 20, alive: true, left: true });
});

test('a hold outlives its objects: whoever comes back finds it', async () => {
  assert.deepEqual(await run('outlives'), { isCollected: true, before: 1, during: 2, isLeft: true, count: 1 });
});

test('a hold whose objects are gone goes back when its thread ends', needs('complete collection'), async () => {
  assert.deepEqual(await run('thread end'), { isCollected: true, count: 0 });
});

test('a slot that is taken up again before its finalizer has run is given up once', async () => {
  assert.deepEqual(await run('again'), { holders: [1, 1] });
});
