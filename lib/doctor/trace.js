// Waits and contended holds in the Chrome trace format, which Perfetto and chrome://tracing draw.

const PROCESS = process.pid;
/** The row of a thread's waits, and that of its holds. */
const rows = (threadId) => ({ wait: 2 * threadId + 1, hold: 2 * threadId + 2 });

const nameOf = ({ name, kind, byteOffset }) =>
  name === null ? kind + (byteOffset === null ? '' : ` at byte ${byteOffset}`) : `${kind} ${name}`;

/**
 * Slices of one row are one inside of the other. Those that overlap another without that are of tasks: they get asynchronous rows.
 * Returns the slices that stay.
 */
function nested(slices) {
  const stays = new Set();
  const open = [];
  for (const slice of slices.toSorted?.(byBegin) ?? [...slices].sort(byBegin)) {
    while (open.length > 0 && open.at(-1).end <= slice.begin) open.pop();
    if (open.length > 0 && open.at(-1).end < slice.end) continue;
    open.push(slice);
    stays.add(slice);
  }
  return stays;
}

const byBegin = (one, other) => one.begin - other.begin || other.end - one.end;

function byRow(slices) {
  const all = new Map();
  for (const slice of slices) {
    const row = rows(slice.place.threadId)[slice.kind];
    if (!all.has(row)) all.set(row, []);
    all.get(row).push(slice);
  }
  return all;
}

/** From the core's slices. Times are in microseconds. */
exports.toTrace = (slices) => {
  const events = [];
  const threads = new Set();
  let id = 0;
  for (const [row, all] of byRow(slices)) {
    const stays = nested(all);
    for (const slice of all) {
      const { kind, lock, place, begin, end, freed } = slice;
      threads.add(place.threadId);
      id += 1;
      const name = `${kind === 'wait' ? 'wait for' : 'hold'} ${nameOf(lock)}`;
      const args = { lock: nameOf(lock), stack: place.stack.join('\n') };
      const event = { cat: kind, name, pid: PROCESS, tid: row };
      if (stays.has(slice)) {
        events.push({ ...event, ph: 'X', ts: begin, dur: end - begin, args });
      } else {
        events.push({ ...event, ph: 'b', id, ts: begin, args }, { ...event, ph: 'e', id, ts: end });
      }
      if (freed === null) continue;
      threads.add(freed.threadId);
      const flow = { cat: 'unlock', name: 'unlock', pid: PROCESS, id };
      events.push({ ...flow, ph: 's', tid: rows(freed.threadId).hold, ts: freed.at });
      events.push({ ...flow, ph: 'f', bp: 'e', tid: row, ts: end });
    }
  }
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

exports.nameOf = nameOf;
