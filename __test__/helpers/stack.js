// Calls near the end of the stack.

/** At how many of the last depths a verb is called at most. */
exports.DEPTHS = 720;

/** The number of calls in a row that pass, after which those further from the end do too: between two that fail there are few. */
const ENOUGH = 200;

/**
 * Arguments of Node.js that make the stack of a program a quarter of the usual one, still with far more than those depths: the way to
 * its end is most of the time that a call there takes.
 */
exports.SHORT_STACK = process.versions.bun || process.versions.deno ? [] : ['--stack-size=250'];

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
  if (frames <= depth) throw new Error(`The stack has ${frames} frames, too few for depth ${depth}`);
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

/**
 * For each of the last depths, from the end on: `check(outcome)` gets a function that calls `act` there and returns a promise of what
 * came of it.
 */
exports.atEachDepth = async (act, check) => {
  // Functions that were never called need far more stack, to be compiled.
  for (let count = 0; count < 3; count++) await check(() => outcomeOf(() => ({ value: act() })));
  let passed = 0;
  const call = async (depth) => {
    const outcome = await outcomeOf(() => exports.atDepth(act, depth));
    passed = outcome ? passed + 1 : 0;
    return outcome;
  };
  for (let depth = 0; depth < exports.DEPTHS && passed < ENOUGH; depth++) await check(() => call(depth));
};
