// The URLs that name a server, of all stores.

const SCHEMES = {
  redis: ['redis', 'rediss', 'valkey', 'valkeys'],
  postgres: ['postgres', 'postgresql'],
  mysql: ['mysql', 'mariadb'],
  etcd: ['http', 'https'],
};

const isText = (value) => typeof value === 'string' && value !== '';

exports.isText = isText;

/** Whether this may be a URL of such a store: a client would find out that it is another's only when it connects. */
exports.mayBeUrlOf = (kind, value) => {
  if (!isText(value)) return false;
  const [, scheme] = /^([a-z]+):\/\//i.exec(value) ?? [];
  return !Object.entries(SCHEMES).some(([other, schemes]) => other !== kind && schemes.includes(scheme?.toLowerCase()));
};

/** The value that was given for a URL, as messages show it: without what may be a password. What is no text is not shown by itself. */
exports.withoutPassword = (connection) => {
  if (typeof connection !== 'string') return connection;
  const unnamed = connection.replace(/^([a-z]+:\/\/)?.*@/is, '$1...@');
  // Parameters, `password=...` of what is no URL, and what stands where a port would.
  return unnamed.replace(/(?:\?|[^\s?]*=|:(?!\/\/|\d+(?:[,/?]|$))).*$/s, '...');
};
