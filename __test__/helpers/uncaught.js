// Errors that users' code throws in the middle of a call, and what they may leave.

const assert = require('node:assert/strict');

/** What this thread does not listen to while the body runs is an uncaught error, whose message it notes. */
exports.noting = async (body) => {
  const uncaught = [];
  const listeners = process.listeners('uncaughtException');
  const note = ({ message }) => uncaught.push(message);
  process.removeAllListeners('uncaughtException');
  process.on('uncaughtException', note);
  try {
    await body(uncaught);
  } finally {
    process.off('uncaughtException', note);
    for (const listener of listeners) process.on('uncaughtException', listener);
  }
};

/** All that was uncaught was thrown on purpose. */
exports.onlyThrown = (uncaught, thrown, title) =>
  assert.ok(
    uncaught.every((message) => message === thrown),
    `${title}: ${uncaught}`,
  );

/** Waits until nothing is held: `take()` returns, or is a promise of, a function that frees, or null. */
exports.untilFree = async (threads, title, take) => {
  let free = null;
  let isLooking = false;
  const look = async () => {
    isLooking = true;
    free = await take();
    isLooking = false;
  };
  await threads.until(`${title} holds nothing`, () => {
    if (free === null && !isLooking) look();
    return free !== null;
  });
  free();
};
