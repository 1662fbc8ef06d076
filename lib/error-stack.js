// The stack of an error that says where a program waits: without the frames of the package.

const path = require('node:path');

/** The folder of the package's own frames; null in a bundle, whose files are the program's too. */
const OWN =
  path.basename(__filename) === 'error-stack.js' && path.basename(__dirname) === 'lib' ? __dirname + path.sep : null;
/** No call of the package has more own frames above it, the lock doctor's included. */
const MOST_OWN = 20;

/** Defined, not assigned: it stays out of what lists the properties of the error. */
const setStack = (error, value) => Object.defineProperty(error, 'stack', { value, configurable: true, writable: true });

/** Takes the package's own frames off the beginning of an error's stack. */
exports.beginWithProgram = (error) => {
  const { stackTraceLimit } = Error;
  if (OWN === null || typeof stackTraceLimit !== 'number') return;
  try {
    Error.stackTraceLimit = stackTraceLimit + MOST_OWN;
    Error.captureStackTrace(error);
    Error.stackTraceLimit = stackTraceLimit;
    const lines = error.stack.split('\n');
    const begin = lines.findIndex((line) => /^\s+at /.test(line));
    const own = lines.slice(begin).findIndex((line) => !line.includes(OWN));
    if (begin < 0 || own < 0) return;
    lines.splice(begin, own);
    setStack(error, lines.slice(0, begin + stackTraceLimit).join('\n'));
  } catch {
    // `Error` is frozen, or the program formats stacks as something else: it stays as it is.
  }
};

exports.setStack = setStack;
