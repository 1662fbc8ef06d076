// The rest of the binding, and that each of its functions has a test here, or one of the doctor's.

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { test } = require('node:test');
const { receiveMessageOnPort, threadId } = require('node:worker_threads');
const { binding, thread } = require('../../lib/engine/thread.js');
const { asks, isIdle, listen, named, newWords, ownerOf, record } = require('../helpers/seam.js');
const { watched } = require('../helpers/threads.js');

const { Ask } = binding;

listen();

test('each function of the binding is called in these tests, those of the doctor and the audit’s in their own', () => {
  const tests = fs.readdirSync(__dirname).map((name) => path.join(__dirname, name));
  const files = [...tests, require.resolve('../helpers/seam.js')];
  const text = files.map((file) => fs.readFileSync(file, 'utf8')).join('\n');
  const missing = Object.getOwnPropertyNames(binding)
    .filter((name) => typeof binding[name] === 'function' && !name.startsWith('doctor') && name !== 'audit')
    .filter((name) => !new RegExp(`binding\\.${name}\\(|'${name}'`).test(text));
  assert.deepEqual(missing, []);
});

test('numbers of the words, of the record and of what can be asked are all told apart', () => {
  const unique = (numbers) => assert.equal(new Set(numbers).size, numbers.length);
  unique(asks.map((name) => Ask[name]));
  unique(Object.getOwnPropertyNames(binding.Field).map((name) => binding.Field[name]));
  unique(Object.getOwnPropertyNames(binding.Change).map((name) => binding.Change[name]));
  assert.ok(binding.Field.Cycle < binding.RECORD_LENGTH);
  assert.equal(binding.VERSION, require('../../package.json').version);
  assert.ok(Number.isInteger(binding.PROTOCOL));
  assert.equal(binding.firstCopy(), null);
});

test('a second load in the thread gets the state of the first', () => {
  const other = { id: 0 };
  const noop = () => {};
  const newRecord = () => new Float64Array(new SharedArrayBuffer(8 * binding.RECORD_LENGTH));
  assert.equal(binding.attach(threadId, receiveMessageOnPort, other, newRecord(), noop, noop, noop), thread);
  assert.equal(other.id, 0);
});

test('a word is known by its memory, not by its view', () => {
  const words = newWords();
  const view = new Int32Array(words.buffer, words.byteOffset, 1);
  const next = new Int32Array(words.buffer, words.byteOffset + 4, 1);
  assert.equal(binding.address(words), binding.address(view));
  assert.equal(binding.address(next), binding.address(words) + 4);
});

test('what cannot be a word is refused before anything is looked at', () => {
  for (const wrong of [undefined, null, 5, 'text', {}, [], new Int32Array(0), new Uint8Array(8)]) {
    for (const verb of ['acquire', 'acquireAsync', 'release', 'change', 'giveBack', 'inspect']) {
      assert.throws(() => binding[verb](wrong, Ask.Mutex, 0, 0, 0, 0), verb);
    }
  }
  assert.throws(() => binding.tryAcquire(newWords(), 99, 1, 0));
  assert.ok(isIdle());
});

test(
  'people are shown who holds and who waits, and nothing once both are over',
  watched(async (_t, threads) => {
    const there = threads.start('seam');
    const words = newWords();
    assert.deepEqual([binding.hold(words), binding.queuedKind(words), ownerOf(words)], [-1, null, null]);
    assert.equal(named(await there.call('acquire', words, Ask.Mutex, 0, 1, 0)), 'GRANTED');
    assert.equal(named(binding.acquireAsync(words, Ask.Mutex, Infinity, true, 1, 0)), 'PENDING');
    binding.stayAwake(record('Token'));
    assert.equal(record('OwnerThread'), there.threadId);
    const { locked, ownerThreadId, abandoned, holders, waiters } = binding.inspect(words, Ask.Mutex);
    assert.deepEqual([locked, ownerThreadId, abandoned], [true, there.threadId, false]);
    assert.deepEqual(holders, [{ threadId: there.threadId, mode: 'exclusive', count: 1 }]);
    assert.deepEqual(
      waiters.map(({ kind, mode, threadId: id, waitedMs }) => [kind, mode, id, waitedMs >= 0]),
      [['async', 'exclusive', threadId, true]],
    );
    assert.deepEqual(binding.holders(words, Ask.Mutex), holders);
    assert.equal(binding.queuedKind(words), 'Mutex');
    const hold = binding.hold(words);
    assert.deepEqual([record('Holder'), hold > 0], [there.threadId, true]);
    const all = binding.inspectAll();
    assert.deepEqual(
      all.map(({ address, kind, byteOffset }) => [address, kind, byteOffset]),
      [[binding.address(words), 'Mutex', words.byteOffset]],
    );
    const { pending, blocked } = binding.stats();
    assert.deepEqual([pending, blocked], [1, 0]);
    assert.equal(binding.cancel(record('Token')), true);
    assert.equal(named(await there.call('release', words, Ask.Mutex, 1, 0)), 'RELEASED');
    assert.deepEqual([binding.inspectAll(), binding.queuedKind(words), binding.stats().pending], [[], null, 0]);
    assert.equal(binding.inspect(words, Ask.Mutex).locked, false);
  }),
);

test('a loop is woken, kept alive and let go', async () => {
  let drained = 0;
  thread.drain = () => {
    drained += 1;
  };
  binding.keepAlive(true);
  binding.wake();
  for (const end = performance.now() + 20_000; drained === 0 && performance.now() < end; ) {
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  assert.ok(drained > 0);
  binding.keepAlive(false);
  binding.turned();
  assert.ok(binding.moment() >= 0);
});
