// One worker's part in the storm, and what it notes of itself: in its ledger what it holds, in plain memory who is inside.

const { CELLS, WIDTH, complain } = require('./memory.js');
const { saboteur } = require('./sabotage.js');

/** Numbers from a seed, below a limit. */
exports.random = (seed) => (most) => {
  seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
  return Math.floor((seed / 2 ** 32) * most);
};

exports.Actor = class Actor {
  #slot;
  #kinds;
  #isForgetful;

  /** `slot` is the worker's place in the ledger; `kinds` are those that it may nest, outermost first. */
  constructor(places, { slot, seed, sabotage }, kinds) {
    this.places = places;
    this.#slot = slot;
    this.#kinds = kinds;
    /** The name by which it calls itself in plain memory. */
    this.name = slot + 1;
    this.below = exports.random(seed);
    this.strikes = saboteur(sabotage, this.below);
    this.#isForgetful = sabotage?.startsWith('forget');
  }

  complain(text) {
    complain(this.places, `worker ${this.name}: ${text}`);
  }

  /** Stays where it is, mostly for a microsecond, now and then for some hundred. */
  linger() {
    const longest = this.below(4) === 0 ? 20_000 : 100;
    for (let step = this.below(longest); step > 0; step--) Atomics.load(this.places.cells, CELLS.TURNS);
  }

  /** In the ledger: it may hold so much more (or less) of a column, and surely holds so much more. */
  note(column, sure, possible) {
    if (this.#isForgetful) return;
    const at = (this.#slot * WIDTH + column) * 2;
    this.places.ledger[at] += sure;
    this.places.ledger[at + 1] += possible;
  }

  /** Holds what `acquire` returns while `body` runs, if it returns anything. */
  hold(column, acquire, body, release) {
    this.note(column, 0, 1);
    this.#use(column, acquire(), body, release);
  }

  async holdAsync(column, acquire, body, release) {
    this.note(column, 0, 1);
    this.#use(column, await acquire(), body, release);
  }

  #use(column, got, body, release) {
    if (got) {
      this.note(column, 1, 0);
      body(got);
      this.note(column, -1, 0);
      release(got);
    }
    this.note(column, 0, -1);
  }

  /** The same where the package calls the body and releases: `execute` gets the body. */
  run(column, execute, body) {
    this.note(column, 0, 1);
    const result = execute(() => this.#inside(column, body));
    if (typeof result?.then !== 'function') {
      this.note(column, 0, -1);
      return undefined;
    }
    return result.then(() => this.note(column, 0, -1));
  }

  #inside(column, body) {
    this.note(column, 1, 0);
    body();
    this.note(column, -1, 0);
  }

  /** Inside an exclusive hold of a column; `isMarked` says whether an earlier holder ended inside, `clear` that all is well. */
  alone(column, isMarked, clear, body) {
    const { inside } = this.places;
    const wasMarked = isMarked();
    const before = inside[column];
    if (before !== 0 && !wasMarked) this.complain(`column ${column}: worker ${before} is inside`);
    inside[column] = this.name;
    if (wasMarked) clear();
    this.linger();
    body();
    if (inside[column] !== this.name) this.complain(`column ${column}: worker ${inside[column]} came in`);
    inside[column] = 0;
  }

  /** Now and then, another hold within the one of `kind`: always in the same order, so that no two wait for each other. */
  nest(kind) {
    if (this.below(4) !== 0) return;
    const inner = this.#kinds.slice(this.#kinds.indexOf(kind) + 1);
    if (inner.length > 0) this.turn(inner[this.below(inner.length)]);
  }

  /** One of a kind's turns that block, or return at once. */
  turn(kind) {
    const turns = kind.turns(this);
    turns[this.below(turns.length)]();
  }

  /** One that is awaited. */
  turnAsync(kind) {
    const turns = kind.awaited(this);
    return turns[this.below(turns.length)]();
  }
};
