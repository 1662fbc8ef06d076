// A server that a test is itself.

const http = require('node:http');

/** Serves until the test is over. Returns its URL. */
exports.serveHttp = async (t, listener) => {
  const server = http.createServer(listener);
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    // Not every runtime has it.
    server.closeAllConnections?.();
    server.close();
  });
  return `http://127.0.0.1:${server.address().port}`;
};
