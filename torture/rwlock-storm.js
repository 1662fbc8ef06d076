// Workers read and write under one RwLock by every verb, and are terminated at random. When a group of them has ended, the word
// and the registers of holds must agree: no reader is lost, or given back twice, and a writer gets in. Whoever reads sees
// what a writer wrote as a whole, unless the lock is marked.
//
//     npm run torture:rwlock -- --workers 3000 --seed 7

const path = require('node:path');
const { parseArgs } = require('node:util');
const { Worker } = require('node:worker_threads');
const { RwLock } = require('..');

const GROUP = 4;
const LONGEST_MS = 25;
const LIMIT_MS = 20_000;
const SHARED = 1 << 30;
const ABANDONED = 1 << 27;
const OFFSET = 64;

/** Where the workers find things in the memory. */
const CELLS = { LEFT: 0, RIGHT: 1, TORN: 2, TURNS: 3, READY: 4, FAILED: 5 };

const random = (seed) => () => {
  seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
  return seed / 2 ** 32;
};

class Generation {
  #buffer = new SharedArrayBuffer(128);
  #cells = new Int32Array(this.#buffer, 0, 8);
  #rw = new RwLock(this.#buffer, OFFSET, { name: 'storm' });
  #random;

  constructor(random) {
    this.#random = random;
  }

  /** Returns how often the workers had their turn, and whether one of them ended while it wrote. */
  async run() {
    const workers = Array.from({ length: GROUP }, () => this.#start());
    await until('the workers run', () => Atomics.load(this.#cells, CELLS.READY) === GROUP);
    // Sometimes a reader lives through it all: then nobody may give back its hold.
    const guard = this.#random() < 0.5 ? await this.#rw.read.acquireAsync({ timeout: LIMIT_MS }) : null;
    await Promise.all(
      workers.map(async (worker) => {
        await new Promise((resolve) => setTimeout(resolve, this.#random() * LONGEST_MS));
        await worker.terminate();
      }),
    );
    const wasLeft = this.#check(guard);
    guard?.unlock();
    await this.#writerGetsIn();
    return { turns: Atomics.load(this.#cells, CELLS.TURNS), wasLeft };
  }

  #start() {
    const workerData = {
      buffer: this.#buffer,
      offset: OFFSET,
      cells: CELLS,
      seed: Math.floor(this.#random() * 2 ** 32),
    };
    return new Worker(path.join(__dirname, 'rwlock-storm-worker.js'), { workerData });
  }

  #check(guard) {
    const word = Atomics.load(new Int32Array(this.#buffer, OFFSET, 1), 0);
    const { holders, waiters } = this.#rw.inspect();
    const expected = guard === null ? 0 : 1;
    const readers = holders.filter(({ mode }) => mode === 'shared').reduce((sum, { count }) => sum + count, 0);
    const inWord = (word & SHARED) === 0 ? 0 : word & RwLock.MAX_READERS;
    const seen = `word 0x${(word >>> 0).toString(16)}, ${JSON.stringify({ holders, waiters })}`;
    if (inWord !== expected || readers !== expected) throw new Error(`Not ${expected} readers: ${seen}`);
    if (guard !== null && holders.length !== 1) throw new Error(`A writer beside a reader: ${seen}`);
    if (waiters.length !== 0) throw new Error(`Somebody who has ended waits: ${seen}`);
    if (Atomics.load(this.#cells, CELLS.TORN) !== 0) throw new Error('A reader saw half of what a writer wrote.');
    if (Atomics.load(this.#cells, CELLS.FAILED) !== 0) throw new Error('A verb threw.');
    return holders.some(({ mode }) => mode === 'exclusive') || (word & ABANDONED) !== 0;
  }

  async #writerGetsIn() {
    const writer = await this.#rw.write.acquireAsync({ timeout: LIMIT_MS });
    if (writer.abandoned) this.#rw.markConsistent();
    writer.downgrade();
    if (!writer.tryUpgrade()) throw new Error('The only reader could not come to write.');
    writer.unlock();
    const word = Atomics.load(new Int32Array(this.#buffer, OFFSET, 1), 0);
    if (word !== 0) throw new Error(`Not free at the end: 0x${(word >>> 0).toString(16)}`);
  }
}

async function until(what, isThere) {
  const giveUpAt = performance.now() + LIMIT_MS;
  while (!isThere()) {
    if (performance.now() > giveUpAt) throw new Error(`Waited in vain until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}

/** Returns what was seen; throws what is wrong. */
exports.storm = async ({ workers, seed }) => {
  const next = random(seed);
  const seen = { workers: 0, turns: 0, leftByWriters: 0 };
  const quiet = ({ code }) => {
    if (code !== 'SABLOCK_ABANDONED') console.error('A warning:', code);
  };
  process.on('warning', quiet);
  while (seen.workers < workers) {
    const { turns, wasLeft } = await new Generation(next).run();
    seen.workers += GROUP;
    seen.turns += turns;
    seen.leftByWriters += wasLeft ? 1 : 0;
  }
  process.off('warning', quiet);
  return seen;
};

if (require.main === module) {
  const { values } = parseArgs({ options: { workers: { type: 'string' }, seed: { type: 'string' } } });
  const seed = Number(values.seed ?? Date.now() % 2 ** 32);
  console.log(`seed ${seed}`);
  exports.storm({ workers: Number(values.workers ?? 2000), seed }).then(
    (seen) => console.log('ok', seen),
    (error) => {
      console.error(error);
      process.exitCode = 1;
    },
  );
}
