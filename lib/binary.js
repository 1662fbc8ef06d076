// The one binary of the process. Two copies of the package (two versions in node_modules) would be two sets of queues,
// and an unlock in one would never wake a waiter of the other; so all copies use the binary that was loaded first.

let binding = require('../binding.js');

if (binding.__napiBindingTarget !== 'native') {
  throw new Error(
    'sablock needs its native binary: WebAssembly (WASI) has no access to the memory that threads share.',
  );
}

const first = binding.firstCopy();
if (first !== null) {
  if (first.protocol !== binding.PROTOCOL) {
    throw Object.assign(
      new Error(
        `Two incompatible copies of sablock in one process: ${first.path} (protocol ${first.protocol}) was loaded first, ` +
          `${__dirname} (protocol ${binding.PROTOCOL}) cannot work with it. Install one version for all who depend on it.`,
      ),
      { code: 'ERR_LOCK_TWO_COPIES' },
    );
  }
  binding = require(first.path);
}

module.exports = binding;
