// Refuses servers and poolers behind which the locks of sessions do not exclude.

const { randomBytes } = require('node:crypto');
const { storeError } = require('../errors.js');

const TRIES = 3;

/** Two sessions of one place: rejects unless a lock of the first keeps the second out, and goes when it is unlocked. */
exports.checkExclusion = async ({ store, pooler, keyOf }, first, second) => {
  const refused = () => storeError(`This ${store} cannot keep locks: ${pooler}`, { isFinal: true });
  for (let round = 0; round < TRIES; round += 1) {
    const key = keyOf('sablock probe', randomBytes(8).toString('hex'));
    const ask = async (session, isLock) => {
      const { isDone, id } = await session.probe(key, isLock);
      // A pooler may have moved it to another session of the server.
      if (id !== session.id) throw refused();
      return isDone;
    };
    try {
      const got = await ask(first, true);
      const others = await ask(second, true);
      const freed = await ask(first, false);
      const next = await ask(second, true);
      const last = await ask(second, false);
      if (!got || others || !freed || !next || !last) throw refused();
    } catch (error) {
      // A lock that is left there would be left for ever: each has at most two. A pooler's session may have locks of others.
      for (const session of [first, first, second, second]) await session.probe(key, false).catch(() => {});
      throw error;
    }
  }
};
