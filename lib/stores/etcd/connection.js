// How etcd is reached.

const { invalidArgument } = require('../../errors.js');

function isUrl(text) {
  try {
    const { protocol, username, password } = new URL(text);
    decodeURIComponent(username + password);
    return typeof text === 'string' && /^https?:$/.test(protocol);
  } catch {
    return false;
  }
}

/** `{ urls, tls, username, password }` of a URL, of several with commas in between, or of an object. */
exports.readConnection = (connection) => {
  const { endpoints, url, username, password, ...tls } =
    typeof connection === 'string' ? { endpoints: connection.split(',') } : connection;
  const texts = endpoints ?? [url];
  if (!Array.isArray(texts) || texts.length === 0 || !texts.every(isUrl)) {
    throw invalidArgument('connection', 'the URLs of etcd, which begin with "http:" or "https:"', texts);
  }
  const urls = texts.map((text) => new URL(text));
  return {
    urls,
    tls,
    username: username ?? decodeURIComponent(urls[0].username),
    password: password ?? decodeURIComponent(urls[0].password),
  };
};
