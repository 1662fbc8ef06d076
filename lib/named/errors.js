// The errors of named locks, beyond those of all locks: those of the Web Locks specification are DOMExceptions.

const { inspect } = require('node:util');
const { notOwner } = require('../errors.js');

/** What messages say of a name; `describe()` in ../errors.js knows what has no byte offset. */
exports.placeOf = (name) => ({ kind: 'named lock', type: 'HeldLock', name });

exports.notSupported = (message) => new DOMException(message, 'NotSupportedError');

exports.stolen = (name) =>
  new DOMException(
    `The named lock ${inspect(name)} was stolen: somebody requested it with { steal: true }, and has it now.`,
    'AbortError',
  );

exports.notHeld = (name) =>
  notOwner(exports.placeOf(name), 'mark as consistent', 'it is not held by this any more. Call it before unlock().');

exports.sharedRepair = (name) =>
  notOwner(
    exports.placeOf(name),
    'mark as consistent',
    'it is held in the mode "shared" here. Only who holds it in the mode "exclusive" can say that all is well.',
  );
