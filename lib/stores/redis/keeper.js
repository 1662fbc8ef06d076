// Locks in Redis or Valkey: a queue of tickets for each name, each with a lease of its own, holders and waiters alike. A grant is one
// step of the script that releases (script.js); this side renews, and knows until when a ticket is surely kept.

const { randomBytes } = require('node:crypto');
const clock = require('../../load/clock.js');
const { binding } = require('../../engine/thread.js');
const { storeError } = require('../errors.js');
const { LeaseKeeper } = require('../leases/keeper.js');
const { elsewhere, FAREWELL_MS, hashOf, marginOf, OURS, pauses, toError, within } = require('../retry.js');
const { LONGEST } = require('../store.js');
const { TAKEN, UNREACHABLE } = require('../verbs.js');
const { connect, isReadOnly, refusalOf } = require('./client.js');
const { warnOfEviction } = require('./eviction.js');
const { Place } = require('./place.js');
const { tryAll } = require('./rights.js');
const { CLEAR, ENQUEUE, readTicket, RELEASE, RENEW, SCRIPT, SHA, TRY } = require('./script.js');

class RedisKeeper extends LeaseKeeper {
  #description;
  /** By which the server tells this keeper of grants. */
  #channel;
  #lastId = 0;
  /** The time for which replicas are waited for, so that no renewal is late for it. */
  #patience;
  #lastAsked = Promise.resolve();
  /** The question that is asked once that is answered. */
  #nextAsked = null;
  /** By id: those that wait, and those that hold. */
  #places = new Map();

  constructor(description, desk) {
    super('Redis', description, desk);
    this.#description = description;
    const { connectTimeout, renew, replicas } = this.settings;
    this.#patience = replicas > 0 ? Math.ceil(Math.min(connectTimeout, renew / 2)) : 0;
    this.#channel = `${this.settings.namespace}:${OURS}-${randomBytes(12).toString('base64url')}`;
  }

  async lockOnce(ticket) {
    await this.connection.get();
    // The ticket of the first try may be there.
    if (ticket.isRepeated) await this.releases.over();
    if (ticket.isCancelled) return null;
    this.#lastId += 1;
    const place = new Place(`${this.#channel}/${this.#lastId}`, this.#keysOf(ticket.name), ticket.isShared);
    ticket.place = place;
    this.#places.set(place.id, place);
    try {
      await this.#ask(place, ticket.isTry ? TRY : ENQUEUE);
      if (ticket.isTry && !place.isHeld) {
        this.leave(place, false);
        return null;
      }
      this.#renewFrom(place);
      const fence = await place.granted;
      return fence === null ? null : await this.#enter(place, ticket, fence);
    } catch (error) {
      this.leave(place, false);
      throw error;
    }
  }

  /** Granted: what it has is worth a lease, or nearly. */
  async #enter(place, ticket, fence) {
    const { replicas } = this.settings;
    if (replicas > 0) {
      const reached = Number(await this.#askReplicas());
      if (reached < replicas) {
        this.leave(place, false);
        throw storeError(`Of ${replicas} replicas of Redis, ${reached} have the lock: it was given back.`);
      }
    }
    if (place.until - binding.leaseTime() < this.settings.lease / 2) await this.#ask(place, RENEW);
    if (place.isOver) throw storeError('Redis has ended the lock before it could be used.');
    place.lease = binding.beginLease(place.until);
    this.#watch(place);
    this.counts.grants += 1;
    return { lease: place.lease, fence: ticket.wantsFence ? BigInt(fence) : 0n, abandoned: place.isMarked };
  }

  /** Asks how many replicas have what was written so far: once for all, since the server reads nothing else from here meanwhile. */
  #askReplicas() {
    this.#nextAsked ??= this.#lastAsked.then(() => {
      this.#nextAsked = null;
      const answer = this.#send(['WAIT', String(this.settings.replicas), String(this.#patience)]);
      this.#lastAsked = answer.catch(() => {});
      return answer;
    });
    return this.#nextAsked;
  }

  /** Its holder says that all is well: so do its renewals until one is answered, and its release. */
  markConsistent({ place }) {
    if (place === null) return;
    place.isToClear = true;
    this.#renew(place);
  }

  ping() {
    return this.#send(['PING']);
  }

  get connections() {
    return this.connection.current === null ? 0 : 2;
  }

  /** The holders of these names in other sessions. */
  async query({ names }) {
    await this.connection.get();
    const [seconds] = await this.#send(['TIME']);
    const lists = await Promise.all(names.map((name) => this.#send(['HVALS', this.#keysOf(name)[1]])));
    return lists.flatMap((list, index) =>
      list
        .map(readTicket)
        .filter(
          ({ isGranted, deadline, session }) => isGranted && deadline > seconds * 1000 && session !== this.#channel,
        )
        .map(({ isShared, session }) =>
          elsewhere(names[index], isShared, `redis-${session.slice(this.settings.namespace.length + 1)}`),
        ),
    );
  }

  flush() {
    return this.connection.current === null ? null : this.releases.over();
  }

  async close() {
    const link = this.connection.close();
    if (link === null) return;
    // Messages that are on their way go first.
    await within(FAREWELL_MS, link.send(['PING'])).catch(() => {});
    link.end();
  }

  #keysOf(name) {
    const slot = `${this.settings.namespace}:{${hashOf(name)}}`;
    return [`${slot}:line`, `${slot}:tickets`, `${slot}:name`];
  }

  /** One step of the script for a ticket. */
  async #ask(place, verb, mark = '') {
    const sentAt = binding.leaseTime();
    place.calls += 1;
    const number = place.calls;
    const answer = await this.#call([
      ...place.keys,
      verb,
      place.id,
      String(this.settings.lease),
      place.isShared ? '1' : '0',
      this.#channel,
      mark,
    ]);
    this.counts.roundTripMs = binding.leaseTime() - sentAt;
    if (verb === RELEASE) return;
    if (this.connection.current !== null) this.connection.reach.up();
    if (verb === RENEW) this.counts.renewals += 1;
    if (verb === CLEAR) place.isToClear = false;
    const [isKnown, fence, isMarked, soonest] = answer;
    // That of a later call came before: what this one says has changed since.
    if (number < place.heard) return;
    place.heard = number;
    if (place.isOver) {
      // A step that came late has made a ticket that no request wants.
      if (Number(isKnown) === 1) this.giveBack(place, false);
      return;
    }
    // A server that has forgotten it may have heard of it once more since: that is another ticket.
    const isOther = place.isHeld && String(fence) !== place.fence;
    if (Number(isKnown) !== 1 || isOther) {
      // A try that was refused has no ticket.
      if (verb === TRY) this.end(place, 0);
      else this.gone(place, TAKEN);
      return;
    }
    place.isMarked = String(isMarked) === '1';
    this.#extend(place, sentAt + this.settings.lease - marginOf(this.settings.lease));
    if (String(fence) !== '0') this.#granted(place, String(fence));
    else if (Number(soonest) > 0) this.#lookAt(place, Number(soonest));
  }

  #extend(place, until) {
    place.until = Math.max(place.until, until);
    if (place.lease !== 0 && !binding.extendLease(place.lease, place.until)) this.gone(place, UNREACHABLE);
  }

  #granted(place, fence) {
    if (place.isHeld || place.isOver) return;
    place.isHeld = true;
    place.fence = fence;
    clock.clearTimeout(place.expiry);
    place.settle.resolve(fence);
  }

  /** The first in the queue asks again when the holder may be gone. */
  #lookAt(place, ms) {
    place.callIn(ms + 1, () => this.#renew(place));
  }

  #renewFrom(place) {
    if (place.isOver) return;
    place.renewal = clock.setInterval(() => this.#renew(place), this.settings.renew).unref();
  }

  #renew(place) {
    // While there is no connection, whoever connects renews all.
    if (place.isOver || this.connection.current === null) return;
    this.#ask(place, place.isToClear ? CLEAR : RENEW).catch((error) => {
      // Not reached is not lost; but a wait has to begin anew if its place is gone, and ends with what is refused for ever.
      const isHopeless = error.isFinal === true || binding.leaseTime() >= place.until;
      if (!place.isHeld && !place.isOver && isHopeless) place.settle.reject(error);
    });
  }

  /** Ends a lock whose time is over, though the server does not answer. */
  #watch(place) {
    place.callIn(Math.max(place.until - binding.leaseTime(), 1), () => {
      if (place.isOver) return;
      if (binding.leaseTime() >= place.until) this.gone(place, UNREACHABLE);
      else this.#watch(place);
    });
  }

  end(place, loss) {
    super.end(place, loss);
    this.#places.delete(place.id);
  }

  giveBack(place, isAbandoned) {
    let mark = place.isToClear ? 'clear' : '';
    if (isAbandoned) mark = 'set';
    const isThere = this.connection.current !== null;
    const released = isThere
      ? this.#ask(place, RELEASE, mark).catch(() => this.#releaseLater(place, mark))
      : this.#releaseLater(place, mark);
    this.releases.add(place.id, released);
  }

  /** Not reached, it is tried as long as the server may keep the ticket. */
  async #releaseLater(place, mark) {
    const end = binding.leaseTime() + this.settings.lease;
    for await (const _ of pauses()) {
      if (this.connection.isClosed || binding.leaseTime() >= end) return;
      try {
        await this.connection.getLater();
        await this.#ask(place, RELEASE, mark);
        return;
      } catch {
        // Again after a pause.
      }
    }
  }

  async #call([line, tickets, name, ...rest]) {
    const keys = ['3', line, tickets, name];
    try {
      return await this.#send(['EVALSHA', SHA, ...keys, ...rest]);
    } catch (error) {
      if (!/NOSCRIPT/.test(error.message)) throw error;
      return this.#send(['EVAL', SCRIPT, ...keys, ...rest]);
    }
  }

  async #send(args) {
    const link = this.connection.current ?? (await this.connection.get());
    const limit = Math.min(this.settings.connectTimeout + 2 * this.#patience, LONGEST);
    // A server that does not answer is not there, whatever its connection says.
    let isAnswered = false;
    const fail = () => isAnswered || link.fail(storeError(`Redis has not answered within ${limit} ms.`));
    // An answer that has come while this thread did not run is read first.
    const timer = clock.setTimeout(() => clock.setImmediate(fail), limit).unref();
    try {
      return await link.send(args);
    } catch (thrown) {
      const error = toError(thrown);
      const refusal = refusalOf(error);
      if (refusal === null || link.isOver || this.connection.isClosed) throw error;
      this.connection.reach.down(refusal);
      // Behind the same address there may be another primary by now.
      if (isReadOnly(error)) link.fail(refusal);
      throw refusal;
    } finally {
      isAnswered = true;
      clock.clearTimeout(timer);
    }
  }

  endConnection(link) {
    link.end();
  }

  async begin() {
    const link = { isOver: false };
    link.fail = (error) => {
      if (link.isOver) return;
      link.isOver = true;
      if (!this.connection.lose(link, error)) return;
      link.end();
      // Waiters find out whether they have a place still; so do holders.
      this.#reconnect();
    };
    Object.assign(link, await connect(this.#description, link.fail));
    try {
      await within(this.settings.connectTimeout, this.#introduce(link));
    } catch (error) {
      link.end();
      throw error;
    }
    // Answered before the request for which it connects.
    if (this.connection.count === 0) warnOfEviction(link);
    return link;
  }

  async #introduce(link) {
    try {
      await link.subscribe(this.#channel, (message) => this.#hear(message));
    } catch (thrown) {
      const error = toError(thrown);
      throw refusalOf(error) ?? error;
    }
    await tryAll(link, this.#channel, this.settings);
  }

  async #reconnect() {
    while (this.#places.size > 0 && !this.connection.isClosed) {
      try {
        await this.connection.getLater();
        for (const place of this.#places.values()) this.#renew(place);
        return;
      } catch (error) {
        // Again after the next pause, for who holds; who waits is told what is refused for ever.
        const waiting = [...this.#places.values()].filter(({ isHeld }) => error.isFinal === true && !isHeld);
        for (const { settle } of waiting) settle.reject(error);
      }
    }
  }

  #hear(message) {
    const [, fence, mark, id] = /^(\d+) (\d) (.*)$/s.exec(message) ?? [];
    const place = this.#places.get(id);
    if (place === undefined || place.isHeld) return;
    // The replicas' answer is about this connection's own writes only.
    if (this.settings.replicas > 0) {
      this.#renew(place);
      return;
    }
    // A call from before may not know of it; if it comes late, its ticket may have gone: see #enter().
    place.calls += 1;
    place.heard = place.calls;
    place.isMarked = mark === '1';
    this.#granted(place, fence);
  }
}

exports.RedisKeeper = RedisKeeper;
