// Locks in etcd: a key for each request, all with the one lease of this session. The revision that made a key is its place in line
// and its fence. An exclusive request waits until the key before it is deleted, a shared one until the nearest exclusive one is.
//
// A second key marks a name that is held alone, and goes with the release: so a holder that was killed leaves it. It is written in
// the step that grants, which sees as well whether the key of the request still exists.

const { binding } = require('../../engine/thread.js');
const { storeError } = require('../errors.js');
const { LeaseKeeper } = require('../leases/keeper.js');
const { asStoreError, elsewhere, FAREWELL_MS, hashOf, within } = require('../retry.js');
const { Gateway, NOT_FOUND, toBase64 } = require('./gateway.js');
const { Place, inOrder, readLine, under } = require('./place.js');
const { Session } = require('./session.js');
const { TAKEN, UNREACHABLE } = require('../verbs.js');

class EtcdKeeper extends LeaseKeeper {
  #gateway;
  #lastId = 0;
  /** The number of calls that were answered. */
  #answered = 0;
  /** By prefix: a promise that is settled when all keys that were asked for so far are made, or not. */
  #enqueued = new Map();

  constructor(description, desk) {
    super('etcd', description, desk);
    this.#gateway = new Gateway(description.connection);
  }

  async lockOnce(ticket) {
    const prefix = this.#prefixOf(ticket.name);
    await this.releases.over(prefix);
    const session = await this.connection.get();
    if (ticket.isCancelled) return null;
    this.#lastId += 1;
    const place = new Place(session, prefix, `${session.id}-${this.#lastId}`, ticket.isShared);
    ticket.place = place;
    session.places.set(place.key, place);
    try {
      const isFirst = await this.#inOrder(prefix, this.#enqueue(place, ticket.isTry));
      if (!isFirst && (ticket.isTry || ticket.isCancelled)) {
        // A try may have no key.
        if (place.revision === null) this.end(place, 0);
        else this.leave(place, false);
        return null;
      }
      if (!isFirst && place.isDirty) this.#look(place);
      // False once it is withdrawn.
      if (!isFirst && !(await place.granted)) return null;
      return await this.#enter(place, ticket);
    } catch (error) {
      this.leave(place, false);
      if (error.grpc === NOT_FOUND) session.end(TAKEN);
      throw error;
    } finally {
      // Others that ask for the name wait for this then.
      if (ticket.isCancelled) await place.released;
    }
  }

  /** The result of `enqueued`, once all before it are there: the answers of several sockets come in any order. */
  async #inOrder(prefix, enqueued) {
    const before = this.#enqueued.get(prefix);
    const all = Promise.allSettled([before, enqueued]).then(() => {
      if (this.#enqueued.get(prefix) === all) this.#enqueued.delete(prefix);
    });
    this.#enqueued.set(prefix, all);
    await before;
    return enqueued;
  }

  /** Makes its key, and finds out who is before it; whether it is granted by that. */
  async #enqueue(place, isTry) {
    const put = { request_put: { key: toBase64(place.key), value: place.kind, lease: place.session.id } };
    const isAlone = { ...under(place.prefix), target: 'CREATE', result: 'EQUAL', create_revision: '0' };
    const line = inOrder(place.prefix);
    const { succeeded, header, responses } = await this.#transact(
      place.isShared
        ? { success: [put, place.readMark, line] }
        : { compare: [isAlone], success: [put, place.readMark, place.setMark], failure: isTry ? [] : [put, line] },
    );
    if (succeeded !== true && isTry) return false;
    place.revision = header.revision;
    if (succeeded === true) place.isMarked = isThere(responses[1]);
    if (succeeded === true && !place.isShared) return true;
    place.blocker = this.#blockerOf(place, responses.at(-1).response_range);
    return place.blocker === null;
  }

  /** Finds out which request is before it. If there is none, the same step is the grant: its key may have gone while it waited. */
  #look(place) {
    if (place.looking === null && place.revision !== null) place.looking = this.#lookUntilSure(place);
    else place.isDirty = true;
  }

  async #lookUntilSure(place) {
    const { exists, isFirst, isShared, readMark, setMark } = place;
    const line = inOrder(place.prefix);
    const step = isShared
      ? { compare: [exists], success: [readMark, line] }
      : { compare: [exists, isFirst], success: [readMark, setMark], failure: [line] };
    try {
      do {
        place.isDirty = false;
        const { succeeded, responses = [] } = await this.#transact(step);
        // An exclusive holder has a mark now, which goes with it, though it was withdrawn meanwhile.
        if (isShared || succeeded !== true) {
          if (place.isOver) return;
          place.blocker = this.#blockerOf(place, responses.at(-1)?.response_range ?? {});
          if (place.blocker !== null) continue;
        }
        place.isHeld = true;
        place.isMarked = isThere(responses[0]);
        place.settle.resolve(true);
        return;
      } while (place.isDirty);
    } catch (error) {
      if (error.isGone || error.isFinal) place.settle.reject(error);
      else place.session.renewSoon();
    } finally {
      place.looking = null;
    }
  }

  /** The key in line that it waits for; null if it is granted. */
  #blockerOf(place, { kvs = [] }) {
    const line = readLine(kvs);
    const index = line.findIndex(({ key }) => key === place.key);
    if (index < 0) throw this.dropped();
    const before = line.slice(0, index).filter(({ isShared }) => !place.isShared || !isShared);
    return before.at(-1)?.key ?? null;
  }

  /** Granted: what it has is worth half a lease at least. */
  async #enter(place, ticket) {
    const { session } = place;
    place.isHeld = true;
    if (session.left < session.length / 2) await session.renew();
    if (place.isOver || session.isOver || ticket.isCancelled) throw this.dropped();
    place.lease = binding.beginLease(session.until);
    this.counts.grants += 1;
    const { lease, isMarked: abandoned } = place;
    if (!ticket.wantsFence) return { lease, abandoned };
    return { lease, abandoned, fence: BigInt(place.revision), key: Buffer.from(place.key, 'latin1').toString() };
  }

  cancel(ticket) {
    const { place } = ticket;
    if (place === null) return;
    // While its key is being made, it is to exist before it can be deleted.
    if (place.revision === null) this.releases.add(place.prefix, ticket.asked);
    else super.cancel(ticket);
  }

  /** Its holder, who holds it alone, says that all is well: with its release the mark goes. */
  markConsistent({ place }) {
    if (place !== null) place.isMarked = false;
  }

  /** Not reached, its session deletes the key later. */
  giveBack(place, isAbandoned) {
    const { session, prefix } = place;
    if (session.isOver) return;
    // The call that is under way may be its grant.
    const released = Promise.resolve(place.looking).then(() => {
      const isSure = place.revision !== null;
      const step = stepOfRelease(place, isAbandoned);
      const addStray = () => session.addStray(place.key, step, isSure);
      return this.#transact(step).then(() => isSure || addStray(), addStray);
    });
    place.released = released;
    this.releases.add(prefix, released);
  }

  async check() {
    await this.releases.over();
    return super.check();
  }

  /** A key below the namespace: of others a user may have no right to know. */
  ping() {
    return this.#transact({ success: [{ request_range: { key: toBase64(`${this.#space}/`) } }] });
  }

  get connections() {
    return this.connection.current === null ? 0 : 2;
  }

  /** The holders of these names in other sessions. */
  async query({ names }) {
    const session = await this.connection.get();
    const responses = [];
    for (let done = 0; done < names.length; done += OPERATIONS) {
      const some = names.slice(done, done + OPERATIONS).map((name) => inOrder(this.#prefixOf(name)));
      responses.push(...(await this.#transact({ success: some })).responses);
    }
    return responses.flatMap(({ response_range: { kvs = [] } }, index) => {
      const line = readLine(kvs);
      const alone = line.findIndex(({ isShared }) => !isShared);
      return line
        .slice(0, alone < 0 ? line.length : Math.max(alone, 1))
        .map((place) => ({ ...place, id: place.key.split('/').at(-1).split('-')[0] }))
        .filter(({ id }) => id !== session.id)
        .map(({ id, isShared, process }) => elsewhere(names[index], isShared, `etcd-${process}-${id}`));
    });
  }

  flush() {
    return this.releases.over();
  }

  async close() {
    const session = this.connection.close();
    const left = this.releases.over().then(() => session?.close());
    await within(FAREWELL_MS, left).catch(() => {});
    session?.stop();
    this.#gateway.close();
  }

  #prefixOf(name) {
    return `${this.#space}/${hashOf(name)}/`;
  }

  /** The namespace, as bytes. */
  get #space() {
    return Buffer.from(this.settings.namespace).toString('latin1');
  }

  async #transact(transaction) {
    const begun = binding.leaseTime();
    const answer = await this.#call('kv/txn', transaction);
    this.counts.roundTripMs = binding.leaseTime() - begun;
    return answer;
  }

  async #call(path, body) {
    const { connectTimeout, lease } = this.settings;
    const before = this.#answered;
    try {
      const answer = await this.#gateway.call(path, body, Math.min(connectTimeout, lease / 2));
      this.#answered += 1;
      // A session whose time is over is no connection any more.
      if (this.connection.current?.left > 0) this.connection.reach.up();
      return answer;
    } catch (error) {
      const told = asStoreError('etcd', error);
      // An answer to others since it was sent is newer.
      if (before === this.#answered && (told !== error || UNREACHED.has(error.grpc))) this.#unreachable(told);
      throw told;
    }
  }

  #unreachable(error) {
    if (!this.connection.isClosed) this.connection.reach.down(error);
  }

  endConnection(session) {
    return session.close();
  }

  async begin() {
    const session = new Session({
      settings: this.settings,
      call: (path, body) => this.#call(path, body),
      transact: (step) => this.#transact(step),
      watch: (onMessage, onEnd) => {
        const watched = { ...under(`${this.#space}/`), filters: ['NOPUT'] };
        return this.#gateway.stream('watch', { create_request: watched }, onMessage, (reason = 'it ended') => {
          const error = storeError(`etcd does not tell what is deleted: ${reason}.`);
          if (!session.isOver) this.#unreachable(error);
          onEnd(error);
        });
      },
      onDeleted: (key) => this.#deleted(session, key),
      onRenewed: () => this.#renewed(session),
      onEnd: (loss) => this.#ended(session, loss),
    });
    await session.begin();
    return session;
  }

  #deleted(session, key) {
    const own = session.places.get(key);
    if (own !== undefined && own.revision !== null) this.gone(own, TAKEN);
    for (const place of session.places.values()) {
      if (place.isHeld || !key.startsWith(place.prefix)) continue;
      if (place.blocker === null || place.looking !== null || place.blocker === key) this.#look(place);
    }
  }

  /** Looks for deletions that the stream may have missed. */
  #renewed(session) {
    this.counts.renewals += 1;
    for (const place of session.places.values()) {
      if (place.lease !== 0 && !binding.extendLease(place.lease, session.until)) this.gone(place, UNREACHABLE);
      else if (!place.isHeld) this.#look(place);
    }
  }

  #ended(session, loss) {
    this.connection.lose(session);
    for (const place of session.places.values()) this.gone(place, loss);
  }
}

/** Deletes the key of a request; with the release of one that held alone and is well, its mark goes. */
function stepOfRelease(place, isAbandoned) {
  const goes = [{ request_delete_range: { key: toBase64(place.key) } }];
  const clearsMark = place.isHeld && !place.isShared && !place.isMarked && !isAbandoned;
  if (clearsMark) goes.push({ request_delete_range: { key: place.mark } });
  return place.revision === null ? { success: goes } : { compare: [place.exists], success: goes };
}

const isThere = ({ response_range: { kvs = [] } }) => kvs.length > 0;
/** The operations of one transaction; a server takes 128, unless it is configured otherwise. */
const OPERATIONS = 100;
/** Codes of gRPC: no answer in time, or no quorum. */
const UNREACHED = new Set([4, 14]);

exports.EtcdKeeper = EtcdKeeper;
