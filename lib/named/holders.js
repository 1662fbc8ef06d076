// The holders of a name, for the message that a request has timed out.

const { threadId: thisThread } = require('node:worker_threads');
const { binding } = require('../engine/thread.js');
const { TimeoutError } = require('../errors.js');
const { placeOf } = require('./errors.js');
const { MODES } = require('./options.js');

/** A message names so many holders. */
const MOST = 5;

const forSome = (heldMs) => `for ${Math.round(heldMs)} ms`;
const nameThread = (threadId) => (threadId === thisThread ? 'this thread' : `thread ${threadId}`);

function heldBy(mode, names) {
  const more = names.length > MOST ? `; and ${names.length - MOST} more` : '';
  return `It is held now, ${mode}, by ${names.slice(0, MOST).join('; by ')}${more}.`;
}

/**
 * The holders of the name now, as far as `query()` would know; `elsewhere` are those of whom a store has said so. `isFirst`: the request
 * itself is the first of the process.
 */
function describeHolders({ space, outer }, name, elsewhere, isFirst) {
  const rows = binding.nameHolders(space, name);
  // In a thread that is ending no objects can be made.
  if (rows === undefined) return 'Who holds it now is not known, because this thread is ending.';
  const inside = rows.filter(({ isIn }) => isIn);
  if (inside.length > 0) {
    const names = inside.map(({ threadId, heldMs }) => `${nameThread(threadId)}, ${forSome(heldMs)}`);
    return heldBy(MODES[inside[0].mode], names);
  }
  if (elsewhere.length > 0) {
    const names = elsewhere.map(({ clientId }) => clientId);
    return heldBy(elsewhere[0].mode, names);
  }
  const other = outer === null ? undefined : outer.holderOf?.(name);
  if (other != null) {
    const { pid, threadId, heldMs } = other;
    return `It is held now, exclusive, by process ${pid}${threadId > 0 ? ` (its thread ${threadId})` : ''}, ${forSome(heldMs)}.`;
  }
  const sharers = outer?.sharersOf?.(name) ?? [];
  if (sharers.length > 0) {
    return heldBy(
      'shared',
      sharers.map((pid) => `process ${pid}`),
    );
  }
  const [first] = rows;
  if (first !== undefined && !isFirst) {
    const { threadId } = first;
    const who = threadId === thisThread ? 'This thread' : `Thread ${threadId}`;
    if (outer === null) return `${who} has it for a request for several names, and waits for the next of them.`;
    return `${who} came before: its request waits for another process, or for another of several names.`;
  }
  return outer === null ? 'No thread holds it now.' : 'Another process holds it, or came before.';
}

/** `limit` is the time that was given for several names, of which this is one. */
function timedOut(backend, name, { timeout, limit = timeout, isFirst = false }, verb, elsewhere) {
  const advice = 'Wait longer, or ask with { ifAvailable: true }, which does not wait.';
  return new TimeoutError(placeOf(name), limit, verb, describeHolders(backend, name, elsewhere, isFirst), advice);
}

/** Whether only a store may know. */
const isElsewhere = ({ outer, space }, name) =>
  outer?.askHolders !== undefined && !binding.nameHolders(space, name)?.some(({ isIn }) => isIn);

/** A promise that is fulfilled once it is sure that somebody holds the name, or came before. */
exports.confirmHeld = async (backend, name) => {
  if (isElsewhere(backend, name)) await backend.outer.askHolders(name);
};

/** The same for a thread that blocks. */
exports.confirmHeldBlocking = (backend, name) => {
  if (isElsewhere(backend, name)) backend.outer.askHoldersBlocking(name);
};

/**
 * Throws that the request has timed out; or a promise rejects with it, once the store has said who holds the name, or with what keeps
 * the store from it.
 */
exports.timeOut = (backend, name, options, verb) => {
  const fail = (elsewhere) => {
    throw timedOut(backend, name, options, verb, elsewhere);
  };
  return isElsewhere(backend, name) ? backend.outer.askHolders(name).then(fail) : fail([]);
};

/** The same for a thread that blocks, which throws it. */
exports.timeOutBlocking = (backend, name, options, verb) => {
  const elsewhere = isElsewhere(backend, name) ? backend.outer.askHoldersBlocking(name) : [];
  throw timedOut(backend, name, options, verb, elsewhere);
};
