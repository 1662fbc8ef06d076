// A vm timeout stops JS at a call: the thread lives on, so that its register must say what the word says.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const vm = require('node:vm');
const { Semaphore } = require('../..');
const { needs } = require('../helpers/runtime.js');

const PERMITS = 10_000;
const INTERRUPTIONS = 150;

test(
  'what is taken is what the register says, wherever a vm timeout stops the fast paths',
  needs('termination when busy'),
  (t) => {
    const semaphore = new Semaphore(new SharedArrayBuffer(4), 0, PERMITS, { allowMainThread: true });
    let rounds = 0;
    const round = () => {
      rounds += 1;
      const permits = semaphore.tryAcquire(1 + (rounds % 3));
      permits.release(1);
      permits.release();
      semaphore.acquire(2)[Symbol.dispose ?? Symbol.for('nodejs.dispose')]();
    };
    const context = vm.createContext({ round });
    const script = new vm.Script('for (;;) round();');
    for (let count = 0; count < INTERRUPTIONS; count++) {
      assert.throws(() => script.runInContext(context, { timeout: 1 + (count % 3) }), {
        code: 'ERR_SCRIPT_EXECUTION_TIMEOUT',
      });
      const held = semaphore.inspect().holders.reduce((sum, holder) => sum + holder.count, 0);
      assert.equal(semaphore.available + held, PERMITS, `interruption ${count}`);
    }
    const lost = PERMITS - semaphore.available;
    t.diagnostic(`${rounds} rounds, ${lost} permits held by objects that nobody got`);
  },
);
