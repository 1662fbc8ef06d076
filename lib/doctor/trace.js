// Waits and contended holds in the Chrome trace format, which Perfetto and chrome://tracing draw.

const PROCESS = process.pid;
/** The row of a thread's waits, and that of its holds. */
const rows = (threadId) => ({ wait: 2 * threadId + 1, hold: 2 * threadId + 2 });

const nameOf = ({ name, kind, byteOffset }) => (name === null ? `${kind} at byte ${byteOffset}` : `${kind} ${name}`);

/** From the core's slices. Times are in microseconds. */
exports.toTrace = (slices) => {
  const events = [];
  const threads = new Set();
  slices.forEach(({ kind, lock, place, begin, end, freed }, index) => {
    const { threadId, stack } = place;
    threads.add(threadId);
    const row = rows(threadId)[kind];
    const name = `${kind === 'wait' ? 'wait for' : 'hold'} ${nameOf(lock)}`;
    const args = { lock: nameOf(lock), stack: stack.join('\n') };
    events.push({ ph: 'X', cat: kind, name, pid: PROCESS, tid: row, ts: begin, dur: end - begin, args });
    if (freed === null) return;
    threads.add(freed.threadId);
    const flow = { cat: 'unlock', name: 'unlock', pid: PROCESS, id: index + 1 };
    events.push({ ...flow, ph: 's', tid: rows(freed.threadId).hold, ts: freed.at });
    events.push({ ...flow, ph: 'f', bp: 'e', tid: row, ts: end });
  });
  const named = [...threads].flatMap((threadId) =>
    Object.entries(rows(threadId)).map(([kind, tid]) => ({
      ph: 'M',
      name: 'thread_name',
      pid: PROCESS,
      tid,
      args: { name: `thread ${threadId}: ${kind === 'wait' ? 'waits' : 'contended holds'}` },
    })),
  );
  return { traceEvents: [...named, ...events], displayTimeUnit: 'ms' };
};
