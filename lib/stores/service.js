// The lock worker's side of its desk: tasks of all threads go to the stores, their answers come back.

const { binding } = require('../engine/thread.js');
const { toText } = require('../engine/error-text.js');
const { storeError } = require('./errors.js');
const { asStoreError, FAREWELL_MS, within } = require('./retry.js');
const { readDescription } = require('./store.js');
const { CALL, FENCE, LOCK, OPEN, PROTOCOL, TRY } = require('./verbs.js');

const KINDS = {
  redis: () => require('./redis/keeper.js').RedisKeeper,
  etcd: () => require('./etcd/keeper.js').EtcdKeeper,
  mysql: () => require('./mysql/keeper.js').MysqlKeeper,
  postgres: () => require('./postgres/keeper.js').PostgresKeeper,
};

/** Kinds of tasks. */
const ASK = 0;
const CANCEL = 1;
const ABANDON = 3;

/** A grant that says nothing. */
const GRANT = { lease: 0, fence: 0n, abandoned: false, text: '' };

/** In place of the keeper of a store that another copy of this package has described. */
class Other {
  async check() {
    const message =
      'Two incompatible copies of sablock use stores in this process. Install one version for all packages.';
    throw storeError(message, { isFinal: true });
  }
  lock = this.check;
  query = this.check;
  stats = this.check;
  cancel() {}
  flush() {}
  close() {}
}

/** A request for a name, from its task to its release. A keeper may write to it. */
class Ticket {
  isCancelled = false;
  /** Its first try may have come to something. */
  isRepeated = false;
  /** The promise that the last `lockOnce()` has returned: of one that is cancelled, settled once what it was granted is given back. */
  asked = null;
  /** The place by which a keeper releases or cancels it. */
  place = null;

  constructor({ number, name, shared, flags }) {
    this.number = number;
    this.name = name;
    this.isShared = shared;
    this.isTry = (flags & TRY) !== 0;
    this.wantsFence = (flags & FENCE) !== 0;
  }
}

class Service {
  #desk;
  /** By the number of the store: `{ keeper, managers }`. */
  #stores = new Map();
  /** By the number of the store: a promise, while one that was closed sends what was released. */
  #closing = new Map();
  /** By the number of the request: how it is cancelled, or released. */
  #open = new Map();

  constructor(desk) {
    this.#desk = desk;
  }

  /** Called by the thread's drain. */
  drain() {
    for (let task = binding.nextTask(this.#desk); task !== null; task = binding.nextTask(this.#desk)) {
      try {
        this.#take(task);
      } catch (error) {
        this.#fail(task.number, error);
      }
    }
  }

  #take(task) {
    if (task.kind !== ASK) {
      const entry = this.#open.get(task.number);
      if (entry === undefined) return;
      if (task.kind === CANCEL) {
        entry.cancel();
      } else {
        this.#open.delete(task.number);
        entry.release(task.kind === ABANDON);
      }
      return;
    }
    if (task.verb === OPEN) this.#openStore(task);
    else if (task.verb === LOCK) this.#lock(task);
    else if (task.verb === CALL) this.#call(task);
  }

  #openStore({ number, store, payload }) {
    let entry = this.#stores.get(store);
    if (entry === undefined) {
      const description = readDescription(payload);
      // That of another copy is known, so that its requests fail with what is wrong.
      const Keeper = description.protocol === PROTOCOL ? KINDS[description.kind]() : Other;
      entry = { keeper: new Keeper(description, this.#desk), managers: 0 };
      this.#stores.set(store, entry);
    }
    entry.managers += 1;
    const release = () => {
      entry.managers -= 1;
      if (entry.managers > 0) return;
      this.#stores.delete(store);
      const closed = Promise.allSettled([this.#closing.get(store), entry.keeper.close()]).then(() => {
        if (this.#closing.get(store) === closed) this.#closing.delete(store);
      });
      this.#closing.set(store, closed);
    };
    this.#open.set(number, { cancel() {}, release });
  }

  #fail(number, error) {
    binding.answerTask(this.#desk, number, null, toText(error));
  }

  #keeperOf(store) {
    const entry = this.#stores.get(store);
    if (entry === undefined) throw storeError('This store was closed.');
    return entry.keeper;
  }

  async #lock(task) {
    const { number } = task;
    const ticket = new Ticket(task);
    let keeper;
    try {
      keeper = this.#keeperOf(task.store);
      this.#open.set(number, {
        ticket,
        cancel() {
          ticket.isCancelled = true;
          keeper.cancel(ticket);
        },
        release: (isAbandoned) => keeper.release(ticket, isAbandoned),
      });
      const granted = await keeper.lock(ticket);
      if (granted === null) {
        this.#open.delete(number);
        binding.answerTask(this.#desk, number, null);
        return;
      }
      const { key: text = '', ...grant } = granted;
      if (!binding.answerTask(this.#desk, number, { ...GRANT, ...grant, text })) {
        this.#open.delete(number);
        keeper.release(ticket, false);
      }
    } catch (error) {
      this.#open.delete(number);
      this.#fail(number, error);
    }
  }

  /** Resolves when what was released before is sent, of one store, or of all: number 0. */
  async #flush(store) {
    const of = (map) => (store === 0 ? [...map.values()] : [map.get(store)]);
    const flushed = of(this.#stores).map((entry) => entry?.keeper.flush());
    await within(FAREWELL_MS, Promise.allSettled([...flushed, ...of(this.#closing)])).catch(() => {});
    return null;
  }

  #answer(store, call, parameters) {
    if (call === 'flush') return this.#flush(store);
    const keeper = this.#keeperOf(store);
    if (call !== 'markConsistent') return keeper[call](parameters);
    const ticket = this.#open.get(parameters.number)?.ticket;
    if (ticket !== undefined) keeper.markConsistent(ticket);
    return null;
  }

  async #call({ number, store, payload }) {
    try {
      const { call, ...rest } = JSON.parse(payload);
      const result = await this.#answer(store, call, rest);
      // A call leaves nothing.
      binding.answerTask(this.#desk, number, { ...GRANT, text: JSON.stringify(result ?? null) });
    } catch (error) {
      this.#fail(number, asStoreError('The store', error));
    }
  }
}

exports.Service = Service;
