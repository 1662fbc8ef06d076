// The result of `postgres()` and its like: a description of a store. Nothing is connected, loaded or started by it.

const { isAbsolute } = require('node:path');
const { isUint8Array } = require('node:util/types');
const { checkNames, checkOptions, own } = require('../arguments.js');
const { invalidArgument, outOfRange } = require('../errors.js');
const { PROTOCOL } = require('./verbs.js');

const secret = Symbol('Store');

/** Timers of Node.js count no further. */
const LONGEST = 2 ** 31 - 1;
exports.LONGEST = LONGEST;

/** A place where locks are kept. Two descriptions of the same are one store in this process. */
class Store {
  /** 'postgres', ... */
  kind;
  /** The description for the lock worker, as text. */
  #description;

  static {
    exports.descriptionOf = (store) => store.#description;
    exports.isStore = (value) => typeof value === 'object' && value !== null && #description in value;
  }

  constructor(key, kind, description) {
    if (key !== secret) throw new TypeError('Illegal constructor. Stores come from postgres() and its like.');
    this.kind = kind;
    this.#description = description;
    Object.freeze(this);
  }

  [Symbol.for('nodejs.util.inspect.custom')](_depth, options) {
    // Without the password that may be in it.
    return options.stylize(`[Store ${this.kind}]`, 'special');
  }
}

/** Options of every store: default, least; most, of those before it, as the default may be; and whether it is an integer. */
const COMMON = { connectTimeout: [5000, 1] };

/** The time between two renewals of leases, so that more than one may fail. */
exports.RENEW = [({ lease }) => Math.floor(lease / 3), 10, ({ lease }) => Math.floor(lease / 2)];

/** An option that is an integer. */
exports.whole = (usual, least) => [usual, least, LONGEST, true];

/** The options of stores whose sessions hold the locks. */
exports.SESSIONS = { connections: exports.whole(10, 2), heartbeat: [5000, 50] };

/**
 * The store of this kind. `connection` is a URL, or the client's own options, which are copied; `{ module }` among them names a
 * module whose `connect()` returns a client. `numbers` are the options of this kind, as in `COMMON`. `canShare`: whether its locks
 * may be shared.
 */
exports.describeStore = (kind, connection, options = {}, numbers = {}, { canShare = true } = {}) => {
  if (typeof connection !== 'string' && (typeof connection !== 'object' || connection === null)) {
    throw invalidArgument('connection', `a URL, or the options of a client`, connection);
  }
  const ofNumbers = { ...COMMON, ...numbers };
  checkOptions(options);
  checkNames(options, ['namespace', ...Object.keys(ofNumbers)]);
  const namespace = own(options, 'namespace', 'sablock');
  if (typeof namespace !== 'string') throw invalidArgument('options.namespace', 'a string', namespace);
  const settings = { namespace };
  const resolve = (number) => (typeof number === 'function' ? number(settings) : number);
  for (const [name, [usual, least, most = LONGEST, isWhole = false]] of Object.entries(ofNumbers)) {
    const value = own(options, name) ?? resolve(usual);
    if (typeof value !== 'number') throw invalidArgument(`options.${name}`, 'a number', value);
    if (!(value >= least && value <= resolve(most)))
      throw outOfRange(`options.${name}`, `from ${least} to ${resolve(most)}`, value);
    if (isWhole && !Number.isInteger(value)) throw outOfRange(`options.${name}`, 'an integer', value);
    settings[name] = value;
  }
  const { module } = connection;
  if (module !== undefined && (typeof module !== 'string' || !isAbsolute(module))) {
    throw invalidArgument('connection.module', 'the absolute path of a module', module);
  }
  const description = { protocol: PROTOCOL, kind, canShare, connection: copy(connection, 'connection'), settings };
  return new Store(secret, kind, JSON.stringify(description));
};

/** A copy that text can be made of, with its keys in order. `within` are the objects that it is a part of. */
function copy(value, path, within = []) {
  if (isUint8Array(value)) return { sablockBuffer: Buffer.from(value).toString('base64') };
  const inside = [...within, value];
  const isList = Array.isArray(value);
  if (/function|symbol|bigint/.test(typeof value) || !(isList || isPlain(value)) || within.includes(value)) {
    throw invalidArgument(
      path,
      'what can be copied to another thread (of a URL object, give its href; for functions, { module: "/absolute/path" } with ' +
        'a connect() that returns a client)',
      value,
    );
  }
  if (typeof value !== 'object' || value === null) return value;
  if (isList) return value.map((item, index) => copy(item, `${path}[${index}]`, inside));
  const keys = Object.keys(value).sort();
  return Object.fromEntries(keys.map((key) => [key, copy(value[key], `${path}.${key}`, inside)]));
}

/** Not of a class, whose objects have more than their own properties; one of another realm may be. */
function isPlain(value) {
  if (typeof value !== 'object' || value === null) return true;
  const prototype = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

/** The description that a text stands for. */
exports.readDescription = (text) =>
  JSON.parse(text, (_, value) =>
    typeof value?.sablockBuffer === 'string' ? Buffer.from(value.sablockBuffer, 'base64') : value,
  );
