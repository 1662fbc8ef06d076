// Several environments of Node.js on one thread of the system, as embedders make them: each is an agent of its own.

const assert = require('node:assert/strict');
const { createRequire } = require('node:module');
const path = require('node:path');
const { test } = require('node:test');
const { Mutex } = require('../..');
const expected = require('../helpers/expected.js');
const { loadAgain } = require('../helpers/load-again.js');
const { watched } = require('../helpers/threads.js');

/** Compiled for one version of Node.js when it is installed, so it is no dependency of everybody who works on this package. */
const load = () => {
  if (process.versions.bun || process.versions.deno) return { skip: 'only Node.js can be embedded in this way' };
  try {
    return {
      SynchronousWorker: createRequire(path.join(__dirname, '..', 'environments', 'package.json'))(
        'synchronous-worker',
      ),
    };
  } catch (error) {
    return { skip: `npm run test:environments installs what it needs: ${error.message.split('\n', 1)}` };
  }
};
const { SynchronousWorker, skip = false } = load();

/** Another environment, the package as it is loaded there, and one mutex as both see it. */
const start = (options = {}) => {
  const environment = new SynchronousWorker(options);
  const loadThere = () => environment.createRequire(__filename)('../..');
  const buffer = new SharedArrayBuffer(2048);
  const mutexOf = (Class, offset = 0) => new Class(buffer, offset, { allowMainThread: true });
  return { environment, loadThere, mutexOf, here: mutexOf(Mutex), there: mutexOf(loadThere().Mutex) };
};

test(
  'what one environment holds is not held by another of the same thread',
  { skip },
  watched(async () => {
    const { environment, here, there } = start();
    here.tryLock();
    assert.equal(there.isHeldByThisThread, false);
    assert.throws(() => there.unlock(), expected.notOwner(0));
    assert.equal(there.tryLock(), false);
    here.unlock();
    assert.equal(there.tryLock(), true);
    assert.throws(() => here.unlock(), expected.notOwner(0));
    there.unlock();
    await environment.stop();
  }),
);

test(
  'a package that is loaded again is one agent in each environment',
  { skip },
  watched(async () => {
    const { environment, loadThere, mutexOf, here, there } = start();
    const again = mutexOf(loadAgain().Mutex);
    const inner = environment.createRequire(__filename);
    for (const file of Object.keys(inner.cache)) delete inner.cache[file];
    const thereAgain = mutexOf(loadThere().Mutex);
    assert.notEqual(thereAgain.constructor, there.constructor);
    here.tryLock();
    assert.deepEqual([again.isHeldByThisThread, thereAgain.isHeldByThisThread], [true, false]);
    again.unlock();
    there.tryLock();
    assert.deepEqual([again.isHeldByThisThread, thereAgain.isHeldByThisThread], [false, true]);
    thereAgain.unlock();
    await environment.stop();
  }),
);

test(
  'the end of one environment abandons what it holds, and leaves the others their agents',
  { skip },
  watched(async () => {
    const { environment, mutexOf, here, there } = start();
    const kept = mutexOf(Mutex, 4);
    kept.tryLock();
    there.tryLock();
    const pending = here.lockAsync();
    await environment.stop();
    assert.equal(await pending, true);
    assert.equal(here.abandoned, true);
    here.markConsistent();
    here.unlock();
    assert.equal(kept.isHeldByThisThread, true);
    kept.unlock();
    assert.equal(await here.executeLocked(() => 1), 1);
  }),
);

test(
  'a wait of one environment is granted by another',
  { skip },
  watched(async () => {
    const { environment, here, there } = start();
    here.tryLock();
    const theirs = there.lockAsync();
    here.unlock();
    assert.equal(environment.runLoopUntilPromiseResolved(theirs), true);
    const ours = here.lockAsync();
    there.unlock();
    assert.equal(await ours, true);
    here.unlock();
    await environment.stop();
  }),
);

test(
  'environments that share an event loop are woken in it',
  { skip },
  watched(async () => {
    const { environment, here, there } = start({ sharedEventLoop: true, sharedMicrotaskQueue: true });
    for (let round = 0; round < 3; round++) {
      here.tryLock();
      const theirs = there.lockAsync();
      here.unlock();
      assert.equal(await theirs, true);
      const ours = here.lockAsync();
      there.unlock();
      assert.equal(await ours, true);
      here.unlock();
    }
    await environment.stop();
    assert.equal(await here.executeLocked(() => 1), 1);
  }),
);

test(
  'to block for what another environment of the thread holds is a deadlock, and with a timeout it ends',
  { skip },
  watched(async () => {
    const { environment, here, there } = start();
    there.tryLock();
    assert.throws(() => here.lock(), expected.deadlock(0));
    assert.equal(here.lock(20), false);
    there.unlock();
    assert.equal(here.lock(), true);
    here.unlock();
    await environment.stop();
  }),
);

test(
  'a circle of threads goes through all environments of a thread',
  { skip },
  watched(async (_, threads) => {
    const { environment, mutexOf, here, there } = start();
    const second = mutexOf(Mutex, 4);
    const [worker] = await threads.puppets(1, here.buffer);
    there.tryLock();
    await worker.call(4, 'lock');
    const blocked = worker.call(0, 'lock');
    await threads.queued(here, 1);
    assert.throws(() => second.lock(), expected.deadlock(4));
    there.unlock();
    assert.equal(await blocked, true);
    await environment.stop();
  }),
);
