// Which wait may be due to which notification, when no log says so.

const { PHASES } = require('../log.js');

/** A matching of waits with notifications that grows by augmenting paths: what is in it stays in it. */
exports.Matching = class Matching {
  #notifications;
  #room;
  /** The waits of each notification. */
  #taken;
  /** The latest end of those up to here. */
  #latest;
  #visited;
  #visit = 0;

  constructor(notifications, roomOf) {
    this.#notifications = notifications
      .filter((notification) => roomOf(notification) > 0)
      .sort((one, other) => one.beginTick - other.beginTick);
    this.#room = this.#notifications.map(roomOf);
    this.#taken = this.#notifications.map(() => []);
    let latest = 0;
    this.#latest = this.#notifications.map(({ endTick, phase }) => {
      latest = Math.max(latest, phase === PHASES.ENDED ? endTick : Infinity);
      return latest;
    });
    this.#visited = new Uint32Array(this.#notifications.length);
  }

  /** Whether the wait has found a notification. */
  add(wait) {
    this.#visit += 1;
    return this.#place(wait);
  }

  /** Returns the notifications that have woken more waits than were added. */
  rest() {
    return this.#notifications
      .map((notification, n) => ({ notification, left: this.#room[n] - this.#taken[n].length }))
      .filter(({ left }) => left > 0);
  }

  #place(wait) {
    const candidates = [...this.#overlapping(wait)];
    for (const n of candidates) {
      if (this.#taken[n].length === this.#room[n]) continue;
      this.#taken[n].push(wait);
      return true;
    }
    for (const n of candidates) {
      if (this.#visited[n] === this.#visit) continue;
      this.#visited[n] = this.#visit;
      for (const [place, other] of this.#taken[n].entries()) {
        if (!this.#place(other)) continue;
        this.#taken[n][place] = wait;
        return true;
      }
    }
    return false;
  }

  /** The notifications during the wait. */
  *#overlapping({ beginTick, overTick }) {
    let low = 0;
    for (let high = this.#latest.length; low < high; ) {
      const middle = (low + high) >> 1;
      if (this.#latest[middle] > beginTick) high = middle;
      else low = middle + 1;
    }
    for (let n = low; n < this.#notifications.length && this.#notifications[n].beginTick < overTick; n++) {
      const { phase, endTick } = this.#notifications[n];
      if (phase !== PHASES.ENDED || endTick > beginTick) yield n;
    }
  }
};
