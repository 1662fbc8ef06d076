// Memory that shows whether holds of one mutex overlap: each visit counts itself in and out atomically,
// and adds one to a plain counter in two separate steps.

const { setImmediate: nextTurn } = require('node:timers/promises');

const INSIDE = 0;
const OVERLAPS = 1;
const COUNT = 2;
const CELLS = 3;
const STEPS_INSIDE = 40;

exports.Witness = class Witness {
  static BYTES = CELLS * 4;
  #cells;

  constructor(buffer, byteOffset = 0) {
    this.#cells = new Int32Array(buffer, byteOffset, CELLS);
  }

  get overlaps() {
    return Atomics.load(this.#cells, OVERLAPS);
  }

  get count() {
    return this.#cells[COUNT];
  }

  visit() {
    const seen = this.#arrive();
    for (let step = 0; step < STEPS_INSIDE; step++) Atomics.load(this.#cells, OVERLAPS);
    this.#go(seen);
  }

  async visitAcrossTurns() {
    const seen = this.#arrive();
    await nextTurn();
    this.#go(seen);
  }

  #arrive() {
    if (Atomics.add(this.#cells, INSIDE, 1) !== 0) Atomics.add(this.#cells, OVERLAPS, 1);
    return this.#cells[COUNT];
  }

  #go(seen) {
    this.#cells[COUNT] = seen + 1;
    Atomics.sub(this.#cells, INSIDE, 1);
  }
};
