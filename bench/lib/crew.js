'use strict';
// A crew of worker threads that start together: each loads its contender, says it is ready and waits; `go()` lets all
// off at once, `stop()` asks them to finish. Their bodies are in workers/ and call `join()`.

const path = require('node:path');
const { Worker, parentPort, workerData } = require('node:worker_threads');

const GO = 0;
const STOP = 1;
/** Each worker's own slot in `progress` is a cache line away from the next one's. */
const LINE = 16;

class Crew {
  #workers;
  #results;
  #control = new Int32Array(new SharedArrayBuffer(8));

  /** `data(i)`: what worker number i gets besides `contender` (a name), `control` and `slot`. */
  static async start(count, body, contender, data = () => ({})) {
    const crew = new Crew();
    crew.progress = new Int32Array(new SharedArrayBuffer(4 * LINE * count));
    const file = path.join(__dirname, '..', 'workers', body);
    const ready = [];
    crew.#results = [];
    crew.#workers = Array.from({ length: count }, (_, i) => {
      const worker = new Worker(file, {
        workerData: { contender, control: crew.#control, progress: crew.progress, slot: i * LINE, ...data(i) },
      });
      const failed = new Promise((_, reject) => {
        worker.once('error', reject);
        worker.once('exit', (code) => reject(new Error(`Worker ${i} ended early (${code})`)));
      });
      failed.catch(() => {});
      const next = () => Promise.race([new Promise((resolve) => worker.once('message', resolve)), failed]);
      ready.push(
        next().then(() => {
          crew.#results[i] = next();
          crew.#results[i].catch(() => {});
        }),
      );
      return worker;
    });
    await Promise.all(ready);
    return crew;
  }

  go() {
    Atomics.store(this.#control, GO, 1);
    Atomics.notify(this.#control, GO);
  }

  stop() {
    Atomics.store(this.#control, STOP, 1);
  }

  /** What each worker's body answered, once all have. */
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

/** In a worker: loads the contender, prepares, waits for `go()`, runs, and posts what `run` answered. */
async function join(prepare) {
  const { byName, load } = require('./contenders');
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

module.exports = { Crew, join };
