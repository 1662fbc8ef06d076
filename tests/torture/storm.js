// A storm of terminate(): workers read, write, hold permits and locks, are entries and members, and are terminated at random.
// When a generation of them has ended, no reader, permit, entry or member may be lost or given back twice: the words, the
// registers of holds, the statistics and the ledger that each worker has left must agree. While they live, plain memory
// shows that nobody is beside whom it must not be beside.
//
//   npm run torture:storm -- [--workers 2000] [--seed 1] [--kinds rwlock,semaphore]

const { parseArgs } = require('node:util');
const { random } = require('./storm/actor.js');
const { Generation } = require('./storm/generation.js');
const { KINDS } = require('./storm/kinds.js');
const { COLUMNS, SLOTS, WIDTH } = require('./storm/memory.js');
const { SABOTAGES } = require('./storm/sabotage.js');

const ALL = KINDS.map(({ name }) => name);

const NAMES = {
  [COLUMNS.READ]: 'a reader',
  [COLUMNS.WRITE]: 'the writer',
  [COLUMNS.PERMITS]: 'permits',
  [COLUMNS.ENTRY]: 'an entry of the latch',
  [COLUMNS.MEMBER]: 'a member of the barrier',
  [COLUMNS.MUTEX]: 'the mutex',
  [COLUMNS.FAIR]: 'permits of the fair semaphore',
  [COLUMNS.LOCK]: 'locks of the table',
  [COLUMNS.ONCE]: 'running once',
};

/** The name of a column, or of the range that it belongs to. */
const nameOf = (column) => NAMES[Math.max(...Object.keys(NAMES).filter((first) => first <= column))];

/** Generations from `seed`, until so many workers have ended. Returns what was seen; throws what is wrong. */
exports.storm = async ({ workers, seed, kinds = ALL, sabotage }) => {
  const below = random(seed);
  const seen = { workers: 0, turns: 0, ended: {}, several: 0, late: 0 };
  // The rest is what the main thread takes over at the end of each generation.
  const quiet = ({ code, stack }) => {
    if (code !== 'SABLOCK_ABANDONED') console.error(stack);
  };
  process.on('warning', quiet);
  try {
    while (seen.workers < workers) {
      const generationSeed = below(2 ** 32);
      try {
        add(seen, await new Generation({ seed: generationSeed, kinds, sabotage }).run());
      } catch (error) {
        error.message = `Seed ${seed}, after ${seen.workers} workers: ${error.message}`;
        throw error;
      }
    }
  } finally {
    process.off('warning', quiet);
  }
  return seen;
};

function add(seen, { turns, ended, several, late }) {
  seen.workers += SLOTS;
  seen.turns += turns;
  seen.several += several;
  seen.late += late;
  for (let column = 0; column < WIDTH; column++) {
    const name = nameOf(column);
    seen.ended[name] = (seen.ended[name] ?? 0) + ended[column];
  }
}

function readOptions() {
  const { values } = parseArgs({
    options: {
      workers: { type: 'string', default: '2000' },
      seed: { type: 'string', default: String(Date.now() % 2 ** 32) },
      kinds: { type: 'string', default: ALL.join() },
      sabotage: { type: 'string' },
    },
  });
  const kinds = values.kinds.split(',');
  const unknown = kinds.find((kind) => !ALL.includes(kind));
  if (unknown !== undefined) throw new RangeError(`--kinds must be some of ${ALL.join()}; got ${unknown}`);
  if (values.sabotage !== undefined && !(values.sabotage in SABOTAGES)) {
    throw new RangeError(`--sabotage must be one of ${Object.keys(SABOTAGES).join(', ')}; got ${values.sabotage}`);
  }
  return { ...values, kinds, workers: Number(values.workers), seed: Number(values.seed) };
}

if (require.main === module) {
  process.removeAllListeners('warning');
  const options = readOptions();
  console.log(`seed ${options.seed}, node ${process.version}`);
  exports.storm(options).then(
    ({ workers, turns, ended, several, late }) => {
      console.log(`${workers} workers terminated, ${turns} turns`);
      for (const name in ended) console.log(`  ended while it was or held ${name}: ${ended[name]}`);
      console.log(`  of several at once: ${several}`);
      console.log(`  let in once their end had begun: ${late}`);
      console.log('nothing lost, nothing given back twice, nothing in doubt');
    },
    (error) => {
      console.error(error);
      console.log('FAILED');
      process.exit(1);
    },
  );
}
