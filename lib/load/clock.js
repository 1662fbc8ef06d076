// Time and turns as they pass: taken when the package loads, so that the clocks and timers that a test puts in their places later, or
// those of jsdom, whose handles are numbers, stop nobody who waits. So are the other globals that no module exports.

const { clearInterval, clearTimeout, setImmediate, setInterval, setTimeout } = require('node:timers');
// No module exports these without the cost of a load, and `performance` has that cost, too.
const { AbortController, DOMException, queueMicrotask } = globalThis;
const { hrtime } = process;

Object.assign(exports, { clearInterval, clearTimeout, queueMicrotask, setImmediate, setInterval, setTimeout });
Object.assign(exports, { AbortController, DOMException });
/** Throws it as an uncaught error of its own: for users' code that throws where others must not suffer from that. */
exports.throwLater = (error) => {
  exports.queueMicrotask(() => {
    throw error;
  });
};
/** Milliseconds, with fractions, of a clock that only goes forwards. */
exports.now = () => {
  const [seconds, nanoseconds] = hrtime();
  return 1e3 * seconds + nanoseconds / 1e6;
};
