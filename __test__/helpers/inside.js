// The worker's side of `threads.js`: say what you are doing, wait for flags, answer.

const { parentPort, workerData } = require('node:worker_threads');
const { writeBoard } = require('./board.js');

exports.data = workerData;

exports.doing = (text) => writeBoard(workerData.board, text);

exports.raise = (flag) => {
  Atomics.store(workerData.flags, flag, 1);
  Atomics.notify(workerData.flags, flag);
};

exports.isRaised = (flag) => Atomics.load(workerData.flags, flag) !== 0;

/** Blocks this thread, outside of any lock, until the flag is raised. */
exports.waitForFlag = (flag) => {
  while (!exports.isRaised(flag)) Atomics.wait(workerData.flags, flag, 0);
};

/** Lets this thread end by itself, whatever is pending. */
exports.end = () => {
  // Deno's parentPort has no close().
  if (parentPort.close) parentPort.close();
  else globalThis.close();
};

exports.answer = (id, value) => parentPort.postMessage({ id, value });

exports.answerError = (id, error) => {
  const { name, code, message } = error ?? {};
  parentPort.postMessage({ id, error: { name, code, message: message ?? String(error) } });
};

/** The ways to end of `endings.js`. Whatever comes before it, the last argument of `exit` is the code. */
exports.waysToEnd = {
  end: exports.end,
  exit: (...args) => process.exit(args.at(-1)),
  throw() {
    setImmediate(() => {
      throw new Error('Thrown on purpose');
    });
  },
  exhaust() {
    const kept = [];
    // In large pieces: with small ones Node 26 may collect garbage for minutes before it gives up.
    for (;;) kept.push(new Array(100_000).fill(kept.length));
  },
};

/** Takes the steps of each message, one after the other; sends what they returned. */
exports.takeSteps = (take) => {
  parentPort.on('message', async ({ id, steps }) => {
    try {
      const values = [];
      for (const step of steps) values.push(await take(step));
      exports.answer(id, values);
    } catch (error) {
      exports.answerError(id, error);
    }
  });
  exports.doing('waiting for its first step');
};

/** Runs a body that has one result, then lets the thread end. */
exports.finish = async (body) => {
  try {
    exports.answer('result', await body());
  } catch (error) {
    exports.answerError('result', error);
  }
};
