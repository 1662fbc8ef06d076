// A request at a server that keeps leases: in its queue, then a lock.

/** A request. */
exports.LeasePlace = class {
  isHeld = false;
  isOver = false;
  /** A holder of the name has ended inside. */
  isMarked = false;
  /** The lease of its holder. */
  lease = 0;
  /** Settled with what `settle` is told: the wait is over. */
  granted;
  settle;

  constructor(isShared) {
    this.isShared = isShared;
    this.granted = new Promise((resolve, reject) => {
      this.settle = { resolve, reject };
    });
    this.granted.catch(() => {});
  }

  /** Called once, when the request is over. */
  end() {
    this.isOver = true;
  }
};
