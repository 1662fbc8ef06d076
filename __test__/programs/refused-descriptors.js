// Requests locks of a machine while the process has no file descriptor left, then one, two, ... Prints, as JSON, each code that they
// failed with, and what is held, or waits, once there are enough again. `sh -c 'ulimit -n 64; node FILE DIRECTORY'`

const fs = require('node:fs');
const { LockManager } = require('../..');

const [directory] = process.argv.slice(2);
const manager = new LockManager({ directory, allowMainThread: true });
/** More than a request for two names has open at once. */
const ENOUGH = 12;

/** Ways to ask, each for names of its own. */
const WAYS = {
  request: (name) => manager.request(name, () => 'had'),
  'request of several': (name) => manager.request([`${name} b`, `${name} a`], () => 'had'),
  'request with a timeout': (name) => manager.request(name, { timeout: 1000 }, () => 'had'),
  'request with a signal': (name) => manager.request(name, { signal: new AbortController().signal }, () => 'had'),
  'shared request': (name) => manager.request(name, { mode: 'shared' }, () => 'had'),
  acquireAsync: async (name) => {
    (await manager.acquireAsync([`${name} a`, `${name} b`])).unlock();
    return 'had';
  },
  requestSync: async (name) => manager.requestSync([`${name} a`, `${name} b`], () => 'had'),
  acquire: async (name) => {
    manager.acquire(name).unlock();
    return 'had';
  },
  query: async () => {
    await manager.query();
    return 'had';
  },
};

async function main() {
  const spare = [];
  try {
    for (;;) spare.push(fs.openSync(directory));
  } catch (error) {
    if (error.code !== 'EMFILE') throw error;
  }
  const failures = [];
  const names = [];
  for (let left = 0; left <= ENOUGH; left++) {
    for (const [way, ask] of Object.entries(WAYS)) {
      const name = `${way} ${left}`;
      names.push(name, `${name} a`, `${name} b`);
      const result = await ask(name).catch(({ code }) => code);
      if (result !== 'had') failures.push([way, left, result]);
    }
    fs.closeSync(spare.pop());
  }
  for (const descriptor of spare) fs.closeSync(descriptor);
  const stuck = [];
  for (const name of names) {
    await manager.request(name, { ifAvailable: true }, (lock) => {
      if (lock === null || lock.abandoned) stuck.push(name);
    });
  }
  const { held, pending } = await manager.query();
  console.log(JSON.stringify({ failures, stuck, held, pending }));
}

main();
