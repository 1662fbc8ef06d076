// The end of the stack, for what cannot be undone: it must come before, or not at all.

/** More calls than there are in each other between what cannot be undone and the program's code. */
const FRAMES = 100;

/** Throws now if the stack could end when it is too late. */
const reserveStack = (frames = FRAMES) => frames === 0 || reserveStack(frames - 1);

exports.reserveStack = reserveStack;
