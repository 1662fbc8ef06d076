// Whether a user may do all that locks need, found out before anybody waits for one.

const { isReadOnly, refusalOf } = require('./client.js');
const { ENQUEUE, RELEASE, SCRIPT, SHA } = require('./script.js');

/**
 * A ticket of no request comes and goes, by all commands that are ever asked for: the server has the script from then on, and what it
 * would refuse later as well it refuses here.
 */
exports.tryAll = async (link, channel, { namespace, lease }) => {
  const slot = `${namespace}:{rights}`;
  const keys = ['3', `${slot}:line`, `${slot}:tickets`, `${slot}:name`];
  const step = (verb) => [...keys, verb, channel, String(lease), '1', channel, ''];
  const calls = [
    ['EVAL', SCRIPT, ...step(ENQUEUE)],
    ['EVALSHA', SHA, ...step(RELEASE)],
    ['PUBLISH', channel, ''],
  ];
  const refuses = (error) => {
    const refusal = refusalOf(error);
    if (refusal === null || refusal.isFinal || isReadOnly(error)) throw refusal ?? error;
  };
  await Promise.all(calls.map((call) => link.send(call).catch(refuses)));
};
