// Other processes that run functions which a test sends them; see `__test__/programs/peer.js`.

const { fork } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const { LockManager } = require('../..');
const { createFolder } = require('./folder.js');

const PROGRAM = path.join(__dirname, '..', 'programs', 'peer.js');

/** A process. `do(fn, ...args)` returns a promise of what `fn(here, ...args)` returns there. */
class Peer {
  #child;
  #pending = new Map();
  #next = 0;

  constructor(directory) {
    const { NODE_TEST_CONTEXT, ...env } = process.env;
    this.#child = fork(PROGRAM, [directory], { env, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
    this.pid = this.#child.pid;
    this.exited = new Promise((resolve) => {
      this.#child.once('exit', (code, signal) => {
        for (const { reject } of this.#pending.values()) reject(new Error(`The peer ended: ${code ?? signal}`));
        this.#pending.clear();
        resolve({ code, signal });
      });
    });
    this.#child.on('message', ({ id, value, error }) => {
      const { resolve, reject } = this.#pending.get(id);
      this.#pending.delete(id);
      if (error === undefined) resolve(value);
      else reject(Object.assign(new Error(error.message), error));
    });
  }

  do(fn, ...args) {
    const id = this.#next++;
    const promise = new Promise((resolve, reject) => this.#pending.set(id, { resolve, reject }));
    // One that is ended on purpose leaves promises that nobody awaits.
    promise.catch(() => {});
    this.#child.send({ id, source: String(fn), args });
    return promise;
  }

  kill(signal) {
    // Not by the child's own kill(), with which Deno sends one signal only.
    return process.kill(this.pid, signal);
  }

  async end() {
    this.#child.kill('SIGKILL');
    await this.exited;
  }
}

/** A directory for the locks of one test, a manager of this process for it, and processes that have one too. */
exports.startPeers = async (t, count) => {
  const peers = [];
  t.after(() => Promise.all(peers.map((peer) => peer.end())));
  const directory = createFolder(t);
  for (let i = 0; i < count; i += 1) peers.push(new Peer(directory));
  await Promise.all(peers.map((peer) => peer.do(() => true)));
  return { directory, manager: new LockManager({ directory }), peers };
};

/** Holds the name in a peer. */
exports.holdIn = (peer, name, mode = 'exclusive') =>
  peer.do(
    async (here, name, mode) => {
      here.lock = await here.manager.acquireAsync(name, { mode });
      return here.lock.abandoned;
    },
    name,
    mode,
  );

exports.unlockIn = (peer) => peer.do((here) => here.lock.unlock());

/** Requests the name in a peer; the promise is of whether it is abandoned, or of null if it is not available. */
exports.requestIn = (peer, name, options = {}) =>
  peer.do(
    (here, name, options) => here.manager.request(name, options, (lock) => (lock === null ? null : lock.abandoned)),
    name,
    options,
  );

/** Whether the system's list of locks shows that these processes share the only file of a lock in the directory. */
exports.isListed = (directory, peers) => {
  const [file] = fs.readdirSync(directory).filter((entry) => entry.endsWith('.lock'));
  const { dev, ino } = fs.statSync(path.join(directory, file));
  // The device is a number of 16 bits, nearly everywhere.
  const device = [dev >> 8, dev & 0xff].map((number) => number.toString(16).padStart(2, '0')).join(':');
  try {
    const list = fs.readFileSync('/proc/locks', 'utf8').slice(0, 60_000);
    return peers.every(({ pid }) => new RegExp(`READ +${pid} ${device}:${ino} `).test(list));
  } catch {
    return false;
  }
};
