// Collects garbage whenever that is called, though Node.js was not started with --expose-gc.

const v8 = require('node:v8');
const vm = require('node:vm');

/** Returns the function; the runtimes that have no such flag have none. */
exports.collector = () => {
  v8.setFlagsFromString('--expose-gc');
  return vm.runInNewContext('gc');
};
