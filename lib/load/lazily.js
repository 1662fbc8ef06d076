// What is loaded when it is first needed, because start-up counts.

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
  // Here, because at the start nothing is dropped.
  const { join, sep } = require('node:path');
  const lib = join(__dirname, '..', sep);
  // A bundle has no cache.
  for (const [file, module] of Object.entries(require.cache ?? {})) {
    if (module?.loaded === false && file.startsWith(lib)) delete require.cache[file];
  }
}
