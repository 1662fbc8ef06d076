// A debugger gets through to a thread that is blocked in lock().

const assert = require('node:assert/strict');
const { Session } = require('node:inspector');
const { test } = require('node:test');
const { createMutex } = require('../helpers/memory.js');
const { needs } = require('../helpers/runtime.js');
const { watched } = require('../helpers/threads.js');

/** Generous: a blocked thread lets the debugger in every 20 to 50 ms. */
const LIMIT_MS = 5000;

/** The debugger of one worker, by way of the main thread's. */
class WorkerDebugger {
  #session;
  #sessionId;
  #replies = new Map();
  #nextId = 1;
  #paused = [];

  constructor(session, sessionId) {
    this.#session = session;
    this.#sessionId = sessionId;
    session.on('NodeWorker.receivedMessageFromWorker', ({ params }) => {
      if (params.sessionId !== sessionId) return;
      const { id, method, result, error, params: event } = JSON.parse(params.message);
      if (method === 'Debugger.paused') this.#paused.push(event);
      this.#replies.get(id)?.(error ?? result);
    });
  }

  post(method, params = {}) {
    const id = this.#nextId++;
    const message = JSON.stringify({ id, method, params });
    return new Promise((resolve, reject) => {
      this.#replies.set(id, resolve);
      this.#session.post('NodeWorker.sendMessageToWorker', { sessionId: this.#sessionId, message }, (error) => {
        if (error) reject(error);
      });
    });
  }

  /** The place where the worker has stopped; undefined if it runs. */
  get paused() {
    return this.#paused.at(-1);
  }
}

/** Attaches to the worker that was started last. */
const attach = async (t, threads) => {
  const session = new Session();
  session.connect();
  t.after(() => session.disconnect());
  const ids = [];
  session.on('NodeWorker.attachedToWorker', ({ params }) => ids.push(params.sessionId));
  session.post('NodeWorker.enable', { waitForDebuggerOnStart: false });
  await threads.until('the debugger is attached', () => ids.length > 0);
  return new WorkerDebugger(session, ids.at(-1));
};

for (const [state, timeout] of [
  ['without a timeout', undefined],
  ['with a timeout', 60_000],
]) {
  test(
    `an expression is evaluated in a worker that is blocked in lock() ${state}`,
    needs('inspector'),
    watched(async (t, threads) => {
      const { buffer, mutex } = createMutex();
      const [worker] = await threads.puppets(1, buffer);
      const inspector = await attach(t, threads);
      mutex.tryLock();
      const locked = worker.call('lock', timeout);
      await threads.queued(mutex, 1);
      const startedAt = performance.now();
      const { result } = await inspector.post('Runtime.evaluate', { expression: '6 * 7' });
      const ms = performance.now() - startedAt;
      assert.equal(result.value, 42);
      assert.ok(ms < LIMIT_MS, `${ms} ms`);
      assert.equal(mutex.inspect().waiters.length, 1, 'it still waits');
      mutex.unlock();
      assert.equal(await locked, true);
      t.diagnostic(`${ms.toFixed(1)} ms`);
    }),
  );
}

test(
  'a worker that is blocked in lock() can be paused, holds nobody back meanwhile, and goes on waiting',
  needs('inspector'),
  watched(async (t, threads) => {
    const { buffer, mutex } = createMutex();
    const [worker] = await threads.puppets(1, buffer);
    const inspector = await attach(t, threads);
    const [other] = await threads.puppets(1, buffer);
    await inspector.post('Debugger.enable');
    mutex.tryLock();
    const locked = worker.call('lock');
    await threads.queued(mutex, 1);
    const startedAt = performance.now();
    await inspector.post('Debugger.pause');
    await threads.until('the worker is paused', () => inspector.paused !== undefined);
    const ms = performance.now() - startedAt;
    assert.ok(ms < LIMIT_MS, `${ms} ms`);
    const frames = inspector.paused.callFrames.map(({ functionName }) => functionName);
    assert.ok(frames.includes('lock'), frames.join(', '));

    // It is first in line, and cannot come.
    const passed = other.run([['lock'], ['unlock']]);
    await threads.queued(mutex, 2);
    mutex.unlock();
    assert.deepEqual(await passed, [true, undefined]);
    assert.equal(await mutex.lockAsync(), true);

    await inspector.post('Debugger.resume');
    mutex.unlock();
    assert.equal(await locked, true);
    assert.equal(await worker.call('get', 'isHeldByThisThread'), true);
    t.diagnostic(`${ms.toFixed(1)} ms`);
  }),
);
