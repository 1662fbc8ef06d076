// Kinds in the message of a deadlock, if a subscriber has found another deadlock before it is thrown.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { Mutex, RwLock } = require('../..');
const { startActors } = require('../helpers/actors.js');
const { watched } = require('../helpers/threads.js');

/** Takes an RwLock, and then the mutex, which is held, with another RwLock. */
const run = (here) => {
  const { Mutex, RwLock, lockAll } = here.sablock;
  const own = new Mutex(here.buffer, 4);
  const { write } = new RwLock(here.buffer, 8);
  own.lock();
  write.lock();
  here.require('node:diagnostics_channel').subscribe('sablock:contended', () => {
    try {
      own.lock();
    } catch {
      // It holds it itself.
    }
  });
  try {
    lockAll([new Mutex(here.buffer), new RwLock(here.buffer, 32).write]);
  } catch ({ message }) {
    return message;
  } finally {
    write.unlock();
  }
};

const lock = (here, offset) => new here.sablock.RwLock(here.buffer, offset).write.lock();

test(
  'the error of a deadlock names the kinds of its own locks, whatever a subscriber to the wait has found',
  watched(async (_, threads) => {
    const buffer = new SharedArrayBuffer(64);
    const mutex = new Mutex(buffer);
    mutex.tryLock();
    const [one, other] = await startActors(threads, 2, buffer);
    await other.do(lock, 32);
    const message = one.do(run);
    await threads.queued(mutex, 1);
    const crossing = other.do(lock, 8);
    await threads.until('the other waits', () => new RwLock(buffer, 8).inspect().waiters.length === 1);
    mutex.unlock();
    const steps = [
      `thread ${one.threadId} waits for the rwlock at byte offset 32, held by thread ${other.threadId}`,
      `thread ${other.threadId} waits for the rwlock at byte offset 8, held by thread ${one.threadId}`,
    ];
    const begin = `Deadlock: ${steps.join('; ')}. None of these threads can go on, so thread ${one.threadId} gave up its wait.`;
    assert.equal((await message).slice(0, begin.length), begin);
    await crossing;
  }),
);
