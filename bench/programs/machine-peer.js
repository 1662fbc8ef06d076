'use strict';
// One of some processes that share a lock: does what lib/peers.js tells it.

const { busyFor, sharedNs } = require('../lib/clock');
const { Witness, open } = require('../lib/machine-locks');

const { face, directory, root, store } = JSON.parse(process.argv[2]);
const take = store === undefined ? open(face, directory, root) : require('../lib/store-locks').open(face, store, root);
const witness = new Witness(directory);
busyFor(1); // looks at its clock, once for all

let held;

const ORDERS = {
  async take() {
    // Sent before the wait, which may block this thread.
    await new Promise((resolve) => process.send({ asking: true }, resolve));
    held = await take();
    const at = sharedNs();
    const { inside, leftAt } = witness.enter();
    if (held.abandoned) held.consistent();
    return { at, inside, leftAt, abandoned: held.abandoned };
  },

  async give() {
    const isAlone = witness.leave();
    await held.unlock();
    return { isAlone };
  },

  /** Holds of `hold` microseconds, one after the other; at least one. */
  async loop({ from, ms, hold }) {
    const busy = busyFor(hold);
    const waits = [];
    let doubles = 0;
    while (sharedNs() < from);
    const end = from + ms * 1e6;
    do {
      const asked = sharedNs();
      const lock = await take();
      waits.push(sharedNs() - asked);
      const { inside } = witness.enter();
      busy();
      if (!witness.leave() || inside !== 0) doubles++;
      await lock.unlock();
    } while (sharedNs() < end);
    return { waits, doubles };
  },
};

process.on('message', async ({ order, ...params }) => {
  try {
    process.send({ done: await ORDERS[order](params) });
  } catch (error) {
    process.send({ error: String(error?.message ?? error) });
  }
});
process.on('disconnect', () => process.exit());
process.send({ ready: true });
