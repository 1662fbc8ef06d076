// Locks that are named several times in one list, at each place before and behind those that an ended thread has left: each of
// these is repaired, or told of, once.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { setImmediate: nextTurn } = require('node:timers/promises');
const { lockAll, lockAllAsync, LockTable, Mutex, RwLock } = require('../..');
const { startActors } = require('../helpers/actors.js');
const { BYTES } = require('../helpers/memory.js');
const { listen } = require('../helpers/messages.js');
const { needs } = require('../helpers/runtime.js');
const { watched } = require('../helpers/threads.js');

/** A was free; the others are marked. */
const LISTS = ['AAB', 'ABA', 'BAA', 'ABB', 'BAB', 'BBA', 'AABC', 'ABCAA', 'ABAC', 'CAAB', 'BBCC', 'ABCABC', 'ACCBA'];
const LETTERS = 'ABC';
/** From the place of one lock to the next, whatever it is. */
const STRIDE = 8;

/** By what is locked: `lockAll` and `lockAllAsync` of a list of places. `onAbandoned` gets the place. */
const KINDS = {
  mutexes: (buffer, onAbandoned) => {
    const made = new Map();
    const at = (place) => {
      if (!made.has(place)) made.set(place, new Mutex(buffer, place, optionsOf(onAbandoned)));
      return made.get(place);
    };
    return ofList((places) => places.map(at));
  },
  'mutexes, of which each time another object is named': (buffer, onAbandoned) =>
    ofList((places) => places.map((place) => new Mutex(buffer, place, optionsOf(onAbandoned)))),
  'RwLocks to write': (buffer, onAbandoned) =>
    ofList((places) => places.map((place) => new RwLock(buffer, place, optionsOf(onAbandoned)).write)),
  'RwLocks, once to write and else to read': (buffer, onAbandoned) =>
    ofList((places) =>
      places.map((place, index) => {
        const { read, write } = new RwLock(buffer, place, optionsOf(onAbandoned));
        return places.lastIndexOf(place) === index ? write : read;
      }),
    ),
  'the rows of a table': (buffer, onAbandoned) => {
    const ofRow = onAbandoned && ((_, index) => onAbandoned({ byteOffset: index * LockTable.BYTES }));
    const table = new LockTable(buffer, 0, BYTES / LockTable.BYTES, optionsOf(ofRow));
    const rows = (places) => places.map((place) => place / LockTable.BYTES);
    return {
      lockAll: (places) => table.lockAll(rows(places)),
      lockAllAsync: (places) => table.lockAllAsync(rows(places)),
    };
  },
};
const optionsOf = (onAbandoned) => ({ allowMainThread: true, onAbandoned });
const ofList = (locksAt) => ({
  lockAll: (places) => lockAll(locksAt(places)),
  lockAllAsync: (places) => lockAllAsync(locksAt(places)),
});

/** The ways to get a list, and to wait for the place of it that is not marked. */
const FORMS = {
  lockAll: async (verbs, places) => verbs.lockAll(places),
  lockAllAsync: (verbs, places) => verbs.lockAllAsync(places),
  'lockAllAsync, which waits': (verbs, places, free) => {
    const held = verbs.lockAll([free]);
    const pending = verbs.lockAllAsync(places);
    held.unlock();
    return pending;
  },
};

/** A buffer with locks for each list and form, of which an ended thread held all but the As; and their places by letter. */
const abandonAll = async (threads, type) => {
  const buffer = new SharedArrayBuffer(BYTES);
  const sets = Object.keys(FORMS).flatMap((form) => LISTS.map((list) => ({ form, list })));
  for (const [at, set] of sets.entries()) {
    set.placeOf = (letter) => STRIDE * (LETTERS.length * at + LETTERS.indexOf(letter));
    set.places = Array.from(set.list, set.placeOf);
    set.marked = [...new Set(set.places)].filter((place) => place !== set.placeOf('A'));
  }
  const [doomed] = await startActors(threads, 1, buffer);
  await doomed.do(
    (here, type, places) => {
      for (const place of places) {
        const lock = new here.sablock[type](here.buffer, place);
        (lock.write ?? lock).lock();
      }
    },
    type,
    sets.flatMap(({ marked }) => marked),
  );
  await doomed.terminate();
  await doomed.exited;
  return { buffer, sets, ended: doomed.threadId };
};

for (const [kind, make] of Object.entries(KINDS)) {
  const type = kind.startsWith('RwLocks') ? 'RwLock' : 'Mutex';
  for (const isRepaired of [true, false]) {
    test(
      `of ${kind} that are named several times, each that is marked is ${isRepaired ? 'repaired' : 'told of'} once`,
      needs('prompt ends'),
      watched(async (t, threads) => {
        const messages = listen(t, 'sablock:abandoned');
        const { buffer, sets, ended } = await abandonAll(threads, type);
        const repaired = [];
        const verbs = make(buffer, isRepaired ? ({ byteOffset }) => void repaired.push(byteOffset) : undefined);
        for (const { form, list, places, marked, placeOf } of sets) {
          const text = `${form} of ${list}`;
          const guard = await FORMS[form](verbs, places, placeOf('A'));
          const told = messages.splice(0);
          assert.deepEqual(
            told,
            marked.map((byteOffset) => ({ byteOffset, ownerThreadId: ended, mode: 'exclusive' })),
            text,
          );
          assert.deepEqual(repaired.splice(0), isRepaired ? marked : [], text);
          assert.equal(guard.abandoned.length, isRepaired ? 0 : marked.length, text);
          guard.unlock();
          // The marks are gone, or known.
          (await verbs.lockAllAsync(places)).unlock();
          await nextTurn();
          assert.deepEqual([messages, repaired], [[], []], text);
        }
      }),
    );
  }
}
