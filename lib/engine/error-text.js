// Errors that cross to another thread as text.

const { inspect } = require('node:util');

const { assign } = require('../errors.js');

const coded = (error, code) => assign(error, { code });

/** The text of `{ message, code, cause }`, an error of stores for one. */
exports.toText = (error) => {
  const { message, code = 'ERR_LOCK_STORE', cause } = error;
  const told =
    cause instanceof Error
      ? { name: cause.name, message: cause.message || inspect(cause), code: cause.code }
      : undefined;
  return JSON.stringify({ message, code, cause: told });
};

/** The error that the text stands for. */
exports.fromText = (text) => {
  const { message, code, cause } = JSON.parse(text);
  if (cause === undefined) return coded(new Error(message), code);
  const { name, message: reason, code: causeCode } = cause;
  const inner = assign(new Error(reason), { name, ...(causeCode === undefined ? {} : { code: causeCode }) });
  return coded(new Error(message, { cause: inner }), code);
};
