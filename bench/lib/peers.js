'use strict';
// Processes that share a lock, seen from the one that started them: it tells each what to do, and waits for what it says.

const { fork } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { once } = require('node:events');
const { sharedNs, sleep } = require('./clock');
const { Witness } = require('./machine-locks');

/** The time after which a process that asked sleeps. */
const SETTLE_MS = 2;

class Peer {
  #process;
  #said = [];
  #listener;

  constructor(what) {
    const program = path.join(__dirname, '..', 'programs', 'machine-peer.js');
    this.#process = fork(program, [JSON.stringify(what)], { execArgv: ['--no-warnings'], serialization: 'advanced' });
    this.#process.on('message', (message) => this.#hear(message));
    this.#process.on('exit', (code, signal) => this.#hear({ error: `a process ended (${signal ?? code})` }));
    this.ready = this.#next('ready');
    this.ready.catch(() => {});
  }

  get pid() {
    return this.#process.pid;
  }

  /** Tells it to ask for the lock: `{ in }`, a promise of when it was in, once it asks. */
  async ask() {
    this.#process.send({ order: 'take' });
    await this.#next('asking');
    const entered = this.#next('done');
    entered.catch(() => {});
    return { in: entered };
  }

  /** Tells it to unlock: `{ isAlone }`. */
  give() {
    return this.tell('give');
  }

  tell(order, params) {
    this.#process.send({ order, ...params });
    return this.#next('done');
  }

  kill() {
    this.#process.kill('SIGKILL');
  }

  async end() {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    const ended = once(this.#process, 'exit');
    this.kill();
    await ended;
  }

  #hear(message) {
    this.#said.push(message);
    this.#listener?.();
  }

  /** Returns what it says next, which must have this key. */
  async #next(key) {
    if (this.#said.length === 0) {
      await new Promise((resolve) => {
        this.#listener = resolve;
      });
    }
    this.#listener = undefined;
    const message = this.#said.shift();
    if (message.error !== undefined) throw new Error(message.error);
    return message[key];
  }
}

/** Runs `body(start, witness)` with a directory of its own; `start()` is a promise of one more process. */
async function withPeers({ face, root, store }, body) {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'sablock-bench-'));
  const witness = Witness.create(directory);
  const peers = [];
  const start = async () => {
    const peer = new Peer({ face, directory, root, store });
    peers.push(peer);
    await peer.ready;
    return peer;
  };
  try {
    return await body(start, witness, directory);
  } finally {
    await Promise.all(peers.map((peer) => peer.end()));
    witness.close();
    fs.rmSync(directory, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** Two processes, each in turn: one holds while the other asks, gives, and asks once the other is in. */
function handover(what, { count }) {
  return withPeers(what, async (start, witness) => {
    let [holder, waiter] = await Promise.all([start(), start()]);
    // Each has done once what it does once.
    for (const peer of [waiter, holder]) {
      await (await peer.ask()).in;
      await peer.give();
    }
    await (await holder.ask()).in;
    const samples = [];
    for (let i = 0; i < count; i++) {
      const asked = await waiter.ask();
      await sleep(SETTLE_MS);
      const { isAlone } = await holder.give();
      const { at, inside, leftAt } = await asked.in;
      if (!isAlone || inside !== 0) return { wrong: `two processes were inside in handover ${i}` };
      samples.push(at - leftAt);
      [holder, waiter] = [waiter, holder];
    }
    await holder.give();
    return witness.count === count + 3 ? { samples } : { wrong: `${count + 3} holds counted ${witness.count}` };
  });
}

/** The holder is killed while another process asks; that one is the next holder. */
function killed(what, { kills, settle = SETTLE_MS }) {
  return withPeers(what, async (start) => {
    let holder = await start();
    await (await holder.ask()).in;
    const samples = [];
    for (let i = 0; i < kills; i++) {
      const waiter = await start();
      const asked = await waiter.ask();
      await sleep(settle);
      const killedAt = sharedNs();
      holder.kill();
      const { at, inside, abandoned } = await asked.in;
      if (at < killedAt) return { wrong: 'another process was in before the holder was killed' };
      if (inside !== holder.pid) return { wrong: `process ${inside} was inside, not the killed one` };
      if (what.face === 'sablock' && what.store?.kind !== 'postgres' && !abandoned)
        return { wrong: 'the killed holder was not reported' };
      samples.push(at - killedAt);
      holder = waiter;
    }
    return { samples };
  });
}

module.exports = { handover, killed, withPeers };
