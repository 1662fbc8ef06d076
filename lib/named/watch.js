// The messages of waits for names on diagnostics channels, while anybody has subscribed.

const { AsyncResource } = require('node:async_hooks');
const { beginWait, isWatched } = require('../engine/diagnosis.js');
const { binding } = require('../engine/thread.js');
const { placeOf } = require('./errors.js');

const { Exclusive } = binding.NameMode;

/** A name of a backend that this thread waits for: what `diagnosis.js` watches. */
class WatchedName {
  #backend;

  constructor(backend, name) {
    Object.assign(this, placeOf(name));
    this.#backend = backend;
    /** Several waits of the thread for one name watch it together. */
    this.key = `${backend.space} ${name}`;
  }

  /** The exclusive holder of the name; null without one. A serial tells one hold from the next. */
  hold() {
    const { outer, space } = this.#backend;
    // undefined: in a thread that is ending no objects can be made.
    const inside = binding.nameHolders(space, this.name)?.find(({ isIn, mode }) => isIn && mode === Exclusive);
    if (inside !== undefined) return { serial: `${inside.threadId}-${inside.number}`, threadId: inside.threadId };
    const other = outer?.holderOf?.(this.name);
    if (other == null) return null;
    const { pid, threadId, since } = other;
    return { serial: `${pid}-${threadId}-${since}`, threadId, pid };
  }
}

/** An object with `end(status)`, with a status of the binding, or `'aborted'`, of which only the first counts. */
function beginWatch({ backend, lock }, kind) {
  const scope = new AsyncResource('SablockWait');
  const word = new WatchedName(backend, lock.name);
  const wait = { lock, word, runInAsyncScope: (tell) => scope.runInAsyncScope(tell) };
  const watching = beginWait(wait, kind);
  let isOver = false;
  return {
    end(status) {
      if (isOver) return;
      isOver = true;
      watching?.end(status);
      scope.emitDestroy();
    },
  };
}

/** The request waits from now on, if it has not before. */
exports.startWatch = (request, kind) => {
  if (request.watch === undefined && isWatched()) request.watch = beginWatch(request, kind);
};
