// Who holds a name, for the message that a request has timed out.

const { threadId: thisThread } = require('node:worker_threads');
const { binding } = require('../engine/thread.js');
const { TimeoutError } = require('../errors.js');
const { placeOf } = require('./errors.js');
const { MODES } = require('./options.js');

/** A message names so many holders. */
const MOST = 5;

const forSome = (heldMs) => `for ${Math.round(heldMs)} ms`;
const nameThread = (threadId) => (threadId === thisThread ? 'this thread' : `thread ${threadId}`);

/** Who holds the name now, as far as `query()` would know. */
function describeHolders({ space, outer }, name) {
  const rows = binding.nameHolders(space, name);
  // In a thread that is ending Node.js lets nobody make objects.
  if (rows === undefined) return 'Who holds it now is not known, because this thread is ending.';
  const inside = rows.filter(({ isIn }) => isIn);
  if (inside.length > 0) {
    const shown = inside.slice(0, MOST).map(({ threadId, heldMs }) => `${nameThread(threadId)}, ${forSome(heldMs)}`);
    const more = inside.length > MOST ? `; and ${inside.length - MOST} more` : '';
    return `It is held now, ${MODES[inside[0].mode]}, by ${shown.join('; by ')}${more}.`;
  }
  const other = outer === null ? undefined : outer.holderOf?.(name);
  if (other != null) {
    const { pid, threadId, heldMs } = other;
    return `It is held now, exclusive, by process ${pid}${threadId > 0 ? ` (its thread ${threadId})` : ''}, ${forSome(heldMs)}.`;
  }
  const [first] = rows;
  if (first !== undefined && outer === null) {
    const { threadId } = first;
    const who = threadId === thisThread ? 'This thread' : `Thread ${threadId}`;
    return `${who} has it for a request for several names, and waits for the next of them.`;
  }
  return outer === null ? 'Nobody holds it now.' : 'Another process holds it, or came before.';
}

/** `limit` is the time that was given for several names, of which this is one. */
exports.timedOut = (backend, name, { timeout, limit = timeout }, verb) => {
  const advice = 'Wait longer, or ask with { ifAvailable: true }, which does not wait.';
  return new TimeoutError(placeOf(name), limit, verb, describeHolders(backend, name), advice);
};
