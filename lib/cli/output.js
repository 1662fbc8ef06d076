// The output of a command, and how it says that it cannot.

const { adviceOn } = require('../misspelt-options.js');

/** The code of a command line that cannot be understood. */
const MISUSED = 2;
exports.MISUSED = MISUSED;
/** As shells have it of a program whose reader has closed the pipe. */
const UNREAD = 141;

exports.fail = (message, code = MISUSED) => {
  process.stderr.write(`sablock: ${message}\n`);
  process.exitCode = code;
};

exports.unknownOption = (command, option, known) => {
  const advice = adviceOn(option, known);
  return `${command} does not know ${option}.${advice === undefined ? '' : ` ${advice}`}`;
};

exports.print = (text) => {
  process.stdout.once('error', ({ code, message }) => {
    if (code === 'EPIPE') process.exitCode = UNREAD;
    else exports.fail(message, 1);
  });
  process.stdout.write(text);
};
