// A lock that a store has granted to this thread.

const clock = require('../load/clock.js');
const { binding, thread } = require('../engine/thread.js');
const { LOSSES } = require('./verbs.js');

const { GRANTED_ABANDONED, LOST } = binding;
const { Loss: LOSS } = binding.Field;

/** A store does not tell who has ended inside, or lost the lock there. */
const UNKNOWN = { pid: -1, threadId: -1, isOfStore: true };

class StoreHold {
  abandoned;
  /** That of etcd, or undefined. */
  key;
  ended = null;
  fence;
  /** Called when it may have been lost. */
  onLost = null;
  #name;
  #number;
  #since = clock.now();
  #lost = null;
  #owner;

  /** Takes the answer that the thread has just taken, with this status. */
  constructor(name, status, number, wantsFence, owner) {
    this.#name = name;
    this.#number = number;
    this.#owner = owner;
    this.fence = wantsFence ? thread.fence : null;
    this.abandoned = status === GRANTED_ABANDONED;
    this.key = binding.takeTold() || undefined;
    thread.stores.holds.set(number, this);
    owner.holds.add(this);
    if (!this.abandoned) owner.reported.delete(name);
    else if (!owner.reported.has(name)) {
      owner.reported.add(name);
      this.ended = UNKNOWN;
    }
  }

  get number() {
    return this.#number < 0 ? undefined : this.#number;
  }

  /** `{ reason, heldMs }` once it was lost, else null. */
  get lost() {
    if (this.#lost === null && this.#number >= 0) this.#note(binding.lookAtHeld(this.#number));
    return this.#lost;
  }

  markConsistent() {
    if (this.abandoned) this.#owner.tell('markConsistent', { number: this.#number });
    this.abandoned = false;
    this.#owner.reported.delete(this.#name);
  }

  noteIn(isIn) {
    binding.noteIn(this.#number, isIn);
  }

  /** The thread ends: as `unlock`, with the mark of who ended inside. */
  abandon() {
    if (this.#number >= 0) binding.releaseHeld(this.#number, true);
    this.#number = -1;
  }

  unlock() {
    if (this.#number < 0) return this.#lost === null;
    this.#note(this.#end());
    return this.#lost === null;
  }

  /** It ends now, also while it is held: as `unlock`, without a mark. */
  lose(reason) {
    if (this.#number < 0) return;
    this.#end();
    this.#lost = { reason, heldMs: clock.now() - this.#since };
    this.onLost?.();
  }

  /** Takes the status of a look, or of the release. */
  #note(status) {
    if (status !== LOST) return;
    this.#lost = { reason: LOSSES[thread.record[LOSS]], heldMs: clock.now() - this.#since };
    if (this.#number < 0) return;
    // The store may have it still.
    this.#end();
  }

  #end() {
    const number = this.#number;
    // No code has run with it: that leaves no mark, also if it was lost and nobody has seen it.
    if (this.onLost === null) this.noteIn(false);
    this.#number = -1;
    thread.stores.holds.delete(number);
    const status = binding.releaseHeld(number, false);
    this.#owner.ended(this);
    return status;
  }
}

exports.StoreHold = StoreHold;
