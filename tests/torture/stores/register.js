// The witness of a run on a store: for each name a register that refuses a fence below the last one. Whoever is refused has to have
// learned that its lock was lost, and whoever asks after a write gets a larger fence. It knows nothing of how the locks work.

/** In milliseconds, of one clock for all processes of the machine. */
const now = () => Number(process.hrtime.bigint()) / 1e6;

exports.now = now;

exports.Register = class Register {
  /** By name: the last fence, and who wrote it. */
  #last = new Map();
  counts = { held: 0, written: 0, refused: 0, told: 0 };
  violations = [];

  /** Whether what `holder` writes is taken; who shares only reads. */
  write({ name, fence, holder, asked, isShared = false }) {
    const own = BigInt(fence);
    const last = this.#last.get(name) ?? { fence: 0n, holder, at: Infinity };
    const isTaken = own >= last.fence;
    if (own === last.fence && !isShared && holder !== last.holder) {
      this.violations.push(`two holders of ${name} have the fence ${fence}: ${last.holder} and ${holder}`);
    }
    if (!isTaken && asked > last.at) {
      this.violations.push(
        `${holder} asked for ${name} after ${last.holder} had written with ${last.fence}, and got ${fence}`,
      );
    }
    if (own > last.fence && !isShared) this.#last.set(name, { fence: own, holder, at: now() });
    this.counts[isTaken ? 'written' : 'refused'] += 1;
    return isTaken;
  }

  note(what) {
    this.counts[what] += 1;
  }
};
