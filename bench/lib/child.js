'use strict';
// The parent's handle of one contender's process: starts it, asks it for rounds, and ends it when it takes too long.

const { fork } = require('node:child_process');
const path = require('node:path');
const { byName } = require('./contenders');

class Child {
  #process;
  #waiting = null;
  #log = [];

  /**
   * @param {string | null} name the contender; null: the limits
   * @param {{ load?: boolean, env?: object, nodeFlags?: string[] }} options load: false leaves the contender's package unloaded
   */
  constructor(name, { load = true, env = {}, nodeFlags = [] } = {}) {
    const flags = (name && byName(name).nodeFlags) ?? [];
    this.#process = fork(path.join(__dirname, 'host.js'), {
      execArgv: ['--expose-gc', '--no-warnings', ...flags, ...nodeFlags],
      env: { ...process.env, ...env },
      serialization: 'advanced',
      stdio: ['ignore', 'inherit', 'pipe', 'ipc'],
    });
    this.#process.stderr.on('data', (chunk) => this.#log.push(chunk));
    this.#process.on('message', (message) => this.#answer(message));
    this.#process.on('exit', (code, signal) => {
      const said = Buffer.concat(this.#log).toString().trim().split('\n').slice(0, 8).join('\n');
      this.#answer({ error: `its process ended (${signal ?? code})${said && `: ${said}`}` });
    });
    this.ready = this.#ask({ start: name, load }, 30_000);
  }

  get ended() {
    return this.#process.exitCode !== null || this.#process.signalCode !== null;
  }

  /** One round: `{ result }` (null: does not apply), `{ error }`, `{ notBuilt }`, or `{ tookOver: ms }`. */
  round(scenario, limit, params, timeLimit) {
    return this.#ask({ scenario, limit, params }, timeLimit);
  }

  end() {
    this.#process.kill('SIGKILL');
  }

  #ask(request, timeLimit) {
    if (this.ended) return Promise.resolve({ error: 'its process has ended' });
    return new Promise((resolve) => {
      const watchdog = setTimeout(() => {
        this.#answer({ tookOver: timeLimit });
        this.end();
      }, timeLimit);
      this.#waiting = { resolve, watchdog };
      this.#process.send(request, (error) => error && this.#answer({ error: error.message }));
    });
  }

  #answer(message) {
    if (this.#waiting === null) return;
    const { resolve, watchdog } = this.#waiting;
    this.#waiting = null;
    clearTimeout(watchdog);
    resolve(message);
  }
}

module.exports = { Child };
