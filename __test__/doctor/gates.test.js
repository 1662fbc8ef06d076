// Gates: locks that are held around two others. Two edges of a circle that have a gate in common cannot be at once; what counts is
// every sighting of an order, and not only the first.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { createLocks, namedMutexes, withDoctor } = require('../helpers/doctor.js');
const { needs } = require('../helpers/runtime.js');
const { watched } = require('../helpers/threads.js');
const sablock = require('../../index.js');

const { LockManager, LockTable, RwLock, Semaphore } = sablock;

const OPTIONS = { allowMainThread: true };
const QUIET = { contention: false, stuckMs: Infinity, longHoldMs: Infinity };
const manager = new LockManager(OPTIONS);

const mutexes = () => namedMutexes(5, OPTIONS);
let made = 0;
const names = () => {
  made += 1;
  return Array.from('abcde', (letter) => ({ name: `gates ${process.pid}.${made} ${letter}` }));
};

/** Ways to hold one inside of the other: how locks are made, and `inside(lock, body)`. */
const WAYS = {
  'executeLocked()': { make: mutexes, needed: ['async frames'], inside: (lock, body) => lock.executeLocked(body) },
  'lock()': {
    make: mutexes,
    async inside(lock, body) {
      lock.lock();
      await body();
      lock.unlock();
    },
  },
  'request()': { make: names, needed: ['async frames'], inside: ({ name }, body) => manager.request(name, body) },
  'acquire()': {
    make: names,
    needed: ['async hooks'],
    async inside({ name }, body) {
      const held = manager.acquire(name);
      await body();
      held.unlock();
    },
  },
};

/** `gab`: `a` inside of `g`, and `b` inside of both. Gates are `g` and `h`. */
const LETTERS = 'abcgh';
const again = (order, times) => Array.from({ length: times }, () => order);
const CASES = [
  // Without the gate, before and after.
  [['gab', 'ab', 'gba'], ['ab']],
  [['ab', 'gab', 'gba'], ['ab']],
  [['gab', 'gba', 'ab'], ['ab']],
  [['gab', 'gba', 'ba'], ['ab']],
  [[...again('gab', 10), 'ab', 'gba'], ['ab']],
  // With the same gate all the time, or one of several.
  [['gab', 'gba'], []],
  [[...again('gab', 3), ...again('gba', 3)], []],
  [['ghab', 'gba'], []],
  [['ghab', 'hba'], []],
  [['gab', 'ghab', 'gba'], []],
  // With another.
  [['gab', 'hba'], ['ab']],
  [['gab', 'hab', 'gba'], ['ab']],
  [['gab', 'gba', 'hab'], ['ab']],
  [['ghab', 'gab', 'hba'], ['ab']],
  [['ghab', 'hba', 'gab'], ['ab']],
  // Of three.
  [['gab', 'gbc', 'gca'], []],
  [['gab', 'gbc', 'ca'], []],
  [['gab', 'gbc', 'gca', 'bc', 'ab'], ['abc']],
  [['gab', 'hab', 'gbc', 'ca'], ['abc']],
];

for (const [way, { make, needed = [], inside }] of Object.entries(WAYS)) {
  for (const [orders, expected] of CASES) {
    const what = expected.length > 0 ? `are a cycle ${expected}` : 'are none';
    test(
      `${way}: the orders ${orders.join(', ')} ${what}`,
      needs(...needed),
      watched(() =>
        withDoctor(QUIET, async (doctor) => {
          const locks = make();
          const named = locks.map(({ name }) => name);
          const take = ([letter, ...rest]) =>
            inside(locks[LETTERS.indexOf(letter)], () => (rest.length > 0 ? take(rest) : undefined));
          for (const order of orders) await take([...order]);
          const cycles = doctor
            .report()
            .lockOrder.map(({ edges }) => edges.map(({ from }) => LETTERS[named.indexOf(from.name)]).join(''));
          assert.deepEqual(cycles, expected);
        }),
      ),
    );
  }
}

for (const [kind, isGate] of [
  ['read', false],
  ['write', true],
]) {
  test(
    `a lock that is held around both orders, by its ${kind}, ${isGate ? 'is a gate' : 'lets both in at once'}`,
    watched(() =>
      withDoctor(QUIET, async (doctor) => {
        const around = new RwLock(new SharedArrayBuffer(RwLock.BYTES), 0, OPTIONS)[kind];
        const [a, b] = mutexes();
        const { inside } = WAYS['lock()'];
        const take = (outer, inner) => inside(around, () => inside(outer, () => inside(inner, () => {})));
        await take(a, b);
        await take(b, a);
        assert.equal(doctor.report().lockOrder.length, isGate ? 0 : 1);
      }),
    ),
  );
}

for (const [kind, isGate] of [
  ['read', false],
  ['write', true],
]) {
  for (const verb of ['lockAll', 'lockAllAsync']) {
    test(
      `a lock that ${verb}() holds around both orders, by its ${kind}, ${isGate ? 'is a gate' : 'lets both in at once'}`,
      watched(() =>
        withDoctor(QUIET, async (doctor) => {
          const around = new RwLock(new SharedArrayBuffer(RwLock.BYTES), 0, OPTIONS)[kind];
          const [a, b] = mutexes();
          for (const [outer, inner] of [
            [a, b],
            [b, a],
          ]) {
            const guard = await sablock[verb]([around]);
            outer.executeLockedSync(() => inner.executeLockedSync(() => {}));
            guard.unlock();
          }
          assert.equal(doctor.report().lockOrder.length, isGate ? 0 : 1);
        }),
      ),
    );
  }
}

for (const [mode, isGate] of [
  ['shared', false],
  ['exclusive', true],
]) {
  for (const verb of ['acquire', 'request']) {
    test(
      `a name that is held around both orders by ${verb}(), ${mode}, ${isGate ? 'is a gate' : 'lets both in at once'}`,
      needs('async hooks', 'async frames'),
      watched(() =>
        withDoctor(QUIET, async (doctor) => {
          const [{ name: around }, ...pair] = names();
          const both = async (outer, inner) => {
            await manager.request(outer.name, () => manager.request(inner.name, () => {}));
          };
          const take = async (outer, inner) => {
            if (verb === 'request') return manager.request(around, { mode }, () => both(outer, inner));
            const held = manager.acquire(around, { mode });
            const [first, second] = [outer, inner].map(({ name }) => manager.acquire(name));
            second.unlock();
            first.unlock();
            held.unlock();
          };
          const [a, b] = pair;
          await take(a, b);
          await take(b, a);
          assert.equal(doctor.report().lockOrder.length, isGate ? 0 : 1);
        }),
      ),
    );
  }
}

/** Ways to hold a row of a table around a body. */
const ROWS = {
  'lock()': (table, row, body) => {
    table.lock(row);
    body();
    table.unlock(row);
  },
  'at()': (table, row, body) => table.at(row).executeLockedSync(body),
};

for (const [rows, isGate] of [
  [[0, 0], true],
  [[1, 1], true],
  [[0, 1], false],
  [[1, 2], false],
]) {
  for (const [ways, [first, second]] of Object.entries({
    'lock()': [ROWS['lock()'], ROWS['lock()']],
    'at()': [ROWS['at()'], ROWS['at()']],
    'lock() and at()': [ROWS['lock()'], ROWS['at()']],
  })) {
    test(
      `${ways} of rows ${rows} of a table around both orders ${isGate ? 'is a gate' : 'lets both in at once'}`,
      watched(() =>
        withDoctor(QUIET, async (doctor) => {
          const table = new LockTable(new SharedArrayBuffer(LockTable.bytes(4)), 0, 4, OPTIONS);
          const [a, b] = mutexes();
          first(table, rows[0], () => a.executeLockedSync(() => b.executeLockedSync(() => {})));
          second(table, rows[1], () => b.executeLockedSync(() => a.executeLockedSync(() => {})));
          const ofBoth = doctor.report().lockOrder.filter(({ edges }) => edges.length === 2);
          assert.equal(ofBoth.length, isGate ? 0 : 1);
        }),
      ),
    );
  }
}

/** Inside of more, no order is noted: what is held would be a gate of each other. */
const MOST_HELD = 64;

/** Locks for both ways: what is asked for by its name needs nothing else. */
const createNamed = (count) =>
  createLocks(count, (index) => ({ ...OPTIONS, name: `many ${process.pid}.${count} ${index}` }));

for (const way of ['lock()', 'acquire()']) {
  for (const [held, isNoted] of [
    [MOST_HELD, true],
    [MOST_HELD + 1, false],
    [1000, false],
  ]) {
    test(
      `${way}: what is locked inside of ${held} locks is ${isNoted ? 'in an order' : 'in none'}`,
      needs(...(WAYS[way].needed ?? [])),
      watched(() =>
        withDoctor(QUIET, async (doctor) => {
          const { inside } = WAYS[way];
          const locks = createNamed(held + 1);
          const nest = ([lock, ...rest]) => inside(lock, () => (rest.length > 0 ? nest(rest) : undefined));
          await nest(locks);
          await nest([locks[held], locks[0]]);
          const last = locks[held].name;
          const isEdge = ({ edges }) => edges.some(({ to }) => to.name === last);
          assert.equal(doctor.report().lockOrder.some(isEdge), isNoted);
        }),
      ),
    );
  }
}

test(
  'permits are no locks among those, however many a thread has',
  watched(() =>
    withDoctor(QUIET, async (doctor) => {
      const count = 2 * MOST_HELD;
      const pool = new Semaphore(new SharedArrayBuffer(Semaphore.BYTES), 0, count);
      const permits = Array.from({ length: count }, () => pool.tryAcquire());
      const [a, b] = mutexes();
      const { inside } = WAYS['lock()'];
      await inside(a, () => inside(b, () => {}));
      await inside(b, () => inside(a, () => {}));
      assert.equal(doctor.report().lockOrder.length, 1);
      for (const each of permits) each.release();
    }),
  ),
);
