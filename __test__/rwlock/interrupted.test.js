// A vm timeout stops JS at a call: the thread lives on, so that its register must say what the word says.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const vm = require('node:vm');
const { RwLock } = require('../..');
const { needs } = require('../helpers/runtime.js');

const INTERRUPTIONS = 150;

test(
  'what is read is what the register says, wherever a vm timeout stops the fast paths',
  needs('termination when busy'),
  (t) => {
    const rw = new RwLock(new SharedArrayBuffer(8), 0, { allowMainThread: true });
    let rounds = 0;
    const nothing = () => {};
    const round = () => {
      rounds += 1;
      // Beside another reader in every other round, which is another branch of the fast path.
      const isBeside = rounds % 2 === 0;
      const beside = isBeside ? rw.read.acquire() : null;
      rw.read.lock();
      rw.read.unlock();
      rw.read.executeLockedSync(nothing);
      if (rw.read.tryLock()) rw.read.unlock();
      beside?.unlock();
    };
    const context = vm.createContext({ round });
    const script = new vm.Script('for (;;) round();');
    for (let count = 0; count < INTERRUPTIONS; count++) {
      assert.throws(() => script.runInContext(context, { timeout: 1 + (count % 3) }), {
        code: 'ERR_SCRIPT_EXECUTION_TIMEOUT',
      });
      const held = rw.inspect().holders.reduce((sum, holder) => sum + holder.count, 0);
      assert.equal(rw.readers, held, `interruption ${count}`);
    }
    t.diagnostic(`${rounds} rounds, ${rw.readers} holds of interrupted rounds`);
  },
);
