// Modules that are loaded when they are first needed, because start-up counts.

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

/**
 * Modules that programs load beside the package itself. Node has an ES module's imports in its cache before they run, and fails if
 * one of them is not there any more then.
 */
const ENTRIES = ['doctor/index.js', 'stores/etcd.js', 'stores/mysql.js', 'stores/postgres.js', 'stores/redis.js'];

function dropPieces() {
  // Here, because at the start nothing is dropped.
  const { join, sep } = require('node:path');
  const lib = join(__dirname, '..', sep);
  const entries = ENTRIES.map((entry) => join(lib, entry));
  // A bundle has no cache.
  for (const [file, module] of Object.entries(require.cache ?? {})) {
    if (module?.loaded === false && file.startsWith(lib) && !entries.includes(file)) delete require.cache[file];
  }
}
