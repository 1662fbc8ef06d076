// What is loaded when it is first needed, because start-up counts.

const path = require('node:path');

/** The folder of the package's files. */
const LIB = path.join(__dirname, '..', path.sep);

/**
 * Returns a function that loads once. If JS is interrupted while a module loads (by a `vm` timeout, say), a piece of it stays in
 * Node's cache, and everybody would get that: it has to go first.
 */
exports.lazily = (load) => {
  let loaded;
  return () => {
    if (loaded === undefined) {
      dropPieces();
      loaded = load();
    }
    return loaded;
  };
};

function dropPieces() {
  // A bundle has no cache.
  for (const [file, module] of Object.entries(require.cache ?? {})) {
    if (module?.loaded === false && file.startsWith(LIB)) delete require.cache[file];
  }
}
