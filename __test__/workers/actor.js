// Runs functions that the test sends as source, one after the other: each is called with what stays in this thread
// (`here`: the package, the buffer, flags, and whatever the functions keep there), and with its arguments.

const sablock = require('../..');
const { data, doing, isRaised, raise, takeSteps, waitForFlag, waysToEnd } = require('../helpers/inside.js');

const here = { sablock, require, buffer: data.buffer, data, isRaised, raise, waitForFlag };

const take = ([source, ...args]) => {
  doing(source);
  if (Object.hasOwn(waysToEnd, source)) return waysToEnd[source](...args);
  // Strict, as the files of the tests are not: `using` of sablock is the same in both.
  const run = new Function(`'use strict'; return ${source};`)();
  return run(here, ...args);
};

takeSteps(async (step) => {
  const value = await take(step);
  doing(`idle after ${step[0]}`);
  return value;
});
