// Counts and distributions over all rounds, in bounded memory.

const KEPT = 20_000;

exports.Tally = class Tally {
  #counts = new Map();
  #samples = new Map();

  count(group, name, times = 1) {
    const key = `${group}: ${name}`;
    this.#counts.set(key, this.of(group, name) + times);
  }

  of(group, name) {
    return this.#counts.get(`${group}: ${name}`) ?? 0;
  }

  /** All counts of a group, as `[name, count]`. */
  group(group) {
    const ours = [...this.#counts].filter(([key]) => key.startsWith(`${group}: `));
    return ours.map(([key, count]) => [key.slice(group.length + 2), count]);
  }

  /** One value of a distribution; a sample of bounded size is kept, and the largest of all. */
  measure(name, value) {
    if (!this.#samples.has(name)) this.#samples.set(name, { seen: 0, largest: -Infinity, values: [] });
    const sample = this.#samples.get(name);
    sample.seen += 1;
    sample.largest = Math.max(sample.largest, value);
    if (sample.values.length < KEPT) sample.values.push(value);
    else {
      const place = Math.floor(Math.random() * sample.seen);
      if (place < KEPT) sample.values[place] = value;
    }
  }

  /** `[{ name, seen, median, p99, largest }]`. */
  get distributions() {
    return [...this.#samples].sort().map(([name, { seen, largest, values }]) => {
      const sorted = Float64Array.from(values).sort();
      const at = (share) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
      return { name, seen, median: at(0.5), p99: at(0.99), largest };
    });
  }
};
