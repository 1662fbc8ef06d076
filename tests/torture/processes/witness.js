// Reads the log of a run among processes, in the order of time, and says what must not have happened. It knows nothing of how
// the locks work.

/** Whether a thread, `process.thread`, or its process is among the killed. */
const isKilled = (killed, holder) => {
  const [id, threadNumber] = holder.split('.');
  return killed.has(id) || killed.has(`${id}.${threadNumber}`);
};

/** The time for which a sharer may wait while nobody holds the name alone: for its turn, at the gate, and for a busy machine. */
const APART_MS = 4000;

/** The facts that are known of one name. */
class Name {
  alone = null;
  /** When somebody held it alone last. */
  aloneUntil = 0;
  together = new Set();
  /** A holder was killed inside, and nobody has marked the lock as consistent since. */
  isDirty = false;
}

/** Reads lines in the order of their times. Returns counts and a list of violations. */
exports.testify = (lines) => {
  const names = new Map();
  const killed = new Set();
  /** When each request began. */
  const waits = new Map();
  /** When processes that were stopped went on. */
  const resumed = new Map();
  const violations = [];
  const counts = { holds: 0, together: 0, 'killed inside': 0, reported: 0, 'longest wait': 0 };

  const enter = (line, holder, name, mode, mark, { since, isForSeveral }, ms) => {
    counts.holds += 1;
    if (name.alone !== null) {
      name.aloneUntil = ms;
      if (!isKilled(killed, name.alone)) violations.push(`two holders: ${line}, while ${name.alone} holds it alone`);
      counts['killed inside'] += 1;
      name.isDirty = true;
      name.alone = null;
      if (mark === 'abandoned') counts.reported += 1;
    }
    if (name.isDirty && mark !== 'abandoned') violations.push(`unreported: ${line}`);
    if (mode === 'shared') {
      if (name.together.size > 0) counts.together += 1;
      const alone = ms - Math.max(since, name.aloneUntil, resumed.get(holder.split('.')[0]) ?? 0);
      // A request for several waits for others, too.
      if (alone > APART_MS && !isForSeveral)
        violations.push(`not together: ${line}, after ${alone} ms in which others shared it at most`);
      name.together.add(holder);
      return;
    }
    for (const other of name.together) {
      if (!isKilled(killed, other)) violations.push(`two holders: ${line}, while ${other} shares it`);
    }
    name.together.clear();
    name.alone = holder;
  };

  const leave = (line, holder, name, ms) => {
    if (name.alone === holder) {
      name.alone = null;
      name.aloneUntil = ms;
    } else if (!name.together.delete(holder)) violations.push(`lost: ${line}, which did not hold it any more`);
  };

  for (const line of lines) {
    const [what, holder, key, mode, mark, ms] = line.split(' ');
    if (what === 'K') {
      killed.add(holder);
      continue;
    }
    if (what === 'R') {
      resumed.set(holder, Number(ms));
      continue;
    }
    if (what === 'X') {
      violations.push(`went wrong: ${line}`);
      continue;
    }
    if (!names.has(key)) names.set(key, new Name());
    const name = names.get(key);
    if (what === 'W') waits.set(holder, { since: Number(ms), isForSeveral: mark === 'several' });
    if (what === 'B' || what === 'D') {
      const wait = waits.get(holder);
      counts['longest wait'] = Math.max(counts['longest wait'], Number(ms) - wait.since);
      waits.delete(holder);
      if (what === 'B') enter(line, holder, name, mode, mark, wait, Number(ms));
    }
    if (what === 'C') name.isDirty = false;
    if (what === 'E') leave(line, holder, name, Number(ms));
  }
  for (const holder of waits.keys()) {
    if (!isKilled(killed, holder)) violations.push(`waits for ever: ${holder}`);
  }
  return { ...counts, violations };
};
