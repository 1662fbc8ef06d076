// How long things may take on a machine that others use too, and what a thread did to itself.

/** A blocked thread whose time is over may be this late, in milliseconds. */
exports.BLOCKED_LATE = 3000;

/** How long the thread of `wait` kept its own loop from turning while it waited: by blocking, or by being busy. */
exports.ownBusy = (wait) => {
  wait.thread.spans ??= spansOf(wait.thread);
  const { spans } = wait.thread;
  // The first span that ends after the wait began.
  let low = 0;
  for (let high = spans.length; low < high; ) {
    const middle = (low + high) >> 1;
    if (spans[middle].to <= wait.beginTime) low = middle + 1;
    else high = middle;
  }
  let sum = 0;
  for (; low < spans.length && spans[low].from < wait.overTime; low++) {
    sum += Math.min(spans[low].to, wait.overTime) - Math.max(spans[low].from, wait.beginTime);
  }
  return sum;
};

/** One after the other: where they are nested, the outer one. */
function spansOf(thread) {
  const blocked = thread.waits.filter(({ isBlocking, overTime }) => isBlocking && overTime < Infinity);
  const spans = [
    ...blocked.map(({ beginTime, overTime }) => ({ from: beginTime, to: overTime })),
    ...thread.busy
      .filter(({ endTime }) => endTime > 0)
      .map(({ beginTime, endTime }) => ({ from: beginTime, to: endTime })),
  ].sort((one, other) => one.from - other.from);
  let last = -1;
  return spans.filter(({ to }) => {
    const isOuter = to > last;
    last = Math.max(last, to);
    return isOuter;
  });
}

/** The largest of any stretch of `values`: built once, asked often. */
exports.RangeMaximum = class RangeMaximum {
  #levels;

  constructor(values) {
    this.#levels = [values];
    for (let width = 2; width <= values.length; width *= 2) {
      const below = this.#levels.at(-1);
      const level = new Float64Array(values.length - width + 1);
      for (let index = 0; index < level.length; index++)
        level[index] = Math.max(below[index], below[index + width / 2]);
      this.#levels.push(level);
    }
  }

  /** Of the values from `from`, below `to`; 0 if there are none. */
  of(from, to) {
    if (to <= from) return 0;
    const level = 31 - Math.clz32(to - from);
    return Math.max(this.#levels[level][from], this.#levels[level][to - 2 ** level]);
  }
};

/** How many of the ascending `values` are below `limit`. */
exports.countBelow = (values, limit) => {
  let low = 0;
  for (let high = values.length; low < high; ) {
    const middle = (low + high) >> 1;
    if (values[middle] < limit) low = middle + 1;
    else high = middle;
  }
  return low;
};
