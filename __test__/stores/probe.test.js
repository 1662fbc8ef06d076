// The probe that refuses servers and poolers behind which the locks of sessions do not exclude. The server is the test.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { SessionKeeper } = require('../../lib/stores/sessions/keeper.js');
const { checkExclusion } = require('../../lib/stores/sessions/probe.js');

const KIND = { store: 'Store', pooler: 'this is no place for locks.', keyOf: (space, name) => `${space}/${name}` };
const REFUSED = {
  code: 'ERR_LOCK_STORE',
  isFinal: true,
  message: 'This Store cannot keep locks: this is no place for locks.',
};

/**
 * Two sessions of one server that keeps locks, but for what `wrong` says of the call of this number: `isDone`, `error`, or `id`, the
 * session where it came to; one that locks stays there. `log` has what was asked, `holders` what is locked.
 */
function serve(wrong = {}) {
  const it = { log: [], keys: new Set(), holders: new Map() };
  const sessionOf = (own) => ({
    id: own,
    at: own,
    async probe(key, isLock) {
      it.keys.add(key);
      it.log.push(`${own} ${isLock ? 'locks' : 'unlocks'}`);
      const { error, isDone, id = this.at } = wrong[it.log.length] ?? {};
      if (error !== undefined) throw error;
      if (isLock) this.at = id;
      const holder = it.holders.get(key) ?? { id, count: 0 };
      const isItsOwn = holder.id === id && (isLock || holder.count > 0);
      if (isItsOwn) {
        holder.count += isLock ? 1 : -1;
        if (holder.count > 0) it.holders.set(key, holder);
        else it.holders.delete(key);
      }
      return { isDone: isDone ?? isItsOwn, id };
    },
  });
  it.check = () => checkExclusion(KIND, sessionOf(1), sessionOf(2));
  return it;
}

const ROUND = ['1 locks', '2 locks', '1 unlocks', '2 locks', '2 unlocks'];

test('a server that keeps locks is tried three times, by a key of its own each time', async () => {
  const it = serve();
  await it.check();
  assert.deepEqual(it.log, [...ROUND, ...ROUND, ...ROUND]);
  assert.equal(it.keys.size, 3);
  for (const key of it.keys) assert.match(key, /^sablock probe\//);
});

for (const [index, step] of ROUND.entries()) {
  for (const round of [0, 2]) {
    const at = round * ROUND.length + index + 1;
    test(`a server is refused if "${step}" comes to something else, in round ${round}, and nothing stays locked there`, async () => {
      const it = serve({ [at]: { isDone: step === '2 locks' && index === 1 } });
      await assert.rejects(it.check(), REFUSED);
      assert.equal(it.holders.size, 0);
      assert.equal(it.keys.size, round + 1);
    });
  }

  test(`a server is refused if "${step}" comes to another session, though it does what it should, and nothing stays locked there`, async () => {
    const it = serve({ [index + 1]: { id: 3 } });
    await assert.rejects(it.check(), REFUSED);
    assert.deepEqual(it.log.slice(0, index + 1), ROUND.slice(0, index + 1));
    assert.equal(it.keys.size, 1);
    assert.equal(it.holders.size, 0);
  });

  test(`nothing stays locked if "${step}" fails, and the error is the server's`, async () => {
    const error = new Error('The statement took too long.');
    const it = serve({ [index + 1]: { error } });
    await assert.rejects(it.check(), error);
    assert.equal(it.holders.size, 0);
  });
}

for (const [what, failing, message] of [
  ['the second session cannot be opened', 'begin', /: no room\.$/],
  ['the two do not exclude each other', 'probe', /^This Store cannot keep locks: /],
]) {
  test(`no session of a server stays open if ${what}`, async () => {
    const sessions = [];
    class Session {
      id = sessions.push(this);
      ends = 0;

      async begin() {
        if (failing === 'begin' && this.id === 2) throw new Error('no room');
      }

      async probe() {
        return { isDone: false, id: this.id };
      }

      end() {
        this.ends += 1;
      }
    }
    const settings = { connections: 2, heartbeat: 5000, connectTimeout: 5000 };
    const keeper = new SessionKeeper({ ...KIND, Session, connect: async () => ({}) }, { settings }, 0);
    await assert.rejects(keeper.begin(), { code: 'ERR_LOCK_STORE', message });
    assert.deepEqual(
      sessions.map(({ ends }) => ends > 0),
      [true, true],
    );
  });
}
