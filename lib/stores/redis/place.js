// A request in Redis.

const clock = require('../../load/clock.js');

/** A request in the server's queue. */
class Place {
  isHeld = false;
  isOver = false;
  isMarked = false;
  /** The fence of its grant, as text. */
  fence = null;
  /** The number of calls for it, and the one that was answered last. */
  calls = 0;
  heard = 0;
  lease = 0;
  /** Until when the server surely keeps it; in the time of leases. */
  until = 0;
  renewal = null;
  expiry = null;
  /** Settles the wait. */
  settle = null;

  constructor(id, keys, isShared) {
    this.id = id;
    this.keys = keys;
    this.isShared = isShared;
  }

  /** Calls `act` in so many milliseconds, and nothing that was to be called before. */
  callIn(ms, act) {
    clock.clearTimeout(this.expiry);
    this.expiry = clock.setTimeout(act, ms).unref();
  }
}

exports.Place = Place;
