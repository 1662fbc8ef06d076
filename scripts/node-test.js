// The arguments of `node --test`, wherever files of tests are run.

const os = require('node:os');

/** Files that run at once: they wait more than they compute. package.json says the same for two processors. */
exports.AT_ONCE = Math.ceil(2.5 * os.availableParallelism());

/** A file whose process does not end by then is killed, and has failed: one that hangs would hold up all, in milliseconds. */
const FILE_LIMIT = 600_000;

exports.nodeTest = (files) => [
  '--test',
  `--test-timeout=${FILE_LIMIT}`,
  `--test-concurrency=${exports.AT_ONCE}`,
  ...files,
];
