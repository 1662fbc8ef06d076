// The witness of delays: a name that is free for long while somebody waits for it was not passed on, though the end of a lease would
// heal that. It knows what those who ask say: when a wait begins and is over, and when a hold does and is.

/**
 * The time for which a name may be free while somebody waits for it, in milliseconds: what is cut and stopped comes back
 * before.
 */
const LONGEST_MS = 15_000;

exports.Delays = class Delays {
  /** By name: how many hold it and wait for it, and since when nobody holds it and somebody waits. */
  #names = new Map();
  /** The longest time for which a name was free while somebody waited for it, in milliseconds. */
  longest = 0;
  violations = [];

  /** `what`: 'waits', 'waitsNoMore', 'holds' or 'holdsNoMore'. */
  note(what, name) {
    const now = performance.now();
    const it = this.#names.get(name) ?? { holds: 0, waits: 0, since: null };
    this.#names.set(name, it);
    if (what === 'waits' || what === 'waitsNoMore') it.waits += what === 'waits' ? 1 : -1;
    else it.holds += what === 'holds' ? 1 : -1;
    const isFree = it.holds === 0 && it.waits > 0;
    // Each grant and each release begins it anew.
    if (it.since !== null && (!isFree || what.startsWith('holds'))) this.#end(name, it, now);
    if (isFree) it.since ??= now;
  }

  /** Looks whether a name is free for too long by now. */
  look() {
    const now = performance.now();
    for (const [name, it] of this.#names) {
      if (it.since === null || now - it.since <= LONGEST_MS) continue;
      this.#end(name, it, now);
      it.since = now;
    }
  }

  #end(name, it, now) {
    const ms = now - it.since;
    it.since = null;
    this.longest = Math.max(this.longest, ms);
    if (ms > LONGEST_MS) this.violations.push(`${name} was free for ${Math.round(ms)} ms while somebody waited for it`);
  }
};
