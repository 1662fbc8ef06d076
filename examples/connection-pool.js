// Sixteen workers and an HTTP server on the main thread share four connections. A semaphore counts those that are free: the
// workers block for one, the server awaits one. Which of the four it is, they find in a table of users under a mutex. One
// worker is terminated while it uses a connection. Its permit goes back by itself, and whoever gets that permit finds the
// connection: its user holds no permit any more.

const assert = require('node:assert/strict');
const { once } = require('node:events');
const http = require('node:http');
const { isMainThread, threadId, Worker, workerData } = require('node:worker_threads');
const { Mutex, Semaphore } = require('sablock');

const CONNECTIONS = 4;
const WORKERS = 16;
const QUERIES = 25;
const REQUESTS = 40;
const FREE = -1;

class Pool {
  static BYTES = Semaphore.BYTES + Mutex.BYTES + 4 * (CONNECTIONS + 3);
  #users;
  #counts;

  constructor(buffer) {
    this.permits = new Semaphore(buffer, 0, CONNECTIONS, { name: 'connections' });
    this.mutex = new Mutex(buffer, 4);
    this.#users = new Int32Array(buffer, 8, CONNECTIONS); // the thread that uses it; FREE at first, set by the main thread
    this.#counts = new Int32Array(buffer, 8 + 4 * CONNECTIONS, 3); // in use now, most in use, queries
  }

  /** Called by one thread, before any other uses the pool. */
  open() {
    this.#users.fill(FREE);
  }

  get most() {
    return Atomics.load(this.#counts, 1);
  }

  get queries() {
    return Atomics.load(this.#counts, 2);
  }

  /** Called with a permit and the mutex: there is a connection that is free, or whose user's thread has ended. */
  #take() {
    let connection = this.#users.indexOf(FREE);
    if (connection === -1) {
      const holders = new Set(this.permits.inspect().holders.map((holder) => holder.threadId));
      connection = this.#users.findIndex((user) => !holders.has(user));
    } else {
      this.#counts[0] += 1;
    }
    assert.notEqual(connection, -1);
    this.#users[connection] = threadId;
    this.#counts[1] = Math.max(this.#counts[1], this.#counts[0]);
    return connection;
  }

  #putBack(connection) {
    this.#users[connection] = FREE;
    this.#counts[0] -= 1;
    this.#counts[2] += 1;
  }

  query(work) {
    return this.permits.executeSync(() => {
      const connection = this.mutex.executeLockedSync(() => this.#take());
      try {
        return work(connection);
      } finally {
        this.mutex.executeLockedSync(() => this.#putBack(connection));
      }
    });
  }

  queryAsync(work) {
    return this.permits.execute(
      async () => {
        const connection = await this.mutex.executeLocked(() => this.#take());
        try {
          return await work(connection);
        } finally {
          await this.mutex.executeLocked(() => this.#putBack(connection));
        }
      },
      { timeout: 10_000 },
    );
  }
}

const spin = (ms) => {
  const until = performance.now() + ms;
  while (performance.now() < until);
};

const runWorker = ({ buffer, isDoomed, state }) => {
  const pool = new Pool(buffer);
  if (isDoomed) {
    pool.query(() => {
      Atomics.store(state, 0, 1);
      Atomics.notify(state, 0);
      for (;;) spin(1);
    });
  }
  for (let query = 0; query < QUERIES; query++) pool.query(() => spin(0.2));
};

const get = (port) =>
  new Promise((resolve, reject) => {
    http
      .get({ host: '127.0.0.1', port, agent: false }, (response) => {
        let body = '';
        response.setEncoding('utf8').on('data', (text) => {
          body += text;
        });
        response.on('end', () => resolve({ status: response.statusCode, body }));
      })
      .on('error', reject);
  });

const runMain = async () => {
  const buffer = new SharedArrayBuffer(Pool.BYTES);
  const state = new Int32Array(new SharedArrayBuffer(4));
  const pool = new Pool(buffer);
  pool.open();

  const start = (isDoomed) => new Worker(__filename, { workerData: { buffer, isDoomed, state } });
  const doomed = start(true);
  while (Atomics.load(state, 0) === 0) await new Promise(setImmediate);

  const server = http.createServer(async (_, response) => {
    try {
      const connection = await pool.queryAsync(async (connection) => connection);
      response.end(`served by connection ${connection}`);
    } catch (error) {
      response.writeHead(503).end(error.message);
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');

  const workers = Array.from({ length: WORKERS - 1 }, () => start(false));
  const ends = Promise.all(workers.map((worker) => once(worker, 'exit')));
  const { port } = server.address();
  const responses = [];
  const clients = Array.from({ length: 4 }, async () => {
    for (let count = 0; count < REQUESTS / 4; count++) responses.push(await get(port));
  });

  // In the middle of its query, with a connection.
  await doomed.terminate();
  await Promise.all([...clients, ends]);
  server.close();

  const queries = (WORKERS - 1) * QUERIES + REQUESTS;
  assert.equal(pool.queries, queries);
  assert.ok(responses.every(({ status, body }) => status === 200 && /^served by connection [0-3]$/.test(body)));
  assert.ok(pool.most <= CONNECTIONS, `${pool.most} connections in use`);
  assert.equal(pool.permits.available, CONNECTIONS);
  console.log(`${pool.queries} queries over ${CONNECTIONS} connections, never more than ${pool.most} at a time`);
};

if (isMainThread) runMain();
else runWorker(workerData);
