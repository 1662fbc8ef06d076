// A session in etcd: one lease, which is renewed, and a stream of what is deleted.

const clock = require('../../load/clock.js');
const { binding } = require('../../engine/thread.js');
const { storeError } = require('../errors.js');
const { marginOf, pauses } = require('../retry.js');
const { toText } = require('./gateway.js');
const { TAKEN, UNREACHABLE } = require('../verbs.js');

class Session {
  /** The id of the lease. */
  id = null;
  isOver = false;
  /** By key: those that wait, and those that hold. */
  places = new Map();
  /** The time for which the server keeps the lease, in milliseconds, and until when it surely does, in the time of leases. */
  length = 0;
  until = 0;
  #of;
  #timer = null;
  #expiry = null;
  #renewing = null;
  #renewedAt = 0;
  /** By key: the step that deletes one that is to be gone, since when, and whether it is once a step was answered. */
  #strays = new Map();
  /** Something is to be tried again, and whether that is being seen to. */
  #isDue = false;
  #isRenewingSoon = false;
  #endWatch = null;
  /** Whether deletions are reported now, and whether that is being seen to. */
  #isWatched = false;
  #isWatchingAgain = false;

  constructor(of) {
    this.#of = of;
  }

  get left() {
    return this.until - binding.leaseTime();
  }

  /** Rejects if etcd cannot be reached, or refuses. */
  async begin() {
    const sentAt = binding.leaseTime();
    const seconds = Math.ceil(this.#of.settings.lease / 1000);
    const { ID, TTL } = await this.#of.call('lease/grant', { TTL: String(seconds) });
    this.id = ID;
    this.#extend(sentAt, TTL);
    try {
      await this.#watch();
    } catch (error) {
      if (this.isOver) throw storeError('etcd has not answered before the end of the lease.');
      // The lease that nobody will use.
      this.close();
      throw error;
    }
    this.#timer = clock.setInterval(() => this.#look(), this.#of.settings.renew / 4).unref();
    // The stream may be over by now.
    if (!this.#isWatched) this.#watchAgain();
  }

  /** Resolves once it is renewed; rejects if that cannot be. */
  renew() {
    this.#renewing ??= this.#renew().finally(() => {
      this.#renewing = null;
    });
    return this.#renewing;
  }

  async #renew() {
    const sentAt = binding.leaseTime();
    this.#renewedAt = sentAt;
    const { TTL = '0' } = await this.#of.call('lease/keepalive', { ID: this.id });
    if (this.isOver) return;
    if (Number(TTL) <= 0) {
      this.end(TAKEN);
      throw storeError('etcd has ended the lease.');
    }
    // An answer that comes too late says nothing of what was in between.
    if (binding.leaseTime() >= this.until) {
      this.end(UNREACHABLE);
      throw storeError('etcd has answered after the end of the lease.');
    }
    this.#extend(sentAt, TTL);
    this.#of.onRenewed();
  }

  #extend(sentAt, ttl) {
    this.length = Number(ttl) * 1000;
    this.#renewedAt = sentAt;
    this.until = Math.max(this.until, sentAt + this.length - marginOf(this.length));
    clock.clearTimeout(this.#expiry);
    this.#expiry = clock.setTimeout(() => this.#look(), Math.max(this.left, 0) + 1).unref();
  }

  #look() {
    const now = binding.leaseTime();
    if (now >= this.until) this.end(UNREACHABLE);
    else if (this.#renewing === null && now - this.#renewedAt >= this.#of.settings.renew) {
      this.renew().catch(() => {
        // Again when it is looked next.
        this.#renewedAt = 0;
      });
    }
  }

  /**
   * A key is to be deleted, by this step, whenever etcd is reached. Unless `isSure`, a late message may make it still, until a lease
   * from now.
   */
  addStray(key, step, isSure) {
    this.#strays.set(key, { step, isSure, since: binding.leaseTime() });
    this.renewSoon();
  }

  #deleteStrays() {
    const deletions = [...this.#strays].map(async ([key, { step, isSure, since }]) => {
      const isOld = binding.leaseTime() - since > this.length;
      await this.#of.transact(step);
      if (isSure || isOld) this.#strays.delete(key);
    });
    return Promise.allSettled(deletions);
  }

  /** Whatever a call in vain has left is tried again, after pauses that grow: what waits looks again, and strays are deleted. */
  async renewSoon() {
    this.#isDue = true;
    if (this.#isRenewingSoon) return;
    this.#isRenewingSoon = true;
    for await (const _ of pauses()) {
      if (this.isOver || !(this.#isDue || this.#strays.size > 0)) break;
      this.#isDue = false;
      try {
        await this.renew();
        await this.#deleteStrays();
        // One that could not look calls this again, and then the next pause is longer.
        await Promise.all([...this.places.values()].map(({ looking }) => looking));
      } catch {
        this.#isDue = true;
      }
    }
    this.#isRenewingSoon = false;
  }

  /** Resolves once deletions are reported from now on. Begins again by itself. */
  #watch() {
    return new Promise((resolve, reject) => {
      const onMessage = ({ created, events = [] }) => {
        if (created) {
          this.#isWatched = true;
          resolve();
        }
        for (const { type, kv } of events) if (type === 'DELETE') this.#of.onDeleted(toText(kv.key));
      };
      const onEnd = (error) => {
        this.#isWatched = false;
        reject(error);
        if (!this.isOver && this.#timer !== null) this.#watchAgain();
      };
      this.#endWatch = this.#of.watch(onMessage, onEnd);
      clock
        .setTimeout(() => reject(storeError('etcd has not answered in time.')), this.#of.settings.connectTimeout)
        .unref();
    });
  }

  /** One at a time: a stream that fails calls this again. */
  async #watchAgain() {
    if (this.#isWatchingAgain) return;
    this.#isWatchingAgain = true;
    for await (const _ of pauses()) {
      if (this.isOver) return;
      try {
        await this.#watch();
        // Finds keys that were deleted meanwhile.
        await this.renew();
        if (this.#isWatched) break;
      } catch {
        this.#endWatch?.();
      }
    }
    this.#isWatchingAgain = false;
  }

  /** All that it has is lost. */
  end(loss) {
    if (this.isOver) return;
    this.stop();
    this.#of.onEnd(loss);
    // Others need not wait for its time.
    this.#of.call('lease/revoke', { ID: this.id }).catch(() => {});
  }

  /** It is not needed any more. */
  async close() {
    this.stop();
    await this.#of.call('lease/revoke', { ID: this.id }).catch(() => {});
  }

  stop() {
    this.isOver = true;
    clock.clearInterval(this.#timer);
    clock.clearTimeout(this.#expiry);
    this.#endWatch?.();
  }
}

exports.Session = Session;
