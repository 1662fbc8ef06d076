// Errors that cross to other threads as text, and what the error of a lost lock says.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { inspect } = require('node:util');
const { LockLostError } = require('../..');
const { fromText, toText } = require('../../lib/engine/error-text.js');

const cross = (error) => fromText(toText(error));

test('an error crosses with its message and code, and that of a store if it has none', () => {
  for (const [code, expected] of [
    ['ERR_LOCK_CLOSED', 'ERR_LOCK_CLOSED'],
    [undefined, 'ERR_LOCK_STORE'],
  ]) {
    const error = cross({ message: 'refused', code });
    assert.ok(error instanceof Error);
    assert.deepEqual([error.message, error.code, Object.hasOwn(error, 'cause')], ['refused', expected, false]);
  }
});

test('the cause of an error crosses with its name, message and code; without a message it says what it is', () => {
  const silent = new AggregateError([new Error('one of them')]);
  for (const [cause, expected] of [
    [Object.assign(new TypeError('why'), { code: 'ECONNREFUSED' }), ['TypeError', 'why', 'ECONNREFUSED']],
    [new RangeError('why'), ['RangeError', 'why', undefined]],
    [silent, ['AggregateError', inspect(silent), undefined]],
  ]) {
    const { cause: inner } = cross({ message: 'refused', cause });
    assert.ok(inner instanceof Error);
    assert.deepEqual([inner.name, inner.message, inner.code], expected);
    assert.equal('code' in inner, expected[2] !== undefined);
  }
  assert.equal(cross({ message: 'refused', cause: 'no error' }).cause, undefined);
});

test('the error of a lost lock says which it was, after what time, and how it was lost', () => {
  for (const [reason, how] of [
    ['unreachable', 'its store did not answer for so long that it may have given the lock away.'],
    ['taken', 'its store has ended it: '],
    ['closed', 'its LockManager was closed.'],
    ['worker', 'the thread that kept it has ended.'],
  ]) {
    const error = new LockLostError('a\nb', 7n, reason, 1234.5678);
    assert.ok(error.message.startsWith(`The named lock 'a\\nb' was lost after 1235 ms: ${how}`), error.message);
    const { name, code, lockName, fence, heldMs } = error;
    assert.deepEqual(
      [name, code, lockName, fence, error.reason, heldMs],
      ['LockLostError', 'ERR_LOCK_LOST', 'a\nb', 7n, reason, 1234.5678],
    );
  }
});
