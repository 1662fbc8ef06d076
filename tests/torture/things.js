// The things that threads of a round use beside mutexes and conditions: primitives of the other kinds, in memory of their own.

const {
  AutoResetEvent,
  Barrier,
  Exchanger,
  inspectAll,
  Latch,
  LockManager,
  ManualResetEvent,
  Once,
  RwLock,
  Semaphore,
  layout,
} = require('./package.js');

const PERMITS = [1, 4];
const PARTIES = [2, 3];
/** Once one is done it is of no use any more. */
const ONCES = 24;
const NAMES = 2;

/** In the order of their indices: `[kind, class, argument, options]`. */
const LIST = [
  ['rwlock', RwLock],
  ['rwlock', RwLock],
  ...PERMITS.flatMap((permits) => [false, true].map((fair) => ['semaphore', Semaphore, permits, { fair }])),
  ['latch', Latch],
  ...PARTIES.map((parties) => ['barrier', Barrier, parties]),
  ['exchanger', Exchanger],
  ['auto', AutoResetEvent],
  ['manual', ManualResetEvent],
  ...Array.from({ length: ONCES }, () => ['once', Once]),
  // In no memory of ours.
  ...Array.from({ length: NAMES }, () => ['name']),
];

/** By index: `{ kind, name, of, fair }`, where `of` is how many permits or parties there are. */
exports.THINGS = LIST.map(([kind, , of, { fair = false } = {}], index) => ({
  kind,
  of,
  fair,
  name: `${kind} ${index}`,
}));

/** The indices of a kind. */
exports.ofKind = (kind) => exports.THINGS.flatMap((thing, index) => (thing.kind === kind ? [index] : []));

const placesFor = (options) =>
  layout({
    ...Object.fromEntries(
      LIST.flatMap(([kind, type, of, others], index) => {
        if (type === undefined) return [];
        const args = kind === 'semaphore' || kind === 'barrier' ? [of] : [];
        return [[`thing${index}`, [type, ...args, { ...options, ...others }]]];
      }),
    ),
    /** The writer of each that is inside, as it wrote itself; 0: none. */
    inside: [Int32Array, LIST.length],
    /** Which of the process's rounds it is: names live as long as the process. */
    round: [Int32Array, 1],
  });

let rounds = 0;

exports.createThings = () => {
  const memory = placesFor({}).create();
  rounds += 1;
  placesFor({}).on(memory).round[0] = rounds;
  return memory;
};

/** A name of the process, with what this thread has it by. */
class Name {
  constructor(name, options) {
    this.name = name;
    this.locks = new LockManager(options);
  }

  /** Names that nobody waits for are not known of. */
  inspect() {
    return (
      inspectAll().find(({ name, buffer }) => name === this.name && buffer === undefined) ?? {
        holders: [],
        waiters: [],
      }
    );
  }
}

/** `{ faces, inside }` in this thread: an object for each. */
exports.facesOf = (memory, isMain) => {
  const options = { allowMainThread: isMain };
  const places = placesFor(options).on(memory);
  const faceOf = (kind, index) =>
    places[`thing${index}`] ?? new Name(`${kind} ${index} of round ${places.round[0]}`, options);
  return { faces: LIST.map(([kind], index) => faceOf(kind, index)), inside: places.inside };
};
