// A process of the tests of stores: runs functions that the test sends as source, with what stays here.

const sablock = require('../..');
const { endsWaiting } = require('../helpers/audited.js');

const open = (kind, url, settings) => require(`../../lib/stores/${kind}.js`)[kind](url, settings);
const start = () => ({ sablock, open, require, held: new Map(), managers: [], reset });
let here = start();

/** As a process that has just started. */
async function reset() {
  const { managers } = here;
  here = start();
  await Promise.all(managers.map((manager) => manager.close()));
}

process.on('message', async ({ id, source, args }) => {
  try {
    const run = new Function(`'use strict'; return ${source};`)();
    process.send({ id, value: await run(here, ...args) });
  } catch (error) {
    process.send({ id, error: { name: error.name, message: error.message, code: error.code } });
  }
});
endsWaiting(process.env);
process.on('disconnect', () => process.exit());
process.send({ id: 0 });
