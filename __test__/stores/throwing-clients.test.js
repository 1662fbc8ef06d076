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

/** By kind: an error of the server that stays, one that may pass, and the answers of one that cannot keep locks. */
const ANSWERS = {
  MySQL: {
    stays: { errno: 1044, sqlState: '42000', message: 'Access denied.' },
    passes: { errno: 1205, sqlState: 'HY000', message: 'Lock wait timeout exceeded.' },
    replica: [[{ id: 1, isReadOnly: 'ON' }]],
  },
  PostgreSQL: {
    stays: { code: '42501', severity: 'ERROR', message: 'permission denied.', hint: 'Ask.' },
    passes: { code: '40001', severity: 'ERROR', message: 'could not serialize access' },
    replica: { rows: [{ pid: 1, recovers: true }] },
  },
};

for (const [kind, { stays, passes, replica }] of Object.entries(ANSWERS)) {
  test(`${kind}: a refusal that stays is final and says so, one that may pass is what the server said; the session goes on`, async () => {
    let error = stays;
    const it = create(SESSIONS[kind], { query: () => Promise.reject(Object.assign(new Error(error.message), error)) });
    await assert.rejects(it.session.query('select 1'), {
      code: 'ERR_LOCK_STORE',
      isFinal: true,
      message: new RegExp(`^${kind} refuses: ${stays.message}${stays.hint ? ` ${stays.hint}` : ''}$`),
      cause: Object.assign(new Error(stays.message), stays),
    });
    error = passes;
    await assert.rejects(it.session.query('select 1'), passes);
    assert.deepEqual([it.session.isOver, it.ended], [false, 0]);
    it.session.end(new Error('The test is over.'));
  });

  test(`${kind}: a server that has none of its primary's locks is refused for good`, async () => {
    const it = create(SESSIONS[kind], { query: async () => replica });
    await assert.rejects(it.session.begin(HEARTBEAT), {
      code: 'ERR_LOCK_STORE',
      isFinal: true,
      message: /primary/,
    });
    it.session.end(new Error('The test is over.'));
  });
}

test(
  'a connect() whose thenable never calls back, and returns nothing, is late, and no uncaught error',
  needs('uncaught subscribers'),
  watched(async () => {
    await noting(async (uncaught) => {
      // biome-ignore lint/suspicious/noThenProperty: that of a client.
      await assert.rejects(within(10, { then() {} }), { code: 'ERR_LOCK_STORE' });
      // Nor is one that fails later.
      const later = sleep(30).then(fail);
      await assert.rejects(within(10, later), { code: 'ERR_LOCK_STORE' });
      await assert.rejects(later, { message: 'on purpose' });
      await sleep(10);
      assert.deepEqual(uncaught, []);
    });
  }),
);
