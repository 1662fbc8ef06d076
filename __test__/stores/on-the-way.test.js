// A request that is withdrawn while its question, or the answer to it, is on the way keeps nobody out.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { LockManager } = require('../..');
const EVERY_STORE = require('../helpers/every-store.js');
const { limit } = require('../helpers/limits.js');
const { deferred } = require('../helpers/names.js');
const { startProxy } = require('../helpers/proxy.js');
const { seen } = require('../helpers/stores.js');

/** The questions of a request, by store: the first takes a place in line, or tries; the second, which a session blocks in, waits. */
const QUESTIONS = {
  redis: [/\r\nenqueue\r\n/],
  etcd: [/request_put/],
  postgres: [/pg_try_advisory_lock/, /select pg_advisory_lock/],
  mysql: [/get_lock\('[^']*', 0\)/, /get_lock\('[^']*', [1-9]/],
};

/** The questions of a request with a fence that is granted at once. */
const OF_GRANT = {
  redis: QUESTIONS.redis,
  etcd: QUESTIONS.etcd,
  postgres: [/pg_try_advisory_lock/, /txid_current/],
  mysql: [/get_lock\('[^']*', 0\)/, /uuid_short/],
};

/** The modes in which the name is held, asked for by the request that is withdrawn, and asked for behind it. */
const LINES = [
  ['shared', 'exclusive', 'shared'],
  ['exclusive', 'exclusive', 'exclusive'],
  ['exclusive', 'shared', 'exclusive'],
  ['none', 'exclusive', 'exclusive'],
  ['none', 'shared', 'exclusive'],
];

/**
 * From now on a line, by the proxy, holds back what comes with or after the question, if `isQuestion`; else what answers it. Returns what is
 * true when it does, what has it go on, and what is true when the answer has come.
 */
function holdBack(proxy, question, isQuestion) {
  const goOn = deferred();
  let asked = null;
  let [isHeld, isAnswered] = [false, false];
  proxy.weather = (line, toServer, data) => {
    if (asked === null && toServer && question.test(data)) asked = line;
    const isHere = line === asked;
    if (isHere && toServer === isQuestion) isHeld = true;
    if (isHere && !toServer) isAnswered = true;
    return [{ data, ms: 0, due: isHere && toServer === isQuestion ? goOn.promise : undefined }];
  };
  return { isHeld: () => isHeld, goOn: goOn.resolve, isAnswered: () => isAnswered };
}

for (const [kind, [make, isThere, start, settings, canShare]] of Object.entries(EVERY_STORE)) {
  const options = { skip: isThere ? false : `the server of ${kind} is not installed`, timeout: limit(60_000) };
  test(`${kind}: a request that is withdrawn while it is on its way keeps nobody out`, options, async (t) => {
    const server = await start();
    t.after(() => server.stop());
    const proxy = await startProxy(t, server.url);
    const [here, behind, far] = [server.url, server.url, proxy.url].map((url, index) => {
      const manager = new LockManager({ store: make(url, { ...settings, connectTimeout: 20_000 + index }) });
      t.after(() => manager.close());
      return manager;
    });
    await far.check();
    for (const [index, question] of QUESTIONS[kind].entries()) {
      const isBlocking = index > 0;
      for (const isQuestion of [true, false]) {
        for (const modes of LINES) {
          const [held, mode, next] = modes;
          // Nobody blocks in a wait for what is free, nor is that answered before it is over.
          if ((!canShare && modes.includes('shared')) || (isBlocking && (held === 'none' || !isQuestion))) continue;
          const name = `${modes}, ${question}, ${isQuestion}`;
          const lock = held === 'none' ? null : await here.acquireAsync(name, { mode: held });
          const controller = new AbortController();
          const { isHeld, goOn, isAnswered } = holdBack(proxy, question, isQuestion);
          const withdrawn = assert.rejects(far.acquireAsync(name, { mode, signal: controller.signal }), {
            name: 'AbortError',
          });
          await seen(isHeld);
          controller.abort();
          await withdrawn;
          goOn();
          await seen(isAnswered);
          // As long as the first is held, if they can share it.
          if (next === 'exclusive') lock?.unlock();
          const other = await behind.acquireAsync(name, { mode: next, timeout: 15_000 });
          assert.deepEqual([other.abandoned, other.unlock()], [false, true], name);
          if (next === 'shared') lock.unlock();
          assert.equal((await far.acquireAsync(name, { timeout: 15_000 })).unlock(), true, name);
        }
      }
    }
  });
}

for (const [kind, [make, isThere, start, settings]] of Object.entries(EVERY_STORE)) {
  const options = { skip: isThere ? false : `the server of ${kind} is not installed`, timeout: limit(60_000) };
  test(
    `${kind}: an ifAvailable right behind a request that is withdrawn on its way is not told null`,
    options,
    async (t) => {
      const server = await start();
      t.after(() => server.stop());
      const proxy = await startProxy(t, server.url);
      const far = new LockManager({ store: make(proxy.url, settings) });
      t.after(() => far.close());
      await far.check();
      for (const question of OF_GRANT[kind]) {
        for (const isQuestion of [true, false]) {
          const name = `${question}, ${isQuestion}`;
          const controller = new AbortController();
          const { isHeld, goOn } = holdBack(proxy, question, isQuestion);
          const { signal } = controller;
          const withdrawn = assert.rejects(far.acquireAsync(name, { fence: true, signal }), { name: 'AbortError' });
          await seen(isHeld);
          controller.abort();
          await withdrawn;
          const next = far.acquireAsync(name, { ifAvailable: true });
          // The lock worker has been asked for it.
          await far.stats();
          goOn();
          assert.equal((await next)?.unlock(), true, name);
        }
      }
    },
  );
}
