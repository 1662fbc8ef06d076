// The tests of a package with mutants: which places each reaches, and which of them notices one.

const { spawn } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const { endGroup } = require('../end-group.js');

/** A test that hangs has noticed: it gets this many times what it took without a mutant, and some milliseconds. */
const TIMES = 3;
const SPARE_MS = 10_000;
const BASELINE_MS = 300_000;

/** Runs a test. Returns whether it passes, and the milliseconds it took. */
const run = ({ program, args, cwd }, env, patience = BASELINE_MS) =>
  new Promise((resolve, reject) => {
    const began = performance.now();
    const child = spawn(program, args, { cwd, env: { ...process.env, ...env }, stdio: 'ignore', detached: true });
    const watchdog = setTimeout(() => child.kill('SIGKILL'), patience);
    child.on('error', reject);
    child.on('exit', (code) => {
      clearTimeout(watchdog);
      endGroup(child.pid);
      resolve({ passes: code === 0, ms: performance.now() - began });
    });
  });

/** Runs a test without a mutant. Returns it with the numbers it reaches, and its milliseconds; undefined if it fails. */
exports.recorded = async (test, folder) => {
  const file = path.join(folder, test.name.replaceAll('/', '-'));
  fs.writeFileSync(file, '');
  const recording = await run(test, { SABLOCK_REACHED: file });
  const reached = new Set(fs.readFileSync(file, 'utf8').split('\n').filter(Boolean).map(Number));
  // Some stand at the end of the stack, where a record is one call too many.
  const { passes, ms } = recording.passes ? recording : await run(test, {});
  return passes ? { ...test, reached, ms } : undefined;
};

/** The tests in the order in which they notice mutants soonest, as far as is known. */
exports.Order = class Order {
  #tests;
  /** By a mutant's file and a test: how often this one was tried, and how often it noticed. */
  #known = new Map();

  constructor(tests) {
    this.#tests = tests;
  }

  #of(mutant, test) {
    return this.#known.get(`${mutant.file} ${test.name}`) ?? { tried: 0, noticed: 0 };
  }

  *for(mutant) {
    const cost = (test) => {
      const { tried, noticed } = this.#of(mutant, test);
      return (test.ms * (tried + 2)) / (noticed + 1);
    };
    const rest = new Set(this.#tests.filter(({ reached }) => reached.has(mutant.number)));
    while (rest.size > 0) {
      const next = [...rest].reduce((best, test) => (cost(test) < cost(best) ? test : best));
      rest.delete(next);
      yield next;
    }
  }

  learn(mutant, test, isNoticed) {
    const { tried, noticed } = this.#of(mutant, test);
    this.#known.set(`${mutant.file} ${test.name}`, { tried: tried + 1, noticed: noticed + (isNoticed ? 1 : 0) });
  }
};

/** The first test that notices a mutant, of those that take `most` milliseconds together; and how many were tried. */
exports.noticing = async (mutant, order, most) => {
  let tried = 0;
  let spent = 0;
  for (const test of order.for(mutant)) {
    if (spent > most) break;
    const { passes, ms } = await run(test, { SABLOCK_MUTANT: String(mutant.number) }, TIMES * test.ms + SPARE_MS);
    tried += 1;
    spent += ms;
    order.learn(mutant, test, !passes);
    if (!passes) return { by: test.name, tried };
  }
  return { by: undefined, tried };
};
