// Calls near the end of the stack.

/** At how many of the last depths a verb is called. */
exports.DEPTHS = 720;

/** Frames of several sizes, so that the stack ends at different places of the package. */
const PADDINGS = 9;

/** `{ value }`, what `act` returns `depth` frames, of so many arguments, before the stack ends; undefined if it throws. */
exports.atDepth = (act, depth, padding = depth % PADDINGS) => {
  let returned;
  let frames = 0;
  const dive = (...padding) => {
    try {
      dive(...padding);
    } catch {
      // Here the stack ended.
    }
    if (frames++ !== depth) return;
    try {
      returned = { value: act() };
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
    }
  };
  dive(...new Array(padding));
  return returned;
};

/**
 * Returns what `at()` returns, its value awaited; undefined if it throws for want of stack, or the promise is rejected for
 * that.
 */
const outcomeOf = async (at) => {
  try {
    const returned = at();
    return returned && { value: await returned.value };
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return undefined;
  }
};

/** For each of the last depths: `check(outcome)` gets a function that calls `act` there and returns a promise of what came of it. */
exports.atEachDepth = async (act, check) => {
  // Functions that were never called need far more stack, to be compiled.
  for (let count = 0; count < 3; count++) await check(() => outcomeOf(() => ({ value: act() })));
  for (let depth = 0; depth < exports.DEPTHS; depth++) await check(() => outcomeOf(() => exports.atDepth(act, depth)));
};
