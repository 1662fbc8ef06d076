'use strict';
// Locks among processes, each in a way of its own: `open(directory, root)` returns `take()`, which waits for the lock and
// returns `{ unlock() }`, or a promise of it; this package's has `abandoned` and `consistent()` too. `unlock()` may return a
// promise of the release. And a witness: a file that says who is inside.

const fs = require('node:fs');
const path = require('node:path');
const { sharedNs } = require('./clock');
const { loadNative } = require('./builds');

const NAME = 'the one';

/** The pause between tries of the others, since they cannot wait. */
const POLL_MS = 10;

function manager(directory, root) {
  const { LockManager } = require(root);
  return new LockManager({ directory, allowMainThread: true });
}

function gate() {
  let release;
  const promise = new Promise((resolve) => {
    release = resolve;
  });
  return { promise, release };
}

const FACES = {
  /** As a callback holds it. */
  sablock(directory, root) {
    const locks = manager(directory, root);
    return () =>
      new Promise((resolve, reject) => {
        const requested = locks.request(NAME, (lock) => {
          const { promise, release } = gate();
          const unlock = () => {
            release();
            return requested;
          };
          resolve({ abandoned: lock.abandoned, consistent: () => lock.markConsistent(), unlock });
          return promise;
        });
        requested.catch(reject);
      });
  },
  'sablock, blocking'(directory, root) {
    const locks = manager(directory, root);
    return () => {
      const lock = locks.acquire(NAME);
      return { abandoned: lock.abandoned, consistent: () => lock.markConsistent(), unlock: () => lock.unlock() };
    };
  },
  'bare flock'(directory) {
    const { lockFile, openFile, unlockFile } = loadNative();
    const file = openFile(path.join(directory, 'bare'));
    return () => {
      lockFile(file);
      return { unlock: () => unlockFile(file) };
    };
  },
  'proper-lockfile'(directory) {
    const lockfile = require('proper-lockfile');
    const file = path.join(directory, 'data');
    const retries = { forever: true, minTimeout: POLL_MS, maxTimeout: POLL_MS };
    return async () => ({ unlock: await lockfile.lock(file, { retries }) });
  },
};

const open = (name, directory, root) => FACES[name](directory, root);

/** Pid of who is inside or 0, number of holds that ended, and when the last one ended. */
const WORDS = 3;

/** A file that each holder reads and writes without any lock: two at once are found, and lost counts. */
class Witness {
  #file;
  #words = new Float64Array(WORDS);
  #count;
  constructor(directory) {
    this.#file = fs.openSync(path.join(directory, 'data'), 'r+');
  }

  static create(directory) {
    fs.writeFileSync(path.join(directory, 'data'), new Uint8Array(new Float64Array(WORDS).buffer));
    return new Witness(directory);
  }

  get count() {
    this.#read();
    return this.#words[1];
  }

  /** `{ inside, leftAt }`: who is inside already (0: nobody), and when the last one left. */
  enter() {
    this.#read();
    const [inside, count, leftAt] = this.#words;
    this.#count = count;
    this.#words[0] = process.pid;
    this.#write();
    return { inside, leftAt };
  }

  /** False if somebody else was inside meanwhile. */
  leave() {
    this.#read();
    const isAlone = this.#words[0] === process.pid && this.#words[1] === this.#count;
    this.#words[0] = 0;
    this.#words[1] = this.#count + 1;
    this.#words[2] = sharedNs();
    this.#write();
    return isAlone;
  }

  close() {
    fs.closeSync(this.#file);
  }

  #read() {
    fs.readSync(this.#file, this.#words, 0, this.#words.byteLength, 0);
  }

  #write() {
    fs.writeSync(this.#file, this.#words, 0, this.#words.byteLength, 0);
  }
}

module.exports = { NAME, Witness, manager, open };
