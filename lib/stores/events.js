// Events that the lock worker tells the thread that started it, where the program listens: warnings, and how a store is reached.

const { parentPort } = require('node:worker_threads');
const { toText } = require('../engine/error-text.js');
const { storeError } = require('./errors.js');

/** A warning of the process. */
exports.warn = (code, message) => parentPort.postMessage({ sablockWarning: { code, message } });

/** The reach of one store, for the channel sablock:store: each change once. */
exports.Reach = class {
  #kind;
  #namespace;
  /** Null before the first try. */
  #isUp = null;
  #wasUp = false;

  constructor({ kind, settings: { namespace } }) {
    this.#kind = kind;
    this.#namespace = namespace;
  }

  up() {
    if (this.#isUp === true) return;
    this.#isUp = true;
    this.#tell(this.#wasUp ? 'reconnected' : 'connected');
    this.#wasUp = true;
  }

  /** A connection has failed, or has ended. */
  down(error) {
    if (this.#isUp === false) return;
    this.#isUp = false;
    const isOwn = error?.isFinal !== undefined;
    this.#tell('unreachable', isOwn ? error : storeError('The connection to the store has ended.', { cause: error }));
  }

  /** Between this process and the server a pooler stands, as far as the server says. */
  pooler() {
    this.#tell('pooler');
  }

  #tell(event, error) {
    const told = error === undefined ? null : toText(error);
    parentPort.postMessage({ sablockStore: { store: this.#kind, namespace: this.#namespace, event, error: told } });
  }
};
