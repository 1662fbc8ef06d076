// The modules of Node that the package loads for diagnosis, and when it loads its own part.

// Which loads the channels itself.
require('node:worker_threads');

const builtins = () => process.moduleLoadList.filter((name) => name.includes('diagnostics_channel'));
const loadedByNode = builtins();
const { Mutex } = require('../..');

const isLoaded = () => Object.keys(require.cache).some((file) => /\blib.engine.diagnosis\.js$/.test(file));
const mutex = new Mutex(new SharedArrayBuffer(Mutex.BYTES));
mutex.tryLock();
mutex.unlock();
mutex.lockAsync().then(async () => {
  const loaded = { builtins: builtins().filter((name) => !loadedByNode.includes(name)), before: isLoaded() };
  await mutex.lockAsync(1);
  console.log(JSON.stringify({ ...loaded, after: isLoaded() }));
});
