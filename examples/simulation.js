// Heat flows along a rod, in steps. Each worker computes a part of the rod and blocks at a barrier until all have done the
// step; the main thread awaits the same barrier, and measures the rod between two steps. The result is that of one thread.

const assert = require('node:assert/strict');
const { once } = require('node:events');
const { isMainThread, Worker, workerData } = require('node:worker_threads');
const { Barrier } = require('sablock');

const WORKERS = 3;
const PARTIES = WORKERS + 1;
const CELLS = 300;
const STEPS = 100;

/** Two rods: each step reads one and writes the other. */
const createRods = (buffer) => [0, 1].map((rod) => new Float64Array(buffer, Barrier.BYTES + rod * 8 * CELLS, CELLS));

const compute = (from, to, first, end) => {
  for (let cell = first; cell < end; cell++) {
    const left = from[Math.max(cell - 1, 0)];
    const right = from[Math.min(cell + 1, CELLS - 1)];
    to[cell] = from[cell] + (left - 2 * from[cell] + right) / 4;
  }
};

const runWorker = ({ buffer, index }) => {
  const barrier = new Barrier(buffer, 0, PARTIES);
  // If this thread ends on its way, the others get a BrokenBarrierError and do not wait for it.
  const member = barrier.join();
  const rods = createRods(buffer);
  const part = CELLS / WORKERS;
  for (let step = 0; step < STEPS; step++) {
    compute(rods[step % 2], rods[(step + 1) % 2], index * part, (index + 1) * part);
    barrier.wait(); // the step is done
    barrier.wait(); // and measured
  }
  member.leave();
};

const runMain = async () => {
  const buffer = new SharedArrayBuffer(Barrier.BYTES + 2 * 8 * CELLS);
  const barrier = new Barrier(buffer, 0, PARTIES);
  const rods = createRods(buffer);
  rods[0][CELLS / 2] = CELLS;

  const workers = Array.from(
    { length: WORKERS },
    (_, index) => new Worker(__filename, { workerData: { buffer, index } }),
  );
  const ends = Promise.all(workers.map((worker) => once(worker, 'exit')));
  const peaks = [];
  for (let step = 0; step < STEPS; step++) {
    await barrier.waitAsync();
    peaks.push(Math.max(...rods[(step + 1) % 2]));
    await barrier.waitAsync();
  }
  await ends;

  const alone = [new Float64Array(CELLS), new Float64Array(CELLS)];
  alone[0][CELLS / 2] = CELLS;
  const expected = [];
  for (let step = 0; step < STEPS; step++) {
    compute(alone[step % 2], alone[(step + 1) % 2], 0, CELLS);
    expected.push(Math.max(...alone[(step + 1) % 2]));
  }
  assert.deepEqual(rods, alone);
  assert.deepEqual(peaks, expected);
  console.log(`${STEPS} steps of ${WORKERS} workers; the peak fell from ${CELLS} to ${peaks.at(-1).toFixed(1)}`);
};

if (isMainThread) runMain();
else runWorker(workerData);
