// What `node --test` is called with, wherever files of tests are run.

/** A file whose process does not end by then is killed, and has failed: one that hangs would hold up all, in milliseconds. */
const FILE_LIMIT = 600_000;

exports.nodeTest = (files, atOnce = 2) => [
  '--test',
  `--test-timeout=${FILE_LIMIT}`,
  `--test-concurrency=${atOnce}`,
  ...files,
];
