// The counter demo as a page: four workers change shared counters, and a browser shows the totals live.
// `--port N` chooses the port; without it the system chooses one that is free. SIGINT or SIGTERM ends it, with code 0.

const { createReadStream } = require('node:fs');
const http = require('node:http');
const path = require('node:path');
const { parseArgs } = require('node:util');
const { Counters, Refusal } = require('./counters.js');
const { Live } = require('./live.js');

const HOST = '127.0.0.1';
const BASE = `http://${HOST}`;
const FILES = {
  '/': ['index.html', 'text/html'],
  '/page.js': ['page.js', 'text/javascript'],
  '/style.css': ['style.css', 'text/css'],
  '/icon.svg': ['icon.svg', 'image/svg+xml'],
};

const readPort = () => {
  const { values } = parseArgs({ options: { port: { type: 'string', default: '0' } } });
  const port = Number(values.port);
  if (!Number.isInteger(port) || port < 0 || port > 65_535)
    throw new RangeError(`--port must be a whole number from 0 to 65535, not "${values.port}"`);
  return port;
};

const sendFile = (response, [name, type]) => {
  response.writeHead(200, {
    'content-type': `${type}; charset=utf-8`,
    'cache-control': 'no-store',
    'content-security-policy': "default-src 'self'",
  });
  createReadStream(path.join(__dirname, 'public', name)).pipe(response);
};

const sendText = (response, status, text) => {
  response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8' });
  response.end(text);
};

/** Whether a request comes from this page and not from another site that is open in the same browser. */
const isOwn = ({ headers, socket }) => {
  const hosts = [HOST, 'localhost'].map((name) => `${name}:${socket.localPort}`);
  return hosts.includes(headers.host) && [undefined, `http://${headers.host}`].includes(headers.origin);
};

const port = readPort();
const counters = new Counters();
const live = new Live(counters);

const actions = {
  '/start': (query) => counters.start(query.get('counter'), Number(query.get('by'))),
  '/reset': () => counters.reset(),
};

const act = async (response, action, query) => {
  try {
    await action(query);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    return sendText(response, 409, error.message);
  }
  response.writeHead(204).end();
  await live.refresh();
};

const server = http.createServer((request, response) => {
  if (!URL.canParse(request.url, BASE)) return sendText(response, 400, 'Bad request.');
  const { pathname, searchParams } = new URL(request.url, BASE);
  if (!isOwn(request)) sendText(response, 403, 'Only this machine may use the page.');
  else if (request.method === 'POST' && Object.hasOwn(actions, pathname))
    act(response, actions[pathname], searchParams);
  else if (request.method === 'GET' && pathname === '/events') live.open(response);
  else if (request.method === 'GET' && Object.hasOwn(FILES, pathname)) sendFile(response, FILES[pathname]);
  else sendText(response, 404, 'Not found.');
});

const end = () => {
  live.end();
  server.close();
  server.closeAllConnections();
  counters.end();
};

process.on('SIGINT', end).on('SIGTERM', end);
server.on('error', (error) => {
  if (error.code !== 'EADDRINUSE') throw error;
  console.error(`Port ${port} is taken. Choose another with --port, or leave it out to get one that is free.`);
  process.exitCode = 1;
  end();
});
server.listen(port, HOST, () => {
  console.log(`The counter page is at ${BASE}:${server.address().port}/ (Ctrl+C ends it)`);
});
live.refresh();
