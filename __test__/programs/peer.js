// Runs functions that the test sends as source: each is called with what stays in this process (`here`: the package, its
// manager for the directory of the test, and whatever the functions keep there), and with its arguments.

const sablock = require('../..');

const [, , directory] = process.argv;
const here = { sablock, require, directory, manager: new sablock.LockManager({ directory, allowMainThread: true }) };

process.on('message', async ({ id, source, args }) => {
  try {
    const run = new Function(`'use strict'; return ${source};`)();
    process.send({ id, value: await run(here, ...args) });
  } catch ({ name, message, code }) {
    process.send({ id, error: { name, message, code } });
  }
});
process.on('disconnect', () => process.exit());
