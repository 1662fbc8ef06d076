// The errors of named locks, beyond those of all locks: those of the Web Locks specification are DOMExceptions.

const { inspect } = require('node:util');
const { DOMException } = require('../load/clock.js');
const { notOwner, placeOfName } = require('../errors.js');

exports.placeOf = placeOfName;

exports.notSupported = (message) => new DOMException(message, 'NotSupportedError');

exports.stolen = (name) =>
  new DOMException(
    `The named lock ${inspect(name)} was stolen: another request took it with { steal: true }.`,
    'AbortError',
  );

/** A request whose lock was lost rejects with that; what its callback failed with is the cause. */
exports.lostBecause = (loss, failure) => {
  if (failure !== undefined && failure.error !== loss) loss.cause = failure.error;
  return loss;
};

exports.notHeld = (name) =>
  notOwner(placeOfName(name), 'mark as consistent', 'it is not held by this any more. Call it before unlock().');

exports.sharedRepair = (name) =>
  notOwner(
    placeOfName(name),
    'mark as consistent',
    'it is held in the mode "shared" here. Only who holds it in the mode "exclusive" can say that all is well.',
  );
