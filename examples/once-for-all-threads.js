// Four workers and the main thread need one table, which takes a while to compute. Whoever comes first computes it; the others
// wait for that: the workers block, the main thread awaits. The worker that comes first has an accident and ends in the middle
// of it; the next in line knows, and begins again.

const { once: onceOf } = require('node:events');
const { isMainThread, threadId, Worker, workerData } = require('node:worker_threads');
const { Latch, Once } = require('sablock');

const WORKERS = 4;
const PRIMES = 5000;
const LAST_PRIME = 48_611;

class Primes {
  static BYTES = 4 * (4 + PRIMES);
  #once;
  #runs;
  #table;

  constructor(buffer) {
    this.#once = new Once(buffer, 0, { name: 'primes' });
    /** The workers that still need the table. */
    this.users = new Latch(buffer, 4);
    this.#runs = new Int32Array(buffer, 8, 2); // begun, done
    this.#table = new Int32Array(buffer, 16, PRIMES);
  }

  get runs() {
    return [...this.#runs];
  }

  /** For workers. */
  get() {
    this.#once.runSync((notes) => this.#compute(notes));
    return this.#table;
  }

  /** For event loops. */
  async getAsync() {
    await this.#once.run((notes) => this.#compute(notes));
    return this.#table;
  }

  #compute({ abandoned }) {
    console.log(`thread ${threadId} computes${abandoned ? ' again what an ended thread has begun' : ''}`);
    const table = this.#table;
    let count = 0;
    const isPrime = (number) => {
      for (let index = 0; index < count && table[index] ** 2 <= number; index++) {
        if (number % table[index] === 0) return false;
      }
      return true;
    };
    const isFirst = this.#runs[0]++ === 0;
    for (let number = 2; count < PRIMES; number++) {
      if (isPrime(number)) table[count++] = number;
      // An accident.
      if (isFirst && count > PRIMES / 2) process.exit();
    }
    this.#runs[1]++;
  }
}

const runWorker = (buffer) => {
  const primes = new Primes(buffer);
  // Counted down by the end of the thread too, so that nobody waits for the one that had the accident.
  const entry = primes.users.enter();
  if (primes.get()[PRIMES - 1] !== LAST_PRIME) process.exitCode = 1;
  entry.leave();
};

const main = async () => {
  const buffer = new SharedArrayBuffer(Primes.BYTES);
  const primes = new Primes(buffer);
  const begin = () => new Worker(__filename, { workerData: buffer });
  const first = begin();
  const workers = Array.from({ length: WORKERS - 1 }, begin);
  const codes = Promise.all(workers.map(async (worker) => (await onceOf(worker, 'exit'))[0]));
  // Once this one has ended, one of the workers has begun: it, or another.
  await onceOf(first, 'exit');
  const table = await primes.getAsync();
  await primes.users.waitAsync();
  const [begun, done] = primes.runs;
  const isRight = table[PRIMES - 1] === LAST_PRIME && (await codes).every((code) => code === 0);
  console.log(`prime number ${PRIMES} is ${table[PRIMES - 1]}; computed ${done} time, begun ${begun} times`);
  if (!isRight || done !== 1 || begun !== 2) process.exitCode = 1;
};

if (isMainThread) main();
else runWorker(workerData);
