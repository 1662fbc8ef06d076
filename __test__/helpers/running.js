// A clock that stands still while nothing runs. What a lock may take is a time in which it could have been served: a busy machine may
// stop all threads of a test for seconds, which no upper limit of a test is about.

/** Starts the clock: `ran()` is how long the process has run since, in milliseconds; `cell` has the same, for other threads. */
exports.startRunning = async (threads) => {
  const cell = new Int32Array(new SharedArrayBuffer(4));
  threads.start('running', { cell });
  const ran = () => Atomics.load(cell, 0);
  await threads.until('the clock goes', () => ran() > 0);
  return { cell, ran };
};
