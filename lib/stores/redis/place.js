// A request in Redis.

const clock = require('../../load/clock.js');
const { LeasePlace } = require('../leases/place.js');
const { LONGEST } = require('../store.js');

/** A request in the server's queue. */
class Place extends LeasePlace {
  /** The fence of its grant, as text. */
  fence = null;
  /** The number of calls for it, and the one that was answered last. */
  calls = 0;
  heard = 0;
  /** Until when the server surely keeps it; in the time of leases. */
  until = 0;
  /** Its holder says that all is well, and the server is not known to have heard of it. */
  isToClear = false;
  renewal = null;
  expiry = null;

  constructor(id, keys, isShared) {
    super(isShared);
    this.id = id;
    this.keys = keys;
  }

  /** Calls `act` in so many milliseconds, and nothing that was to be called before. */
  callIn(ms, act) {
    clock.clearTimeout(this.expiry);
    this.expiry = clock.setTimeout(act, Math.min(ms, LONGEST)).unref();
  }

  end() {
    super.end();
    clock.clearInterval(this.renewal);
    clock.clearTimeout(this.expiry);
  }
}

exports.Place = Place;
