// A server like etcd, in memory, and keepers that ask it. Whoever requires this is the thread of the keepers: it is to be the first.

const threads = require('node:worker_threads');

/** The events that the thread which started the lock worker would be told. */
const told = [];
threads.parentPort = { postMessage: ({ sablockStore }) => told.push(sablockStore?.event) };
const { binding } = require('../../lib/engine/thread.js');
const gateway = require('../../lib/stores/etcd/gateway.js');
const { hashOf } = require('../../lib/stores/retry.js');

const { toBase64, toText } = gateway;
/** The server that the next keeper asks. */
let server;

/** A server: `keys` by name, in order; `calls` are what it was asked. */
class Server {
  keys = new Map();
  calls = [];
  limits = new Set();
  revision = 100;
  leases = 0;
  ttl = '600';
  /** Called before a call; what it returns is awaited, and if it is not undefined, it is the answer. */
  before = () => {};
  /** Called, and awaited, between what a transaction does and its answer. */
  after = () => {};
  hear = null;
  watched = null;
  isClosed = false;

  async call(path, body, limit) {
    this.calls.push([path, body]);
    this.limits.add(limit);
    const answer = await this.before(path, body);
    if (answer !== undefined) return answer;
    switch (path) {
      case 'lease/grant':
        this.leases += 1;
        return { ID: String(this.leases), TTL: this.ttl };
      case 'lease/keepalive':
        return { TTL: this.ttl };
      case 'lease/revoke':
        for (const [key, { lease }] of this.keys) if (lease === body.ID) this.delete(key);
        return {};
      default:
        return this.#answer(body);
    }
  }

  async #answer(body) {
    const answer = this.#transact(body);
    await this.after(body);
    return answer;
  }

  #transact({ compare = [], success = [], failure = [] }) {
    const succeeded = compare.every((each) => this.#holds(each));
    this.revision += 1;
    const responses = (succeeded ? success : failure).map((each) => this.#do(each));
    return { header: { revision: String(this.revision) }, succeeded: succeeded || undefined, responses };
  }

  #range({ key, range_end }) {
    const [first, end] = [toText(key), range_end && toText(range_end)];
    return [...this.keys.keys()].filter((each) => (end ? each >= first && each < end : each === first));
  }

  #holds({ create_revision, result, ...range }) {
    const made = this.#range(range).map((key) => this.keys.get(key).made);
    const all = made.length === 0 && range.range_end === undefined ? [0] : made;
    return all.every((each) =>
      result === 'GREATER' ? each > Number(create_revision) : each === Number(create_revision),
    );
  }

  #do({ request_put: put, request_range: range, request_delete_range: deleted }) {
    if (put !== undefined) {
      const made = this.keys.get(toText(put.key))?.made ?? this.revision;
      this.keys.set(toText(put.key), { value: put.value, lease: put.lease, made });
      return {};
    }
    if (deleted !== undefined) {
      for (const key of this.#range(deleted)) this.delete(key);
      return {};
    }
    const kvs = this.#range(range).map((key) => ({ key: toBase64(key), value: this.keys.get(key).value }));
    return { response_range: kvs.length === 0 ? {} : { kvs } };
  }

  /** A key goes, and that is told. */
  delete(key) {
    this.keys.delete(key);
    setImmediate(() => this.hear?.({ events: [{ type: 'DELETE', kv: { key: toBase64(key) } }] }));
  }

  /** A request of another process. */
  put(name, kind, id, process = 'their-9') {
    this.revision += 1;
    const key = `kept/${hashOf(name)}/${id}`;
    this.keys.set(key, { value: toBase64(`${kind} ${process}`), made: this.revision });
    return key;
  }

  mark(name) {
    this.keys.set(`kept/${hashOf(name)}:held`, { value: '', made: this.revision });
  }

  isMarked(name) {
    return this.keys.has(`kept/${hashOf(name)}:held`);
  }

  stream(_path, { create_request: request }, onMessage, onEnd) {
    this.watched = [toText(request.key), toText(request.range_end), request.filters];
    this.hear = onMessage;
    this.endStream = onEnd;
    setImmediate(onMessage, { created: true });
    return () => {
      if (this.hear === onMessage) this.hear = null;
    };
  }
}

gateway.Gateway = class {
  #of = server;
  call(...call) {
    return this.#of.call(...call);
  }
  stream(...stream) {
    return this.#of.stream(...stream);
  }
  close() {
    this.#of.isClosed = true;
  }
};
const { EtcdKeeper } = require('../../lib/stores/etcd/keeper.js');

const SETTINGS = { namespace: 'kept', connectTimeout: 5000, lease: 600_000, renew: 200_000 };

/** A keeper of a server. The leases that it begins are in `leases`, and how they ended in `ended`. */
exports.create = (t, more = {}) => {
  server = new Server();
  told.length = 0;
  const it = { server, leases: new Map(), ended: [] };
  t.mock.method(binding, 'beginLease', (until) => it.leases.set(it.leases.size + 1, until).size);
  t.mock.method(binding, 'extendLease', (lease, until) => it.leases.has(lease) && it.leases.set(lease, until) !== null);
  t.mock.method(binding, 'endLease', (desk, lease, loss) => it.ended.push([desk, lease, loss]));
  it.keeper = new EtcdKeeper({ kind: 'etcd', connection: {}, settings: { ...SETTINGS, ...more } }, 3);
  t.after(() => it.keeper.close());
  it.keysOf = (name) => [...it.server.keys.keys()].filter((key) => key.startsWith(`kept/${hashOf(name)}/`));
  return it;
};

/** The transactions that its server was asked for. */
exports.transactions = ({ server }) => server.calls.filter(([path]) => path === 'kv/txn');
exports.told = told;
