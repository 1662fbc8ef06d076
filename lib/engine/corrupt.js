const { binding } = require('./thread.js');
const { typeOf } = require('./names.js');
const errors = require('../errors.js');

/** The error if others wait there for another kind of lock; undefined if not. */
function otherKind(word) {
  const type = word.isFair ? `fair ${typeOf(word)}` : typeOf(word);
  const queued = binding.queuedKind(word);
  return queued === null || queued === type ? undefined : errors.otherKind(word, type, queued);
}

/** The error for a word that the binding refused: this package did not write it, or others wait there for another kind. */
exports.corrupt = (word) => otherKind(word) ?? errors.corrupt(word, Atomics.load(word, 0));

/** For what changes no word, so that the binding has nothing to refuse. */
exports.checkKind = (word) => {
  const error = otherKind(word);
  if (error !== undefined) throw error;
};
