// The arguments of `node --test`, wherever files of tests are run.

const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');

/** Files that run at once: they wait more than they compute, so that with fewer of them two cores are idle for a fifth of the time. */
exports.AT_ONCE = Math.ceil(3.5 * os.availableParallelism());

/** A file whose process does not end by then is killed, and has failed: one that hangs would hold up all, in milliseconds. */
exports.FILE_LIMIT = 600_000;

/** The files of `npm test`; folders below those of the subjects have tests of their own, or are installed. */
exports.testFiles = () =>
  fs
    .readdirSync(path.join(__dirname, '..', '__test__'), { recursive: true })
    .filter((file) => file.endsWith('.test.js') && path.dirname(file).split(path.sep).length === 1)
    .map((file) => path.join('__test__', file))
    .sort();

exports.nodeTest = (files) => [
  '--test',
  `--test-timeout=${exports.FILE_LIMIT}`,
  `--test-concurrency=${exports.AT_ONCE}`,
  ...files,
];
