// The errors of stores. They are made in the lock worker and cross to the thread that asked as text; see ../engine/error-text.js.

const { describe, placeOfName } = require('../errors.js');

const coded = (error, code) => Object.assign(error, { code });

/** The error of a store that answers so, refuses, or does not answer. `isFinal`: to ask again would not help. */
exports.storeError = (message, { cause, isFinal = false, code = 'ERR_LOCK_STORE' } = {}) =>
  Object.assign(coded(new Error(message, cause === undefined ? undefined : { cause }), code), { isFinal });

/** The words of an error, to end a sentence with: several of Node.js's in one, and some of clients, have no message. */
exports.saidBy = ({ message, errors, code, name }) =>
  String(message || errors?.map((each) => each.message).join('; ') || code || name).replace(/\.$/, '');

/** The error of a client that could not connect. */
exports.notConnected = (store, cause, isFinal) =>
  exports.storeError(`${store} cannot be reached: ${exports.saidBy(cause)}.`, { cause, isFinal });

exports.noClient = (modules, cause) =>
  exports.storeError(
    `No client for this store is installed. Run \`npm install ${modules[0]}\`` +
      `${modules.length > 1 ? ` (or ${modules.slice(1).join(', ')})` : ''}, or give { module: "/absolute/path" }.`,
    { cause, isFinal: true, code: 'ERR_LOCK_NO_CLIENT' },
  );

/** A time was over before it was known whether anybody holds the name. */
exports.unacknowledged = (name, cause) =>
  exports.storeError(
    `The store has not acknowledged the request for ${describe(placeOfName(name))} in time, so it is not known whether anybody holds it.`,
    { cause },
  );

exports.closed = () =>
  coded(
    new Error('This LockManager was closed by close(): it grants nothing any more. Make another.'),
    'ERR_LOCK_CLOSED',
  );

exports.notServed = (connectTimeout) =>
  exports.storeError(
    `The thread that keeps the locks of the store has not begun within ${connectTimeout} ms: the main thread, which starts it, ` +
      'is busy or blocked. Make the first request there, or give a longer connectTimeout.',
  );
