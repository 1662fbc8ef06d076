const assert = require('node:assert/strict');
const { test } = require('node:test');
const { createJudge } = require('../conformance/deviations.js');
const { faceNames, neededBy } = require('../conformance/faces.js');
const { steps } = require('../conformance/arguments.js');
const { watched } = require('../helpers/threads.js');
const { wait } = require('../..');

const judge = createJudge();

for (const face of faceNames) {
  test(
    `the arguments of ${face}'s functions`,
    neededBy(face),
    watched(async (t, threads) => {
      const results = await threads.start('conformance', { face }).result;
      for (const [index, { name }] of steps.entries()) {
        await t.test(`${face}, ${name}`, (t) =>
          judge(t, face, name, () => {
            if (results[index] !== null) throw new Error(results[index]);
          }),
        );
      }
    }),
  );
}

const refusal = { name: 'TypeError', code: 'ERR_LOCK_MAIN_THREAD' };
const array = () => new Int32Array(new SharedArrayBuffer(8));

test('wait: a thread that may not block is refused with a TypeError, whatever the element holds', () => {
  assert.throws(() => wait(array(), 0, 0, 10), refusal);
  assert.throws(() => wait(array(), 0, 0, 0), refusal);
  assert.throws(() => wait(array(), 0, 1), refusal);
});

test('wait: a thread that may not block is refused after all conversions', () => {
  const log = [];
  const note = (name) => ({ valueOf: () => log.push(name) });
  assert.throws(() => wait(array(), note('index'), note('value'), note('timeout')), refusal);
  assert.deepEqual(log, ['index', 'value', 'timeout']);
  assert.throws(() => wait(array(), 2, 0, 0), RangeError);
  assert.throws(() => wait(array(), 0, 0n, 0), { name: 'TypeError', message: /BigInt/ });
});
