// Calls near the end of the stack.

/** At how many of the last depths a verb is called. */
exports.DEPTHS = 720;

/** Frames of several sizes, so that the stack ends at different places of the package. */
const PADDINGS = 9;

/** `{ value }`, what `act` returns `depth` frames before the stack ends; undefined if it throws. */
exports.atDepth = (act, depth) => {
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
  dive(...new Array(depth % PADDINGS));
  return returned;
};
