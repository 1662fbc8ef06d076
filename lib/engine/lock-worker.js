// The start of a lock worker: the hidden thread that keeps the connections to stores. A thread ends with its starter, so the main
// thread starts it, also for others, whether it has loaded what asks stores or not.

const { channel } = require('node:diagnostics_channel');
const path = require('node:path');
const { SHARE_ENV, Worker } = require('node:worker_threads');
const binding = require('../load/binary.js');
const { fromText, toText } = require('./error-text.js');

const FILE = path.join(__dirname, '..', 'stores', 'worker.js');

/** It loads a client, and does little then: a larger nursery would only be memory that stays. */
const LIMITS = { maxYoungGenerationSizeMb: 2 };

/** The warnings that this thread has given, each once. */
const given = new Set();

/** What the lock worker says (../stores/events.js), among what preloads may say there. */
function hear(said) {
  if (said?.sablockStore !== undefined) tellStore(said.sablockStore);
  const { code, message } = said?.sablockWarning ?? {};
  if (message === undefined || given.has(message)) return;
  given.add(message);
  process.emitWarning(message, { type: 'LockStoreWarning', code });
}

function tellStore(message) {
  const error = message.error === null ? null : fromText(message.error);
  channel('sablock:store').publish({ ...message, error });
}

/** Starts the lock worker of a desk in this thread. */
function start(desk) {
  const fail = (cause) => {
    const advice = cause?.code === 'ERR_ACCESS_DENIED' ? ' Run Node.js with --allow-worker beside --permission.' : '';
    const message = `The thread that keeps the locks of the store has ended.${advice}`;
    binding.endDesk(desk, toText({ message, cause }));
  };
  try {
    const workerData = { sablockLockWorker: desk };
    const worker = new Worker(FILE, { name: 'sablock-locks', env: SHARE_ENV, workerData, resourceLimits: LIMITS });
    // Always: without a listener the error would be an uncaught one of this thread.
    worker.on('error', fail);
    worker.on('exit', () => fail());
    worker.on('message', hear);
    worker.unref();
  } catch (error) {
    fail(error);
  }
}

exports.start = start;

/** The main thread starts what other threads have asked it for. */
exports.startDue = () => {
  for (let desk = binding.nextDueDesk(); desk >= 0; desk = binding.nextDueDesk()) start(desk);
};
