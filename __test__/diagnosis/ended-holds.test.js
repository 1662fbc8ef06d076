const assert = require('node:assert/strict');
const { test } = require('node:test');
const { AsyncLocalStorage } = require('node:async_hooks');
const diagnostics = require('node:diagnostics_channel');
const { MessageChannel, receiveMessageOnPort } = require('node:worker_threads');
const { Latch, stats } = require('../..');
const { endings } = require('../helpers/endings.js');
const { OFFSET } = require('../helpers/memory.js');
const { listen, subscribe } = require('../helpers/messages.js');
const { create, users } = require('../helpers/primitives.js');
const { needs } = require('../helpers/runtime.js');
const { watched } = require('../helpers/threads.js');

const ABANDONED = 'sablock:abandoned';
const terminate = endings.find(({ name }) => name === 'terminate()');
const messageOf = (user) => ({ byteOffset: OFFSET, ownerThreadId: user.threadId, mode: 'entry' });

test(
  'the end of a thread with entries is published in the thread that gets in because of it, once, and is counted',
  needs('prompt ends'),
  watched(async (t, threads) => {
    const messages = listen(t, ABANDONED);
    const warnings = [];
    const note = ({ code }) => warnings.push(code);
    process.on('warning', note);
    t.after(() => process.off('warning', note));
    const { object } = create('Latch', { name: 'all done' });
    const [doomed, waiter] = await users(threads, 2, object);
    await waiter.call('listen', ABANDONED);
    await doomed.run([['enter'], ['enter']]);
    const { ended } = stats();
    const waiting = waiter.call('wait');
    await threads.queued(object, 1);
    await terminate.end(doomed);
    assert.equal(await waiting, true);
    assert.deepEqual(await waiter.call('heard'), [messageOf(doomed)]);
    assert.equal(stats().ended, ended + 1, 'one thread, one primitive');
    object.add();
    assert.equal(await object.waitAsync(0), false);
    assert.deepEqual([messages, warnings, await waiter.call('warnings')], [[], [], []]);
  }),
);

test(
  'it is published in the context of who awaits, with the object that it awaits, before the code goes on',
  needs('prompt ends'),
  watched(async (t, threads) => {
    const { object } = create('Latch', { name: 'all done' });
    const [doomed] = await users(threads, 1, object);
    const storage = new AsyncLocalStorage();
    const seen = [];
    const note = (message) => seen.push([storage.getStore(), message.lock, message.mutex, message.name]);
    subscribe(ABANDONED, note);
    t.after(() => diagnostics.unsubscribe(ABANDONED, note));
    await doomed.call('enter');
    const waiting = storage.run('who awaits', () => object.waitAsync().then(() => seen.push('goes on')));
    await threads.queued(object, 1);
    await terminate.end(doomed);
    await waiting;
    assert.deepEqual(seen, [['who awaits', object, null, 'all done'], 'goes on']);
  }),
);

for (const [verb, wait] of [
  ['waitAsync', (latch) => latch.waitAsync(0)],
  ['waitAsync with a time', (latch) => latch.waitAsync(1)],
  ['wait', (latch) => latch.wait(0)],
]) {
  test(
    `if nobody waits, the next ${verb}() that comes to the core publishes all that ended, in order`,
    needs('prompt ends'),
    watched(async (t, threads) => {
      const messages = listen(t, ABANDONED);
      const { object } = create('Latch', { allowMainThread: true });
      const doomed = await users(threads, 2, object);
      for (const user of doomed) await user.call('enter');
      for (const user of doomed) await terminate.end(user);
      assert.equal(object.count, 0);
      assert.deepEqual(messages, []);
      object.add();
      // The report of the end of one does not depend on what comes of the wait.
      for (let count = 0; count < 2; count++) assert.equal(await wait(object), false);
      assert.deepEqual(messages, doomed.map(messageOf));
    }),
  );
}

test(
  'a thread that has left all its latches, and one whose entries are at another place, is not reported',
  needs('prompt ends'),
  watched(async (t, threads) => {
    const messages = listen(t, ABANDONED);
    const { buffer, object } = create('Latch');
    const [left, other] = await users(threads, 2, object);
    const { ended } = stats();
    await left.run([['enter'], ['leave']]);
    await terminate.end(left);
    assert.equal(stats().ended, ended);
    await other.call('enter');
    await terminate.end(other);
    const neighbour = new Latch(buffer, OFFSET + 4);
    neighbour.add();
    assert.equal(await neighbour.waitAsync(0), false);
    assert.deepEqual(messages, []);
    object.add();
    assert.equal(await object.waitAsync(0), false);
    assert.deepEqual(messages, [messageOf(other)]);
  }),
);

test(
  'a subscriber that throws keeps nobody from passing',
  needs('prompt ends', 'uncaught subscribers'),
  watched(async (t, threads) => {
    const { object } = create('Latch');
    const [doomed] = await users(threads, 1, object);
    const uncaught = [];
    const listeners = process.listeners('uncaughtException');
    process.removeAllListeners('uncaughtException');
    const catchIt = (error) => uncaught.push(error.message);
    process.on('uncaughtException', catchIt);
    const note = () => {
      throw new Error('a subscriber');
    };
    subscribe(ABANDONED, note);
    t.after(() => {
      diagnostics.unsubscribe(ABANDONED, note);
      process.off('uncaughtException', catchIt);
      for (const listener of listeners) process.on('uncaughtException', listener);
    });
    await doomed.call('enter');
    const waiting = object.waitAsync();
    await threads.queued(object, 1);
    await terminate.end(doomed);
    assert.equal(await waiting, true);
    await threads.until('it is an uncaught error', () => uncaught.length > 0);
    assert.deepEqual(uncaught, ['a subscriber']);
  }),
);

test(
  'who knows the memory since the end only learns nothing: it may have been other memory at that address',
  needs('prompt ends'),
  watched(async (t, threads) => {
    const messages = listen(t, ABANDONED);
    const { buffer, object } = create('Latch', { allowMainThread: true });
    const [doomed] = await users(threads, 1, object);
    await doomed.call('enter');
    await terminate.end(doomed);
    object.add();
    // As if it had been made here: another buffer, at the address of the first.
    const { port1, port2 } = new MessageChannel();
    port1.postMessage(buffer);
    const { message } = receiveMessageOnPort(port2);
    port1.close();
    const latecomer = new Latch(message, OFFSET);
    assert.equal(await latecomer.waitAsync(0), false);
    assert.deepEqual(messages, []);
    assert.equal(await object.waitAsync(0), false);
    assert.deepEqual(messages, [messageOf(doomed)]);
  }),
);
