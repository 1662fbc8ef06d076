'use strict';
// Worker threads that start together: each loads its contender, says it is ready and waits; `go()` starts all at once,
// `stop()` asks them to finish. Their bodies are in programs/ and call `join()`.

const path = require('node:path');
const { Worker, parentPort, workerData } = require('node:worker_threads');
const { sleep } = require('./clock');
const { byName, load } = require('./contenders');
const { jain, max, sum } = require('./stats');

const GO = 0;
const STOP = 1;
/** Each worker's own slot in `progress` is a cache line away from the next one's. */
const LINE = 16;

class WorkerGroup {
  #workers;
  #results;
  #control = new Int32Array(new SharedArrayBuffer(8));

  /** `data(i)`: what worker number i gets besides `contender` (a name), `control` and `slot`. */
  static async start(count, body, contender, data = () => ({})) {
    const group = new WorkerGroup();
    group.progress = new Int32Array(new SharedArrayBuffer(4 * LINE * count));
    const file = path.join(__dirname, '..', 'programs', body);
    const ready = [];
    group.#results = [];
    group.#workers = Array.from({ length: count }, (_, i) => {
      const worker = new Worker(file, {
        workerData: { contender, control: group.#control, progress: group.progress, slot: i * LINE, ...data(i) },
      });
      const failed = new Promise((_, reject) => {
        worker.once('error', reject);
        worker.once('exit', (code) => reject(new Error(`Worker ${i} ended early (${code})`)));
      });
      failed.catch(() => {});
      const next = () => Promise.race([new Promise((resolve) => worker.once('message', resolve)), failed]);
      ready.push(
        next().then(() => {
          group.#results[i] = next();
          group.#results[i].catch(() => {});
        }),
      );
      return worker;
    });
    await Promise.all(ready);
    return group;
  }

  go() {
    Atomics.store(this.#control, GO, 1);
    Atomics.notify(this.#control, GO);
  }

  stop() {
    Atomics.store(this.#control, STOP, 1);
  }

  /** Returns what each worker's body returned, once all have. */
  results() {
    return Promise.all(this.#results);
  }

  /** The sum of all workers' progress counters, now. */
  total() {
    let total = 0;
    for (let i = 0; i < this.progress.length; i += LINE) total += Atomics.load(this.progress, i);
    return total;
  }

  async end() {
    await Promise.all(this.#workers.map((worker) => worker.terminate()));
  }
}

/** Nothing else may keep a worker alive while it waits: Atomics.waitAsync and worker_threads.locks do not. */
const KEEP_ALIVE_MS = 2 ** 30;

/** In a worker: loads the contender, prepares, waits for `go()`, runs, and posts what `run` returned. */
async function join(prepare) {
  const contender = workerData.contender === null ? null : byName(workerData.contender);
  if (contender) await load(contender);
  const run = await prepare(contender, workerData);
  parentPort.postMessage('ready');
  Atomics.wait(workerData.control, GO, 0);
  const stopped = () => Atomics.load(workerData.control, STOP) === 1;
  const alive = setInterval(() => {}, KEEP_ALIVE_MS);
  parentPort.postMessage(await run(stopped));
  clearInterval(alive);
}

/**
 * Lets the group run for `ms` and ends it. Each hold adds one to an element of `data`. Returns `{ wrong }` if holds are
 * missing there, or the rate in holds/ms, how even it was, and what the bodies returned.
 */
async function throughput(group, data, ms) {
  group.go();
  await sleep(ms);
  group.stop();
  const results = await group.results();
  await group.end();
  const holds = results.map((result) => result.holds);
  const wrong = miscount(sum(holds), data);
  if (wrong) return { wrong };
  const ns = max(results.map((result) => result.end)) - Math.min(...results.map((result) => result.start));
  return { rate: (sum(holds) / ns) * 1e6, jain: jain(holds), holds, results };
}

/** Returns the fault, as text, if `holds` were made and `data`, which each of them added one to, says otherwise. */
function miscount(holds, data) {
  const counted = sum([...data]);
  return counted === holds ? undefined : `${holds} holds counted ${counted}: two threads were inside at once`;
}

module.exports = { WorkerGroup, join, throughput, miscount };
