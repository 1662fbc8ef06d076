// What this Node.js can parse.

const vm = require('node:vm');

const parses = (source) => {
  try {
    new vm.Script(source);
    return true;
  } catch {
    return false;
  }
};

/** Whether `using` need not be compiled first. */
exports.USING_IS_KNOWN = parses('{ using resource = null; }');
