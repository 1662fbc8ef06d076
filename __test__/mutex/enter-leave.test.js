const assert = require('node:assert/strict');
const { test } = require('node:test');
const { setImmediate: nextTurn } = require('node:timers/promises');
const { LockGuard, Mutex, RwLock } = require('../..');
const expected = require('../helpers/expected.js');
const { createMutex, OFFSET } = require('../helpers/memory.js');
const { runProgram } = require('../helpers/processes.js');
const { watched } = require('../helpers/threads.js');

const entered = (mutex) => new Promise((resolve) => mutex.enter(resolve));

test(
  'enter() returns undefined, and its callback gets a token that holds the mutex',
  watched(async () => {
    const { mutex } = createMutex();
    let answer = 'not called';
    const token = await new Promise((resolve) => {
      answer = mutex.enter(resolve);
    });
    assert.equal(answer, undefined);
    assert.ok(token instanceof LockGuard);
    assert.equal(token.locked, true);
    assert.equal(mutex.isHeldByThisThread, true);
    assert.equal(mutex.leave(token), undefined);
    assert.equal(token.locked, false);
    assert.equal(mutex.isLocked, false);
  }),
);

test(
  'the callback never runs inside enter(), even if the mutex is free',
  watched(async (t) => {
    const { mutex } = createMutex();
    const callback = t.mock.fn();
    mutex.enter(callback);
    assert.equal(callback.mock.callCount(), 0);
    while (callback.mock.callCount() === 0) await nextTurn();
    mutex.leave(callback.mock.calls[0].arguments[0]);
  }),
);

test(
  'the next callback never runs inside leave()',
  watched(async (t) => {
    const { mutex } = createMutex();
    const token = await entered(mutex);
    const callback = t.mock.fn();
    mutex.enter(callback);
    await nextTurn();
    assert.equal(callback.mock.callCount(), 0);
    mutex.leave(token);
    assert.equal(callback.mock.callCount(), 0);
    while (callback.mock.callCount() === 0) await nextTurn();
    mutex.leave(callback.mock.calls[0].arguments[0]);
  }),
);

test(
  'callbacks run one at a time, in the order of enter()',
  watched(async () => {
    const { mutex } = createMutex();
    const log = [];
    const steps = [1, 2, 3, 4].map(
      (number) =>
        new Promise((resolve) => {
          mutex.enter(async (token) => {
            log.push(`in ${number}`);
            await nextTurn();
            log.push(`out ${number}`);
            mutex.leave(token);
            resolve();
          });
        }),
    );
    await Promise.all(steps);
    assert.deepEqual(log, ['in 1', 'out 1', 'in 2', 'out 2', 'in 3', 'out 3', 'in 4', 'out 4']);
  }),
);

test(
  'enter() keeps out the holders of other threads, and is kept out by them',
  watched(async (_, threads) => {
    const { buffer, mutex } = createMutex();
    const [worker] = await threads.puppets(1, buffer);
    await worker.call('enter');
    assert.equal(mutex.tryLock(), false);
    const mine = entered(mutex);
    await threads.queued(mutex, 1);
    await worker.call('leave');
    const token = await mine;
    assert.equal(await worker.call('lock', 0), false);
    mutex.leave(token);
  }),
);

for (const [kind, wrong] of [
  ['undefined', undefined],
  ['null', null],
  ['a number', 1],
  ['a plain object', {}],
  ['a look-alike of a token', { locked: true, unlock: () => true }],
  ['an object that inherits from tokens', Object.create(LockGuard.prototype)],
  ['an object that inherits from a token', Object.create(createMutex().mutex.tryAcquire())],
  ['a guard of an RwLock', new RwLock(new SharedArrayBuffer(RwLock.BYTES)).write.tryAcquire()],
]) {
  test(
    `leave() of ${kind} is refused, and the hold goes on`,
    watched(async () => {
      const { mutex, word } = createMutex();
      const token = await entered(mutex);
      const held = word();
      assert.throws(() => mutex.leave(wrong), expected.notOwner(OFFSET));
      assert.equal(word(), held);
      mutex.leave(token);
      assert.equal(word(), 0);
    }),
  );
}

test(
  'leave() of a token a second time is refused',
  watched(async () => {
    const { mutex, word } = createMutex();
    const token = await entered(mutex);
    mutex.leave(token);
    assert.throws(() => mutex.leave(token), expected.notOwner(OFFSET));
    assert.equal(word(), 0);
  }),
);

test(
  'leave() of an earlier token is refused while a later one holds',
  watched(async () => {
    const { mutex } = createMutex();
    const early = await entered(mutex);
    mutex.leave(early);
    const late = await entered(mutex);
    assert.throws(() => mutex.leave(early), expected.notOwner(OFFSET));
    assert.equal(late.locked, true);
    mutex.leave(late);
  }),
);

test(
  "leave() of another mutex's token is refused, and both holds go on",
  watched(async () => {
    const { buffer, mutex } = createMutex();
    const neighbour = new Mutex(buffer, OFFSET + 4);
    const [mine, theirs] = [await entered(mutex), await entered(neighbour)];
    assert.throws(() => mutex.leave(theirs), expected.notOwner(OFFSET));
    assert.throws(() => neighbour.leave(mine), expected.notOwner(OFFSET + 4));
    assert.deepEqual([mine.locked, theirs.locked], [true, true]);
    mutex.leave(mine);
    neighbour.leave(theirs);
  }),
);

test(
  'leave() of a token of another object for the same memory frees the mutex',
  watched(async () => {
    const { buffer, mutex } = createMutex();
    const token = await entered(mutex);
    new Mutex(buffer, OFFSET).leave(token);
    assert.deepEqual([token.locked, mutex.isLocked], [false, false]);
  }),
);

test('leave() of a free mutex is refused', () => {
  const { mutex, word } = createMutex();
  assert.throws(() => mutex.leave(undefined), expected.notOwner(OFFSET));
  assert.equal(word(), 0);
});

test(
  'mutex.unlock() does not free what a token holds',
  watched(async () => {
    const { mutex } = createMutex();
    const token = await entered(mutex);
    assert.throws(() => mutex.unlock(), expected.notOwner(OFFSET));
    assert.equal(token.locked, true);
    mutex.leave(token);
  }),
);

test(
  'the token keeps its hold after the callback has returned',
  watched(async () => {
    const { mutex } = createMutex();
    const token = await entered(mutex);
    await nextTurn();
    assert.equal(mutex.isHeldByThisThread, true);
    assert.equal(mutex.tryLock(), false);
    mutex.leave(token);
  }),
);

test('a callback that throws is an uncaught exception, and its token keeps the hold', async () => {
  const { code, stdout, stderr } = await runProgram('throwing-callback');
  assert.equal(stderr, '');
  assert.deepEqual(JSON.parse(stdout), {
    uncaught: ['Thrown in a callback', 'Thrown in a waiting callback'],
    origins: ['uncaughtException', 'uncaughtException'],
    wasHeld: [true, true],
    isLocked: false,
  });
  assert.equal(code, 0);
});

test('a callback that throws ends a process that does not listen, with code 1', async () => {
  const { code, stderr } = await runProgram('throwing-callback', ['unheard']);
  assert.match(stderr, /Thrown in a callback/);
  assert.equal(code, 1);
});
