// npm run test:doctored [-- --node 26 --short --shard 0/3 FILES]: the JS tests with the lock doctor on, which must be in nobody's way.
// Tests that cannot pass are in `doctored/differences.js`; one of that list that passes is an error too. An error that a note of the
// doctor fails with is a failure as well, but in programs that provoke it, which are in that file too. `--short` leaves out the
// files that take longest.

const fs = require('node:fs');
const { parseArgs } = require('node:util');
const { FAULTS, LEFT_OUT, LONG, PROVOKED } = require('./doctored/differences.js');
const { AT_ONCE } = require('./node-test.js');
const { conclude, root, runFiles, testFiles } = require('./platforms/foreign.js');
const { RUNTIMES, install } = require('./runtimes.js');
const { SHARD, ofShard } = require('./shard.js');
const os = require('node:os');
const path = require('node:path');

const OPTIONS = { node: { type: 'string' }, short: { type: 'boolean', default: false }, shard: SHARD };

/** The errors in notes of the doctor that no program provokes. */
function swallowed(log) {
  const isProvoked = ({ program, error }) =>
    PROVOKED.some((known) => known.program.test(program) && known.error.test(error));
  const errors = fs.readFileSync(log, 'utf8').split('\n').filter(Boolean).map(JSON.parse);
  const wrong = errors.filter((entry) => !isProvoked(entry));
  return wrong.map(({ program, error }) => `${path.relative(root, program)}: a note of the doctor failed: ${error}`);
}

async function main() {
  const { values, positionals } = parseArgs({ allowPositionals: true, options: OPTIONS });
  const version = values.node ?? process.versions.node.split('.')[0];
  const binary = install(RUNTIMES.find(({ name }) => name === `node${version}`));
  const work = fs.mkdtempSync(path.join(os.tmpdir(), 'doctored-'));
  const log = path.join(work, 'swallowed');
  fs.writeFileSync(log, '');
  const loaded = [path.join(__dirname, 'doctored', 'loud.js'), path.join(root, 'lib', 'doctor', 'index.js')];
  const doctored = {
    name: 'the lock doctor',
    work,
    node: (_, args) => [binary, [...loaded.flatMap((file) => ['--require', file]), ...args]],
    env: { SABLOCK_SWALLOWED: log },
    atOnce: AT_ONCE,
    faults: FAULTS,
  };
  const isLong = (file) => LONG.has(file) || LONG.has(path.dirname(file));
  const isChosen = (file) => !LEFT_OUT.has(path.dirname(file)) && !(values.short && isLong(file));
  const files = ofShard(testFiles(positionals, {}).filter(isChosen), values.shard);
  try {
    const wrong = await runFiles(doctored, version, files);
    conclude(doctored, [...wrong, ...swallowed(log)]);
  } finally {
    fs.rmSync(work, { recursive: true, force: true });
  }
}

main();
