// Locks that a server keeps for a time, and its client renews. A request is over in three ways: its holder releases it, it is
// withdrawn, or the server has it no more. One that held alone leaves its mark if its holder ended inside, or it was lost inside.
//
// A subclass has, beside those of `Keeper`, `giveBack(place, isAbandoned)`: tells the server that a request is over.

const { binding } = require('../../engine/thread.js');
const { storeError } = require('../errors.js');
const { Keeper } = require('../keeper.js');
const { Releases } = require('../retry.js');

exports.LeaseKeeper = class extends Keeper {
  /** By name, or request: the releases that are under way. */
  releases = new Releases();
  #store;

  constructor(store, description, desk) {
    super(store, description, desk);
    this.#store = store;
  }

  /** The error of a request that the server has no more. */
  dropped() {
    return Object.assign(storeError(`${this.#store} has dropped the request.`), { isGone: true });
  }

  /** Withdraws a request that waits, or is granted and has no lease yet. */
  cancel({ place }) {
    if (place === null || place.lease !== 0) return;
    place.settle.resolve(null);
    this.leave(place, false);
  }

  release(ticket, isAbandoned) {
    if (ticket.place === null) return;
    this.leave(ticket.place, isAbandoned);
    ticket.place = null;
  }

  leave(place, isAbandoned) {
    if (place.isOver) return;
    this.end(place, 0);
    this.giveBack(place, isAbandoned);
  }

  /** The server has it no more, or may not. */
  gone(place, loss) {
    if (place.isOver) return;
    const wasHeld = place.lease !== 0;
    this.end(place, loss);
    if (wasHeld) this.counts.losses += 1;
    else place.settle.reject(this.dropped());
    // The server may hear of it before its own time is over.
    this.giveBack(place, wasHeld && !place.isShared);
  }

  end(place, loss) {
    place.end();
    if (place.lease !== 0) binding.endLease(this.desk, place.lease, loss);
  }
};
