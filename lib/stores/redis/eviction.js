// A server that evicts keys when its memory is full evicts locks. They all expire, so those policies that take only such keys
// (volatile-*) take them as well.

const { warn } = require('../events.js');

/** Warns if this server is set to evict. One that does not let its settings be read is taken as it is. */
exports.warnOfEviction = async (link) => {
  let settings;
  try {
    settings = await link.send(['INFO', 'memory']);
  } catch {
    return;
  }
  const policy = /^maxmemory_policy:([\w-]+)/m.exec(String(settings))?.[1] ?? 'noeviction';
  if (policy === 'noeviction') return;
  warn(
    'SABLOCK_STORE_EVICTS',
    `This Redis evicts keys when its memory is full (maxmemory-policy ${policy}), and locks are keys: one that is evicted is lost, ` +
      'and another may be granted it meanwhile. Set maxmemory-policy to noeviction, or keep locks in a server of their own.',
  );
};
