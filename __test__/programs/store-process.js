// A process of the tests of stores: runs functions that the test sends as source, with what stays here.

const sablock = require('../..');
const { endsWaiting } = require('../helpers/audited.js');

const open = (kind, url, settings) => require(`../../lib/stores/${kind}.js`)[kind](url, settings);
const here = { sablock, open, require, held: new Map() };

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
