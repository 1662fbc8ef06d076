// Clients of the program that throw where others do not, or reject with what is no error: the session is over, and that is known.

const assert = require('node:assert/strict');
const { EventEmitter } = require('node:events');
const { test } = require('node:test');
const { setTimeout: sleep } = require('node:timers/promises');
const { binding } = require('../../lib/engine/thread.js');
const { MysqlSession } = require('../../lib/stores/mysql/session.js');
const { PostgresSession } = require('../../lib/stores/postgres/session.js');
const { FAREWELL_MS, within } = require('../../lib/stores/retry.js');
const { needs } = require('../helpers/runtime.js');
const { watched } = require('../helpers/threads.js');
const { noting } = require('../helpers/uncaught.js');

const SESSIONS = { PostgreSQL: PostgresSession, MySQL: MysqlSession };
const HEARTBEAT = 60_000;
const fail = () => {
  throw new Error('on purpose');
};
const CLIENTS = {
  'an end()': {},
  'a destroy() of its stream': { connection: { stream: { destroy: fail } } },
};

/** A session with a client of these methods, and how often it has ended. */
const create = (Session, methods) => {
  const client = Object.assign(new EventEmitter(), { end: fail }, methods);
  const it = { ended: 0 };
  const on = { onRenewed() {}, onEnd: () => (it.ended += 1) };
  it.session = new Session('It', client, binding.openDesk(false), HEARTBEAT, on);
  return it;
};

for (const [kind, Session] of Object.entries(SESSIONS)) {
  for (const [what, methods] of Object.entries(CLIENTS)) {
    for (const error of [undefined, new Error('lost')]) {
      test(
        `a session of ${kind} ${error === undefined ? 'that is closed' : 'that is lost'} is over, if ${what} throws`,
        needs('uncaught subscribers'),
        watched(async () => {
          const it = create(Session, methods);
          await noting(async (uncaught) => {
            if (error === undefined) it.session.end(undefined, 0);
            else it.session.end(error);
            assert.deepEqual([it.session.isOver, it.ended], [true, 1]);
            if (error === undefined) await sleep(FAREWELL_MS + 100);
            assert.deepEqual(uncaught, []);
          });
        }),
      );
    }
  }

  for (const reason of [undefined, null, 'a word']) {
    test(`a session of ${kind} whose client rejects with ${reason} is over, and says what came`, async () => {
      const it = create(Session, { query: () => Promise.reject(reason) });
      await assert.rejects(it.session.query('select 1'), {
        message: `The client failed with ${reason === 'a word' ? `'${reason}'` : reason}`,
      });
      assert.deepEqual([it.session.isOver, it.ended], [true, 1]);
    });
  }
}

test(
  'a connect() whose thenable never calls back, and returns nothing, is late, and no uncaught error',
  needs('uncaught subscribers'),
  watched(async () => {
    await noting(async (uncaught) => {
      // biome-ignore lint/suspicious/noThenProperty: that of a client.
      await assert.rejects(within(10, { then() {} }), { code: 'ERR_LOCK_STORE' });
      await sleep(10);
      assert.deepEqual(uncaught, []);
    });
  }),
);
