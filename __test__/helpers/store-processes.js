// Processes that stand for machines: each runs functions that a test sends, until the test ends.

const { fork } = require('node:child_process');
const path = require('node:path');

/** Not by the child's own kill(), with which Deno sends one signal only. */
exports.signal = ({ pid }, name) => {
  try {
    process.kill(pid, name);
  } catch (error) {
    // It has ended, and nobody has heard of it yet.
    if (error.code !== 'ESRCH') throw error;
  }
};

/** With the options of its fork. `do(fn, ...args)` returns a promise of what `fn(here, ...args)` returns there. */
exports.startMachine = async (t, options = {}) => {
  const { NODE_TEST_CONTEXT, ...env } = process.env;
  const program = path.join(__dirname, '..', 'programs', 'store-process.js');
  const child = fork(program, { env, serialization: 'advanced', ...options });
  const pending = new Map();
  let last = 0;
  const ended = new Promise((resolve) => child.once('exit', resolve));
  ended.then(() => {
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
    do(fn, ...args) {
      last += 1;
      const answered = answer(last);
      answered.catch(() => {});
      child.send({ id: last, source: String(fn), args });
      return answered;
    },
    signal: (name) => exports.signal(child, name),
    async kill() {
      machine.signal('SIGKILL');
      await ended;
    },
  };
  t.after(() => machine.kill());
  await answer(0);
  return machine;
};
