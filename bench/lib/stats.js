'use strict';
// Numbers about numbers: medians of rounds, fairness, and percentiles of samples (node:perf_hooks' HDR histogram).

const { createHistogram } = require('node:perf_hooks');

function median(values) {
  const sorted = values.filter(Number.isFinite).sort((a, b) => a - b);
  if (sorted.length === 0) return NaN;
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

const max = (values) => values.reduce((a, b) => Math.max(a, b), -Infinity);
const sum = (values) => values.reduce((a, b) => a + b, 0);

/** The meaning of `jain`, for the people who read it. */
const JAIN = "fairness: Jain's index of the threads' holds: 1 if all had equally many, 1/n if one of n had them all";

/** Jain's fairness index: 1 if all shares are equal, 1/n if one has everything. */
function jain(shares) {
  const squares = sum(shares.map((x) => x * x));
  return squares === 0 ? NaN : sum(shares) ** 2 / (shares.length * squares);
}

const GRID = [0, 10, 25, 50, 75, 90, 95, 99, 99.5, 99.9, 99.99, 100];

/** All samples of a row, pooled over its rounds; nanoseconds. */
class Samples {
  #histogram = createHistogram({ figures: 3 });

  add(samples) {
    for (const ns of samples) this.#histogram.record(Math.max(1, Math.round(ns)));
    return this;
  }

  get count() {
    return this.#histogram.count;
  }

  at(percentile) {
    if (this.count === 0) return NaN;
    return percentile === 100 ? this.#histogram.max : this.#histogram.percentile(percentile || Number.MIN_VALUE);
  }

  /** `[percentile, nanoseconds]` pairs, as far as so many samples can tell. */
  curve() {
    const finest = 100 - 100 / this.count;
    return GRID.filter((p) => p === 100 || p <= finest).map((p) => [p, this.at(p)]);
  }
}

module.exports = { median, max, sum, jain, JAIN, Samples };
