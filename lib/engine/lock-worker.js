// The start of a lock worker: the hidden thread that keeps the connections to stores. A thread ends with its starter, so the main
// thread starts it, also for others, whether it has loaded what asks stores or not.

const { channel } = require('node:diagnostics_channel');
const fs = require('node:fs');
const path = require('node:path');
const { SHARE_ENV, Worker } = require('node:worker_threads');
const binding = require('../load/binary.js');
const { fromText, toText } = require('./error-text.js');

/** It is held for good: Node.js 20 forgets a channel without subscribers when it is collected, and with it whoever has subscribed since. */
const reached = channel('sablock:store');

/** The verb of what is asked of a store, or of all: number 0. The payload is `{ call, ...}`; the answer's text is what it returns. */
exports.CALL = 2;

/** A question that is about no name. */
exports.questionOf = (desk, store, verb, payload) => {
  const { Exclusive: mode } = binding.NameMode;
  return { desk, store, verb, name: '', mode, flags: 0, payload };
};

/** For so long the end of a thread waits until what was released is sent, in milliseconds. */
const LAST_MS = 100;

const FILE = path.join(__dirname, '..', 'stores', 'worker.js');

/** It loads a client, and does little then: a larger nursery would only be memory that stays. */
const LIMITS = { maxYoungGenerationSizeMb: 2 };

/** The warnings that this thread has given, each once. */
const given = new Set();

/** Hears the lock worker (../stores/events.js), among what preloads may say there. */
function hear(said) {
  if (said?.sablockStore !== undefined) tellStore(said.sablockStore);
  const { code, message } = said?.sablockWarning ?? {};
  if (message === undefined || given.has(message)) return;
  given.add(message);
  process.emitWarning(message, { type: 'LockStoreWarning', code });
}

function tellStore(message) {
  const error = message.error === null ? null : fromText(message.error);
  reached.publish({ ...message, error });
}

/** The desk whose lock worker ends with this thread; -1: there is none. */
let own = -1;

/** Waits until all that was released before is sent: releases are not awaited, and the lock worker's thread is about to end. */
function flush(desk) {
  if (binding.deskState(desk) <= 0) return;
  binding.askStoreBlocking(exports.questionOf(desk, 0, exports.CALL, '{"call":"flush"}'), LAST_MS);
}

function adviceOn(cause) {
  if (cause?.code === 'ERR_ACCESS_DENIED') return ' Run Node.js with --allow-worker beside --permission.';
  // Bun and Deno have other codes for it.
  if (cause === undefined || fs.existsSync(FILE)) return '';
  return ` Its file ${FILE} is missing: leave sablock out of the bundle.`;
}

/** Starts the lock worker of a desk in this thread. */
function start(desk) {
  const fail = (cause) => {
    const message = `The thread that keeps the locks of the store has ended.${adviceOn(cause)}`;
    binding.endDesk(desk, toText({ message, cause }));
  };
  try {
    // A listener of users may throw, of 'newListener'.
    if (own < 0) process.on('exit', () => flush(own));
    own = desk;
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

exports.flush = flush;
exports.start = start;

/** The main thread starts what other threads have asked it for. */
exports.startDue = (first = binding.nextDueDesk()) => {
  for (let desk = first; desk >= 0; desk = binding.nextDueDesk()) start(desk);
};
