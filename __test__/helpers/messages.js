const diagnostics = require('node:diagnostics_channel');

/** A message without its object, which does not survive `postMessage`, and without what must be that object's. */
exports.plain = ({ lock, lockKind, mutex, name, ...rest }) => {
  if (lock.constructor.name !== lockKind) throw new Error(`${lock.constructor.name} is not ${lockKind}`);
  if (mutex !== (lockKind === 'Mutex' ? lock : null)) throw new Error(`the mutex of a ${lockKind} is ${mutex}`);
  if (lock.name !== name) throw new Error(`${lock.name} is not ${name}`);
  if (lock.byteOffset !== rest.byteOffset) throw new Error(`${lock.byteOffset} is not ${rest.byteOffset}`);
  return rest;
};

const kept = [];

/** Subscribes, and keeps the channel: Bun forgets one that nobody holds, subscribers and all. */
exports.subscribe = (channel, note) => {
  kept.push(diagnostics.channel(channel));
  diagnostics.subscribe(channel, note);
};

/** Collects what this thread publishes on the channel during the test. */
exports.listen = (t, channel) => {
  const messages = [];
  const note = (message) => messages.push(exports.plain(message));
  exports.subscribe(channel, note);
  t.after(() => diagnostics.unsubscribe(channel, note));
  return messages;
};

/** Collects the process warnings of this thread during the test, those with this code if one is given. */
exports.warningsOf = (t, code) => {
  const warnings = [];
  const note = (warning) => {
    if (code === undefined || warning.code === code) warnings.push(warning);
  };
  process.on('warning', note);
  t.after(() => process.off('warning', note));
  return warnings;
};
