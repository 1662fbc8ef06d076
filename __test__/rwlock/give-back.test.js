const assert = require('node:assert/strict');
const { test } = require('node:test');
const { setImmediate: nextTurn } = require('node:timers/promises');
const { RwLock } = require('../..');
const { collector } = require('../helpers/collect.js');
const { needs } = require('../helpers/runtime.js');
const { createRwLock, readersWord, rwPuppets } = require('../helpers/rwlock.js');
const { watched } = require('../helpers/threads.js');

test(
  'read.acquireAsync() that fails after it was granted gives its hold back once, and no other',
  watched(async (t, threads) => {
    const { buffer, rw, word } = createRwLock();
    const [writer] = await rwPuppets(threads, 1, buffer);
    await writer.call('write.lock');
    await writer.terminate();
    const { emitWarning } = process;
    t.after(() => {
      process.emitWarning = emitWarning;
    });
    // The next to get in is to be warned. This one reads beside it, and fails as at the end of the stack.
    process.emitWarning = () => {
      assert.equal(rw.read.tryLock(), true);
      throw new RangeError('on purpose');
    };
    await assert.rejects(rw.read.acquireAsync(), RangeError);
    assert.equal(rw.readers, 1);
    assert.equal(rw.read.isHeldByThisThread, true);
    rw.read.unlock();
    assert.equal(word() & readersWord(RwLock.MAX_READERS), 0);
  }),
);

test(
  'the slot of a lock that was collected, used again and collected is given up once',
  needs('complete collection'),
  async () => {
    const collect = collector();
    const buffer = new SharedArrayBuffer(4096);
    const use = (index) => {
      const rw = new RwLock(buffer, 8 * index);
      rw.read.tryLock();
      rw.read.unlock();
    };
    use(0);
    // Two turns of one phase of the loop: no callback of the collector comes in between.
    const twice = [0, 1].map((turn) => {
      return new Promise((resolve) => {
        setTimeout(() => {
          collect();
          if (turn === 0) use(0);
          resolve();
        }, 5);
      });
    });
    await Promise.all(twice);
    for (let turn = 0; turn < 5; turn++) {
      collect();
      await nextTurn();
    }
    const [one, two] = [1, 2].map((index) => new RwLock(buffer, 8 * index));
    one.read.tryLock();
    assert.equal(two.read.isHeldByThisThread, false, 'no two locks share a slot');
    assert.equal(one.read.isHeldByThisThread, true);
  },
);
