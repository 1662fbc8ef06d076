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
