// A request in etcd, and the keys that stand for it.

const { LeasePlace } = require('../leases/place.js');
const { OURS } = require('../retry.js');
const { toBase64, toText } = require('./gateway.js');

const EXCLUSIVE = 'x';
const SHARED = 's';

/** All keys that begin with it, which ends in '/'. */
const under = (prefix) => ({ key: toBase64(prefix), range_end: toBase64(`${prefix.slice(0, -1)}0`) });
const inOrder = (prefix) => ({ request_range: { ...under(prefix), sort_order: 'ASCEND', sort_target: 'CREATE' } });

/** The keys of the requests, in order; `process` is whose it is. */
const readLine = (kvs) =>
  kvs.map(({ key, value }) => {
    const [kind, process] = toText(value).split(' ');
    return { key: toText(key), isShared: kind === SHARED, process };
  });

/** A request in etcd. */
class Place extends LeasePlace {
  /** A holder of the name has ended inside; assumed while that is not known. */
  isMarked = true;
  /** When its key was made; null: not yet. */
  revision = null;
  /** The key whose deletion it waits for; null while that is not known. */
  blocker = null;
  /** While it is finding out, a promise; what was deleted meanwhile may be what it finds. */
  looking = null;
  /** Once it is over, a promise of the end of its release. */
  released = null;
  isDirty = false;

  constructor(session, prefix, id, isShared) {
    super(isShared);
    this.session = session;
    this.prefix = prefix;
    this.key = `${prefix}${id}`;
  }

  end() {
    super.end();
    this.session.places.delete(this.key);
  }

  get kind() {
    return toBase64(`${this.isShared ? SHARED : EXCLUSIVE} ${OURS}`);
  }

  /** Its mark, beside its prefix. */
  get mark() {
    return toBase64(`${this.prefix.slice(0, -1)}:held`);
  }

  get readMark() {
    return { request_range: { key: this.mark } };
  }

  get setMark() {
    return { request_put: { key: this.mark, value: this.kind } };
  }

  /** Whether its key is the one that it made. */
  get exists() {
    return { key: toBase64(this.key), target: 'CREATE', result: 'EQUAL', create_revision: this.revision };
  }

  /** Whether no key in line was made before it. */
  get isFirst() {
    const before = String(BigInt(this.revision) - 1n);
    return { ...under(this.prefix), target: 'CREATE', result: 'GREATER', create_revision: before };
  }
}

Object.assign(exports, { Place, inOrder, readLine, under });
