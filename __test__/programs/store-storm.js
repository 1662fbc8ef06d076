// A process of the storm: takes names of a store again and again, and writes to the register of the parent with its fence.

const { LockManager } = require('../..');
const [kind, url, settings, limit] = process.argv.slice(2);
const make = require(`../../lib/stores/${kind}.js`)[kind];
const manager = new LockManager({ store: make(url, JSON.parse(settings)) });
/** Between two requests, once the storm is over. */
const CALM_MS = 200;
const pending = new Map();
let last = 0;

/** The storm is over. */
let isCalm = false;

process.on('message', ({ id, isTaken, isOver = false }) => {
  isCalm ||= isOver;
  if (isOver) return;
  pending.get(id)(isTaken);
  pending.delete(id);
});
process.on('disconnect', () => process.exit());

const write = (name, fence) =>
  new Promise((resolve) => {
    last += 1;
    pending.set(last, resolve);
    process.send({ kind: 'write', id: last, name, fence: String(fence) });
  });

async function once() {
  const name = `storm ${Math.floor(Math.random() * 3)}`;
  const timeout = Math.random() < 0.3 ? Math.random() * 30 : 20_000;
  await manager
    .request(name, { timeout, fence: true }, async (lock) => {
      for (let writes = 0; writes < 3; writes += 1) {
        // It may be stopped here, and does not look.
        await new Promise((resolve) => setTimeout(resolve, Math.random() * 10));
        const isTaken = await write(name, lock.fence);
        if (isTaken) continue;
        // Somebody newer was there: then this has lost it, and learns of it.
        if (lock.locked) await new Promise((resolve) => setTimeout(resolve, Number(limit)));
        process.send({ kind: lock.locked ? 'untold' : 'told', name, fence: String(lock.fence) });
      }
      process.send({ kind: 'held' });
    })
    .catch((error) => {
      if (!['ERR_LOCK_TIMEOUT', 'ERR_LOCK_LOST', 'ERR_LOCK_STORE'].includes(error.code)) {
        process.send({ kind: 'failed', message: error.stack });
      }
    });
}

async function loop() {
  for (;;) {
    await once();
    if (isCalm) await new Promise((resolve) => setTimeout(resolve, CALM_MS));
  }
}

for (let task = 0; task < 3; task += 1) loop();
