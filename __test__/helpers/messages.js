const diagnostics = require('node:diagnostics_channel');

/** A message without its object, which does not survive `postMessage`; its offset and its name must be that object's. */
exports.plain = ({ mutex, primitive = mutex, name, ...rest }) => {
  if (primitive.name !== name) throw new Error(`${primitive.name} is not ${name}`);
  if (primitive.byteOffset !== rest.byteOffset) throw new Error(`${primitive.byteOffset} is not ${rest.byteOffset}`);
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
