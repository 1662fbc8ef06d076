// Runs functions that the test sends as source, one after the other: each is called with what stays in this thread
// (`here`: the package, the buffer, flags, and whatever the functions keep there), and with its arguments.

const { parentPort } = require('node:worker_threads');
const sablock = require('../..');
const { answer, answerError, data, doing, end, isRaised, raise, waitForFlag } = require('../helpers/inside.js');

const here = { sablock, require, buffer: data.buffer, data, isRaised, raise, waitForFlag };

// The ways to end of `endings.js`.
const actions = {
  end,
  exit: (code) => process.exit(code),
  throw() {
    setImmediate(() => {
      throw new Error('Thrown on purpose');
    });
  },
  exhaust() {
    const kept = [];
    for (;;) kept.push(new Array(100_000).fill(kept.length));
  },
};

const take = ([source, ...args]) => {
  doing(source);
  if (Object.hasOwn(actions, source)) return actions[source](...args);
  // Strict, as the files of the tests are not: `using` of sablock is the same in both.
  const run = new Function(`'use strict'; return ${source};`)();
  return run(here, ...args);
};

parentPort.on('message', async ({ id, steps }) => {
  try {
    const values = [];
    for (const step of steps) {
      values.push(await take(step));
      doing(`idle after ${step[0]}`);
    }
    answer(id, values);
  } catch (error) {
    answerError(id, error);
  }
});
doing('waiting for its first step');
