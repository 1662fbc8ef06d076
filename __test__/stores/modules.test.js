// Clients that a module of the program connects, `{ module }`, in the place of those that are installed.

const assert = require('node:assert/strict');
const { EventEmitter } = require('node:events');
const fs = require('node:fs');
const path = require('node:path');
const { test } = require('node:test');
const mysql = require('../../lib/stores/mysql/connect.js');
const postgres = require('../../lib/stores/postgres/connect.js');
const redis = require('../../lib/stores/redis/client.js');
const { createFolder } = require('../helpers/folder.js');
const { deferred } = require('../helpers/names.js');
const { watched } = require('../helpers/threads.js');

const KINDS = { MySQL: mysql, PostgreSQL: postgres, Redis: redis };
const nothing = () => {};

/** A client that any of them takes, and what becomes known once it was ended. */
function createClient() {
  const ended = deferred();
  const end = async () => ended.resolve('ended');
  const client = Object.assign(new EventEmitter(), { query: nothing, end, destroy: end, sendCommand: (args) => args });
  return { client, ended: ended.promise };
}

/** Connects by a module whose `connect()` is this one. */
function connectBy(t, kind, connect, connectTimeout) {
  const module = path.join(createFolder(t), 'client.js');
  fs.writeFileSync(module, '');
  require(module);
  require.cache[module].exports = { connect };
  t.after(() => delete require.cache[module]);
  return KINDS[kind].connect({ connection: { module }, settings: { connectTimeout, heartbeat: 1000 } }, nothing);
}

for (const kind of Object.keys(KINDS)) {
  test(
    `${kind}: what connect() of a module returns is the client`,
    watched(async (t) => {
      const { client } = createClient();
      const connected = await connectBy(t, kind, async () => client, 60_000);
      if (kind === 'Redis') assert.deepEqual(connected.send(['PING']), ['PING']);
      else assert.equal(connected, client);
    }),
  );

  test(
    `${kind}: what connect() of a module fails with is said`,
    watched(async (t) => {
      const fails = async () => {
        throw new Error('not today');
      };
      await assert.rejects(connectBy(t, kind, fails, 60_000), { message: /not today/ });
    }),
  );

  test(
    `${kind}: a client that a module connects after the time for it is ended`,
    watched(async (t) => {
      const { client, ended } = createClient();
      const connects = deferred();
      await assert.rejects(
        connectBy(t, kind, () => connects.promise, 10),
        { code: 'ERR_LOCK_STORE', message: /within 10 ms/ },
      );
      connects.resolve(client);
      assert.equal(await ended, 'ended');
    }),
  );
}
