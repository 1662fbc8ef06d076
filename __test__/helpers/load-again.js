const path = require('node:path');

const ROOT = path.join(__dirname, '..', '..');
const TESTS = path.join(ROOT, '__test__') + path.sep;

/** Loads the package anew, with the binding, as a test runner does that clears the require cache. */
exports.loadAgain = () => {
  for (const file of Object.keys(require.cache)) {
    if (file.startsWith(ROOT + path.sep) && !file.startsWith(TESTS)) delete require.cache[file];
  }
  return require('../..');
};
