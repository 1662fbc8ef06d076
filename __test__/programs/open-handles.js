// Loads the package while hooks look on, and prints whether the resources of its loading say that they keep the process alive.

const { createHook } = require('node:async_hooks');

const resources = [];
const hook = createHook({
  init(_, type, __, resource) {
    if (!['PROMISE', 'TickObject', 'Immediate', 'Timeout'].includes(type)) resources.push({ type, resource });
  },
}).enable();
const { Mutex } = require('../..');
const types = resources.map(({ type }) => type);
const [loaded] = resources;
hook.disable();

const hasRef = () => loaded.resource.hasRef();

const main = async () => {
  const mutex = new Mutex(new SharedArrayBuffer(Mutex.BYTES));
  const seen = { resources: types, loaded: hasRef() };
  mutex.tryLock();
  const pending = mutex.lockAsync();
  seen.pending = hasRef();
  mutex.unlock();
  await pending;
  const unreferenced = mutex.lockAsync({ ref: false });
  seen.unreferenced = hasRef();
  mutex.unlock();
  await unreferenced;
  mutex.unlock();
  seen.over = hasRef();
  console.log(JSON.stringify(seen));
};

main();
