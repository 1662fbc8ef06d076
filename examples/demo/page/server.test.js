// The server of the counter page: where it listens, which requests it accepts, and how it ends. Without a browser.

const assert = require('node:assert/strict');
const http = require('node:http');
const { after, test } = require('node:test');
const { Counters, Refusal } = require('./counters.js');
const { endServer, killServers, startServer } = require('./helpers/server.js');

const WATCHDOG = { timeout: 60_000 };

after(killServers);

const statusOf = (url, options = {}) =>
  new Promise((resolve, reject) => {
    http.get(url, options, (response) => resolve(response.resume().statusCode)).on('error', reject);
  });

/** Returns a promise of the first event in the stream that fits. */
const eventOf = async (url, fits) => {
  const { body } = await fetch(`${url}events`);
  let text = '';
  for await (const chunk of body.pipeThrough(new TextDecoderStream())) {
    text += chunk;
    const events = text.split('\n\n');
    text = events.pop();
    const event = events.map((each) => JSON.parse(each.slice('data: '.length))).find(fits);
    if (event) return event;
  }
};

for (const signal of ['SIGINT', 'SIGTERM']) {
  test(`${signal} ends it cleanly with workers in the middle of a run and a page open`, WATCHDOG, async () => {
    const server = await startServer();
    const open = await fetch(`${server.url}events`);
    for (const counter of ['mutex', 'Atomics', 'no lock', 'mutex', 'mutex'])
      await fetch(`${server.url}start?${new URLSearchParams({ counter, by: 1 })}`, { method: 'POST' });
    await eventOf(server.url, ({ counters }) => counters.every(({ done, isRunning }) => isRunning && done > 0));
    assert.deepEqual(await endServer(server, signal), { code: 0, signal: null, stderr: '' });
    await assert.rejects(open.text());
  });
}

test('a port that is taken is an error that says what to do', WATCHDOG, async () => {
  const first = await startServer();
  const { port } = new URL(first.url);
  const second = await startServer('--port', port);
  const { code, stderr } = await second.ended;
  assert.equal(code, 1);
  assert.equal(stderr, `Port ${port} is taken. Choose another with --port, or leave it out to get one that is free.\n`);
  await endServer(first);
});

test('it listens on the loopback interface only, and refuses requests from other sites', WATCHDOG, async () => {
  const server = await startServer();
  const { port } = new URL(server.url);
  assert.equal(await statusOf(server.url), 200);
  assert.equal(await statusOf(server.url, { headers: { origin: 'http://example.com' } }), 403);
  assert.equal(await statusOf(server.url, { headers: { host: `example.com:${port}` } }), 403);
  assert.equal(await statusOf(`${server.url}server.js`), 404);
  assert.equal(await statusOf(`${server.url}/`), 400);
  await assert.rejects(statusOf(`http://127.0.0.2:${port}/`), { code: 'ECONNREFUSED' });
  await endServer(server);
});

test('counters refuse what 32 bits cannot count, and what does not exist', WATCHDOG, async () => {
  const counters = new Counters({ workers: 1, changes: 2 ** 31 });
  assert.throws(() => counters.start('mutex', 1), Refusal);
  assert.throws(() => counters.start('constructor', 1), Refusal);
  assert.throws(() => counters.start('mutex', 2), Refusal);
  assert.equal(counters.isRunning, false);
  await counters.end();
});

test('counters refuse a reset while workers run, and lose nothing', WATCHDOG, async () => {
  const counters = new Counters({ workers: 2, changes: 2 ** 29 });
  counters.start('mutex', 1);
  await assert.rejects(counters.reset(), Refusal);
  const { isRunning, counters: standings } = await counters.look();
  assert.equal(isRunning, true);
  assert.deepEqual(
    standings.map(({ expected }) => expected),
    [0, 0, 2 ** 30],
  );
  await counters.end();
});
