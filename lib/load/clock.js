// Time and turns as they pass: taken when the package loads, so that the clocks and timers that a test puts in their places later, or
// those of jsdom, whose handles are numbers, stop nobody who waits.

const { clearInterval, clearTimeout, setImmediate, setInterval, setTimeout } = require('node:timers');
// No module exports these without the cost of a load.
const { performance, queueMicrotask } = globalThis;

Object.assign(exports, { clearInterval, clearTimeout, queueMicrotask, setImmediate, setInterval, setTimeout });
/** Milliseconds, with fractions, of a clock that only goes forwards. */
exports.now = performance.now.bind(performance);
