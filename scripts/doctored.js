// npm run test:doctored [-- --node 26 --short --shard 0/3 FILES]: the JS tests with the lock doctor on, which must be in nobody's way. What cannot
// pass is in `doctored/differences.js`, test by test; a test in that list that passes is an error too. `--short` leaves out the
// files that take longest.

const fs = require('node:fs');
const { parseArgs } = require('node:util');
const { FAULTS, LEFT_OUT, LONG } = require('./doctored/differences.js');
const { AT_ONCE } = require('./node-test.js');
const { conclude, root, runFiles, testFiles } = require('./platforms/foreign.js');
const { RUNTIMES, install } = require('./runtimes.js');
const { SHARD, ofShard } = require('./shard.js');
const os = require('node:os');
const path = require('node:path');

const OPTIONS = { node: { type: 'string' }, short: { type: 'boolean', default: false }, shard: SHARD };

async function main() {
  const { values, positionals } = parseArgs({ allowPositionals: true, options: OPTIONS });
  const version = values.node ?? process.versions.node.split('.')[0];
  const binary = install(RUNTIMES.find(({ name }) => name === `node${version}`));
  const doctored = {
    name: 'the lock doctor',
    work: fs.mkdtempSync(path.join(os.tmpdir(), 'doctored-')),
    node: (_, args) => [binary, ['--require', path.join(root, 'lib', 'doctor', 'index.js'), ...args]],
    env: {},
    atOnce: AT_ONCE,
    faults: FAULTS,
  };
  const isLong = (file) => LONG.has(file) || LONG.has(path.dirname(file));
  const isChosen = (file) => !LEFT_OUT.has(path.dirname(file)) && !(values.short && isLong(file));
  const files = ofShard(testFiles(positionals, {}).filter(isChosen), values.shard);
  try {
    conclude(doctored, await runFiles(doctored, version, files));
  } finally {
    fs.rmSync(doctored.work, { recursive: true, force: true });
  }
}

main();
