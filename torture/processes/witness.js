// Reads the log of a run among processes, in the order in which it was written, and says what must not have happened. It
// knows nothing of how the locks work.

/** Whether a thread, `process.thread`, or its process is among the killed. */
const isKilled = (killed, holder) => {
  const [id, threadNumber] = holder.split('.');
  return killed.has(id) || killed.has(`${id}.${threadNumber}`);
};

/** What is known of one name. */
class Name {
  alone = null;
  together = new Set();
  /** A holder was killed inside, and nobody has marked the lock as consistent since. */
  isDirty = false;
}

/** Returns counts and a list of violations. */
exports.testify = (log) => {
  const names = new Map();
  const killed = new Set();
  /** When each request began. */
  const waits = new Map();
  const violations = [];
  const counts = { holds: 0, 'killed inside': 0, reported: 0, 'longest wait': 0 };

  const enter = (line, holder, name, mode, mark) => {
    counts.holds += 1;
    if (name.alone !== null) {
      if (!isKilled(killed, name.alone)) violations.push(`two holders: ${line}, while ${name.alone} holds it alone`);
      counts['killed inside'] += 1;
      name.isDirty = true;
      name.alone = null;
      if (mark === 'abandoned') counts.reported += 1;
    }
    if (name.isDirty && mark !== 'abandoned') violations.push(`unreported: ${line}`);
    if (mode === 'shared') {
      name.together.add(holder);
      return;
    }
    for (const other of name.together) {
      if (!isKilled(killed, other)) violations.push(`two holders: ${line}, while ${other} shares it`);
    }
    name.together.clear();
    name.alone = holder;
  };

  const leave = (line, holder, name) => {
    if (name.alone === holder) name.alone = null;
    else if (!name.together.delete(holder)) violations.push(`lost: ${line}, which did not hold it any more`);
  };

  for (const line of log.split('\n').filter((text) => text !== '')) {
    const [what, holder, key, mode, mark, ms] = line.split(' ');
    if (what === 'K') {
      killed.add(holder);
      continue;
    }
    if (what === 'X') {
      violations.push(`went wrong: ${line}`);
      continue;
    }
    if (!names.has(key)) names.set(key, new Name());
    const name = names.get(key);
    if (what === 'W') waits.set(holder, Number(ms));
    if (what === 'B' || what === 'D') {
      counts['longest wait'] = Math.max(counts['longest wait'], Number(ms) - waits.get(holder));
      waits.delete(holder);
    }
    if (what === 'B') enter(line, holder, name, mode, mark);
    if (what === 'C') name.isDirty = false;
    if (what === 'E') leave(line, holder, name);
  }
  for (const holder of waits.keys()) {
    if (!isKilled(killed, holder)) violations.push(`waits for ever: ${holder}`);
  }
  return { ...counts, violations };
};
