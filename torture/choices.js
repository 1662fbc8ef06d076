/** A small seeded generator (mulberry32): the same numbers for the same seeds, on every machine. */
exports.Random = class Random {
  #state = 0x9e3779b9;

  constructor(...seeds) {
    for (const seed of seeds) this.#state = (Math.imul(this.#state ^ seed, 0x85ebca6b) + this.next() * 2 ** 32) | 0;
  }

  /** From 0, below 1. */
  next() {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** A whole number from 0, below `limit`. */
  below(limit) {
    return Math.floor(this.next() * limit);
  }

  between(low, high) {
    return low + this.next() * (high - low);
  }

  chance(probability) {
    return this.next() < probability;
  }

  pick(list) {
    return list[this.below(list.length)];
  }

  /** A key of `weights`, as often as its number says. */
  weighted(weights) {
    const entries = Object.entries(weights);
    let left = this.next() * entries.reduce((sum, [, weight]) => sum + weight, 0);
    for (const [key, weight] of entries) {
      left -= weight;
      if (left < 0) return key;
    }
    return entries.at(-1)[0];
  }
};
