// Order: one thread's promises are served in the order of its calls; and no waiter is overtaken beyond the bound,
// (waiters ahead + 1) x (longest hold + 1.5 ms + one wake).

const { ownBusy, describe } = require('../history.js');

/** The documented 1.5 ms, and a wake of a thread on a machine with a free core. */
const GRACE = 1.5 + 1;
/** Beyond this many bounds, a waiter was overtaken: the cores are shared with others. */
const FACTOR = 20;

exports.checkOrder = ({ mutexes }, report, measure, slack) => {
  for (const mutex of mutexes) {
    checkCallOrder(mutex, report);
    checkBounds(mutex, report, measure, slack);
    measureGaps(mutex, measure);
  }
};

function checkCallOrder({ index, holds }, report) {
  const last = new Map();
  for (const hold of holds) {
    if (!hold.isAsync || hold.isUnordered) continue;
    const before = last.get(hold.thread);
    if (before !== undefined && before.order > hold.order) {
      report(
        'order',
        `mutex ${index}: ${describe(before)} was call ${before.order}; then ${describe(hold)}, call ${hold.order}`,
      );
    }
    last.set(hold.thread, hold);
  }
}

/** Returns how long a hold lasted; that of a thread that died inside, until its end was seen. */
const lengthOf = (hold) => Math.max(0, (hold.left ? hold.leftTime : hold.thread.deathTime) - hold.heldTime);

function checkBounds({ index, waits, holds }, report, measure, slack) {
  const begun = Float64Array.from(waits, (wait) => wait.beginTick);
  const over = Float64Array.from(waits, (wait) => wait.overTick).sort();
  const starts = Float64Array.from(holds, (hold) => hold.heldTime);
  const longest = new RangeMaximum(Float64Array.from(holds, lengthOf));
  for (const wait of waits) {
    if (!wait.held || wait.isUnordered || !(wait.isAsync || wait.isBlocking)) continue;
    const ahead = countBelow(begun, wait.beginTick) - countBelow(over, wait.beginTick);
    // From the hold that was there when it came.
    const from = Math.max(0, countBelow(starts, wait.beginTime) - 1);
    const hold = longest.of(from, countBelow(starts, wait.heldTime));
    const waited = wait.heldTime - wait.beginTime - (wait.isAsync ? ownBusy(wait) : 0);
    const bound = (ahead + 1) * (hold + GRACE);
    measure(wait.isAsync ? 'promise: waited / bound' : 'blocked: waited / bound', waited / bound);
    measure(wait.isAsync ? 'promise: waited, ms' : 'blocked: waited, ms', waited);
    if (waited > Math.max(slack, FACTOR * bound)) {
      const numbers = `${waited.toFixed(1)} ms, ${ahead} ahead, longest hold ${hold.toFixed(1)} ms`;
      report('overtaken', `mutex ${index}: ${describe(wait)} waited ${numbers}`);
    }
  }
}

/** Measures how long a mutex lay free although the one who got it next was waiting for it. */
function measureGaps({ holds }, measure) {
  for (let next = 1; next < holds.length; next++) {
    const [first, second] = [holds[next - 1], holds[next]];
    const waits = !second.isUnordered && (second.isAsync || second.isBlocking);
    if (!waits || (first.left ? second.beginTick >= first.leftTick : second.beginTime >= first.thread.deathTime))
      continue;
    const free = first.left ? first.leftTime : first.thread.deathTime;
    const gap = Math.max(0, second.heldTime - free - (second.isAsync ? ownBusy(second) : 0));
    if (first.left) measure(second.isAsync ? 'handover to a loop, ms' : 'handover to a blocked thread, ms', gap);
    else measure('handover from the dead, ms', gap);
  }
}

/** The largest of any stretch of `values`: built once, asked often. */
class RangeMaximum {
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

  /** Returns the largest of the values from `from`, below `to`; 0 if there are none. */
  of(from, to) {
    if (to <= from) return 0;
    const level = 31 - Math.clz32(to - from);
    return Math.max(this.#levels[level][from], this.#levels[level][to - 2 ** level]);
  }
}

/** Returns how many of the ascending `values` are below `limit`. */
function countBelow(values, limit) {
  let low = 0;
  for (let high = values.length; low < high; ) {
    const middle = (low + high) >> 1;
    if (values[middle] < limit) low = middle + 1;
    else high = middle;
  }
  return low;
}
