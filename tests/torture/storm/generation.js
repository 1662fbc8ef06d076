// One generation: workers that are terminated at random, some of them replaced, on memory of their own; when all have
// ended, everything is as the main thread alone has left it.

const { join } = require('node:path');
const { Worker } = require('node:worker_threads');
const { limit } = require('../../../__test__/helpers/limits.js');
const { stats } = require('../package.js');
const { random } = require('./actor.js');
const { countEnds } = require('./checks.js');
const { KINDS } = require('./kinds.js');
const { CELLS, COLUMNS, SLOTS, STAGES, WIDTH, complaint, create, entryOf, on } = require('./memory.js');

/** The number that run at a time. */
const AT_ONCE = 4;
const LONGEST_MS = 25;
/** For a worker's first turn, in which it may wait for what nobody gives back in this generation. */
const FIRST_TURN_MS = 500;
const LIMIT_MS = limit(20_000);

/** The columns that the register of holds remembers: each worker's end with some of it is counted once. */
const REGISTERED = [COLUMNS.READ, COLUMNS.PERMITS, COLUMNS.FAIR, COLUMNS.ENTRY, COLUMNS.MEMBER];

exports.Generation = class Generation {
  #buffer = create();
  #below;
  #kinds;
  #sabotage;
  #endedBefore = stats().ended;
  /** The number that were let in once their end had begun. */
  #late = 0;
  /** For the checks. */
  #view = {
    places: on(this.#buffer),
    /** The primitives that the main thread holds. */
    survivors: new Set(),
    limit: { timeout: LIMIT_MS },
    expect: (isSo, text, say) => {
      if (!isSo) throw new Error(say === undefined ? text : `${text}: ${JSON.stringify(say())}`);
    },
  };

  /** `kinds` are the names of those that the workers hold; in half of the generations, of two of them at most. */
  constructor({ seed, kinds, sabotage }) {
    this.#below = random(seed);
    const drawn = this.#below(2) === 0 ? kinds : [0, 1].map(() => kinds[this.#below(kinds.length)]);
    const needed = KINDS.filter(({ name }) => drawn.includes(name)).flatMap(({ needs = [] }) => needs);
    this.#kinds = KINDS.filter(({ name }) => drawn.includes(name) || needed.includes(name));
    this.#sabotage = sabotage;
  }

  /** Returns `{ turns, ended, several, late }`: how often workers had their turn, and by column how many ended while they held. */
  async run() {
    const releases = await this.#survive();
    let slot = 0;
    const lives = Array.from({ length: AT_ONCE }, async () => {
      while (slot < SLOTS) await this.#live(slot++);
    });
    await Promise.all(lives);
    this.#check();
    for (const release of releases) release();
    this.#view.survivors.clear();
    for (const kind of this.#kinds) await kind.finish(this.#view);
    return this.#result();
  }

  /** The holds that the main thread has through it all: nobody may give those back. */
  async #survive() {
    const releases = [];
    for (const kind of this.#kinds) {
      if (kind.survive === undefined || this.#below(kind.survives) !== 0) continue;
      const { primitive, release } = await kind.survive(this.#view.places);
      this.#view.survivors.add(primitive);
      releases.push(release);
    }
    return releases;
  }

  /** From the start of a worker to its end. */
  async #live(slot) {
    const { doomed, stages } = this.#view.places;
    const workerData = {
      buffer: this.#buffer,
      kinds: this.#kinds.map(({ name }) => name),
      seed: this.#below(2 ** 32),
      sabotage: this.#sabotage,
      slot,
    };
    for (const kind of this.#kinds) kind.prepare?.(this.#view, slot);
    const worker = new Worker(join(__dirname, 'worker.js'), { workerData });
    const failed = new Promise((_, reject) => worker.on('error', reject));
    const pause = (ms) => Promise.race([failed, new Promise((resolve) => setTimeout(resolve, ms))]);
    const reaches = async (stage, ms) => {
      const giveUpAt = performance.now() + ms;
      while (Atomics.load(stages, slot) < stage && performance.now() < giveUpAt) await pause(1);
      return Atomics.load(stages, slot) >= stage;
    };
    if (!(await reaches(STAGES.READY, LIMIT_MS))) throw new Error('A worker does not start');
    // On a busy machine most would be ended before it.
    if (this.#below(4) !== 0) await reaches(STAGES.TURNED, FIRST_TURN_MS);
    await pause((this.#below(1000) / 1000) * LONGEST_MS);
    const endsBy = performance.now() + LIMIT_MS;
    Atomics.store(doomed, slot, 1);
    const ended = worker.terminate();
    for (const kind of this.#kinds) this.#late += Number(kind.begunToEnd?.(this.#view, slot) ?? 0);
    await ended;
    if (performance.now() > endsBy) throw new Error('A worker does not end');
  }

  #check() {
    const said = complaint(this.#view.places);
    if (said !== undefined) throw new Error(said);
    for (const kind of this.#kinds) kind.check(this.#view);
    const ended = stats().ended - this.#endedBefore;
    const [least, most] = REGISTERED.map((column) => countEnds(this.#view, column)).reduce(
      ([least, most], { certain, possible }) => [least + certain, most + possible],
      [0, 0],
    );
    if (ended < least || ended > most) {
      throw new Error(`${ended} ends with holds in the register are counted; there were ${least} to ${most}`);
    }
  }

  #result() {
    const { places } = this.#view;
    const ended = new Array(WIDTH).fill(0);
    for (let column = 0; column < WIDTH; column++) ended[column] = countEnds(this.#view, column).certain;
    let several = 0;
    for (let slot = 0; slot < SLOTS; slot++) {
      const held = ended.filter((_, column) => entryOf(places, slot, column).sure > 0);
      if (held.length > 1) several += 1;
    }
    return { turns: Atomics.load(places.cells, CELLS.TURNS), ended, several, late: this.#late };
  }
};
