// The connection to etcd.

const { invalidArgument } = require('../../errors.js');
const { withoutPassword } = require('../urls.js');

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
    const expected = 'a URL of etcd, which begins with "http:" or "https:", or several';
    throw invalidArgument('connection', expected, withoutPassword(connection));
  }
  const urls = texts.map((text) => new URL(text));
  return {
    urls,
    tls,
    username: username ?? decodeURIComponent(urls[0].username),
    password: password ?? decodeURIComponent(urls[0].password),
  };
};
