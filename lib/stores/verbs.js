// The words between threads and the lock worker, by number.

const { CALL } = require('../engine/lock-worker.js');

/**
 * Two copies of this package in one process have one lock worker, which is one copy's: what they say to it, and what its keepers say to
 * servers, has this version.
 */
exports.PROTOCOL = 1;

/** A manager stands on the store; released when it is closed. The payload is the store's description. */
exports.OPEN = 0;
exports.LOCK = 1;
exports.CALL = CALL;

/** Flags of LOCK: what cannot be had at once is refused; a fence is wanted. */
exports.TRY = 1;
exports.FENCE = 2;

/** The reasons of a loss, by the binding's number. */
exports.LOSSES = [null, 'unreachable', 'taken', 'closed', 'worker'];
exports.UNREACHABLE = 1;
exports.TAKEN = 2;
