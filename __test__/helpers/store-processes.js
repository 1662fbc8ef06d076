// Processes that stand for machines: each runs functions that a test sends, until the test ends.

const { fork } = require('node:child_process');
const path = require('node:path');
const { after } = require('node:test');

/** Not by the child's own kill(), with which Deno sends one signal only. */
exports.signal = ({ pid }, name) => {
  try {
    process.kill(pid, name);
  } catch (error) {
    // It has ended, and nobody has heard of it yet.
    if (error.code !== 'ESRCH') throw error;
  }
};

/** With the options of its fork. */
async function launch(options) {
  const { NODE_TEST_CONTEXT, ...env } = process.env;
  const program = path.join(__dirname, '..', 'programs', 'store-process.js');
  const child = fork(program, { env, serialization: 'advanced', ...options });
  const pending = new Map();
  let last = 0;
  const ended = new Promise((resolve) => child.once('exit', resolve));
  ended.then(() => {
    machine.isSpent = true;
    for (const { reject } of pending.values()) reject(new Error('The process has ended.'));
  });
  child.on('message', ({ id, value, error }) => {
    const { resolve, reject } = pending.get(id);
    pending.delete(id);
    if (error === undefined) resolve(value);
    else reject(Object.assign(new Error(error.message), error));
  });
  const answer = (id) => new Promise((resolve, reject) => pending.set(id, { resolve, reject }));
  const machine = {
    child,
    ended,
    /** It was stopped or killed, or has ended. */
    isSpent: false,
    do(fn, ...args) {
      last += 1;
      const id = last;
      const answered = answer(id);
      answered.catch(() => {});
      child.send({ id, source: String(fn), args }, (error) => error && pending.get(id)?.reject(error));
      return answered;
    },
    signal(name) {
      machine.isSpent = true;
      exports.signal(child, name);
    },
    async kill() {
      machine.signal('SIGKILL');
      await ended;
    },
  };
  await answer(0);
  return machine;
}

/** `do(fn, ...args)` returns a promise of what `fn(here, ...args)` returns there. */
exports.startMachine = async (t, options = {}) => {
  const machine = await launch(options);
  t.after(() => machine.kill());
  return machine;
};

/** Processes that a test has left as they were, for the next one: to start one and its client takes longer than most tests. */
const idle = [];
/** The time in which such a process closes its managers, in milliseconds. */
const RESET_MS = 1000;

async function isReset(machine) {
  const reset = machine
    .do((here) => here.reset())
    .then(
      () => true,
      () => false,
    );
  const late = new Promise((resolve) => setTimeout(resolve, RESET_MS, false).unref());
  return Promise.race([reset, late]);
}

/** As `startMachine()`, for a test that leaves nothing in the process but managers of `openThere()`. */
exports.borrowMachine = async (t) => {
  let machine;
  do machine = idle.pop() ?? (await launch());
  while (machine.isSpent);
  t.after(async () => {
    if (!machine.isSpent && (await isReset(machine))) idle.push(machine);
    else await machine.kill();
  });
  return machine;
};

after(() => Promise.all(idle.splice(0).map((machine) => machine.kill())));
