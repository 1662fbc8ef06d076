// What the threads of a round use beside mutexes and conditions: primitives of the other kinds, in memory of their own.

const {
  AutoResetEvent,
  Barrier,
  Exchanger,
  Latch,
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
      LIST.map(([kind, type, of, others], index) => {
        const args = kind === 'semaphore' || kind === 'barrier' ? [of] : [];
        return [`thing${index}`, [type, ...args, { ...options, ...others }]];
      }),
    ),
    /** The writer of each that is inside, as it wrote itself; 0: none. */
    inside: [Int32Array, LIST.length],
  });

exports.createThings = () => placesFor({}).create();

/** `{ faces, inside }` in this thread: an object for each. */
exports.facesOf = (memory, isMain) => {
  const options = { allowMainThread: isMain };
  const places = placesFor(options).on(memory);
  return { faces: LIST.map((_, index) => places[`thing${index}`]), inside: places.inside };
};
