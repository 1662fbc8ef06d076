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

/** Runs a body that has one result, then lets the thread end. */
exports.finish = async (body) => {
  try {
    exports.answer('result', await body());
  } catch (error) {
    exports.answerError('result', error);
  }
};
