'use strict';

// The one binary of the process. Two copies of the package (two versions in node_modules) would be two sets of queues,
// and an unlock in one would never wake a waiter of the other; so all copies use the binary that was loaded first.

const own = load();
const first = own.firstCopy();
if (first !== null && first.protocol !== own.PROTOCOL) {
  throw Object.assign(
    new Error(
      `Two incompatible copies of sablock in one process: ${first.path} (protocol ${first.protocol}) was loaded first, ` +
        `${__dirname} (protocol ${own.PROTOCOL}) cannot work with it. Install one version for all who depend on it.`,
    ),
    { code: 'ERR_LOCK_TWO_COPIES' },
  );
}

function load() {
  let reason = 'WebAssembly (WASI) has no access to the memory that threads share';
  let cause;
  try {
    const found = require('../binding.js');
    if (found.__napiBindingTarget === 'native') return found;
  } catch (error) {
    reason = 'none could be loaded (see the cause)';
    cause = error;
  }
  const message =
    `sablock needs its native binary for ${process.platform}-${process.arch}, and ${reason}. It comes in a package for ` +
    'each platform, which npm installs as an optional dependency: install again without --omit=optional, on the system ' +
    'where it is to run, or build it from the sources.';
  throw Object.assign(new Error(message, { cause }), { code: 'ERR_LOCK_NO_BINARY' });
}

module.exports = first === null ? own : require(first.path);
