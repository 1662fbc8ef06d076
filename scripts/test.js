// npm test [-- FILE ...]: the JS tests, or those in files.

const path = require('node:path');
const { run } = require('node:test');
const { spec, tap } = require('node:test/reporters');
const { AT_ONCE, FILE_LIMIT, testFiles } = require('./node-test.js');

/** The part of a run within which long files begin: one of the longest at its very end would leave the others idle. */
const EARLY = 0.7;
/** Their folders. */
const LONG = ['stores', 'surroundings'];

/**
 * Most tests of stores wait for leases, and those of other subjects compute, so that both are begun by turns, evenly. `node --test`
 * would sort them.
 */
function mixed(files) {
  const isLong = (file) => LONG.includes(path.basename(path.dirname(file)));
  const spread = (group, part) => group.map((file, index) => ({ file, at: (part * index) / group.length }));
  const long = spread(files.filter(isLong), EARLY);
  const others = spread(
    files.filter((file) => !isLong(file)),
    1,
  );
  return [...long, ...others].sort((a, b) => a.at - b.at).map(({ file }) => file);
}

// Node.js 20 reads these certificates whenever a process starts, which then takes it four times as long, and the tests start a
// thousand. No test asks a server that they vouch for.
delete process.env.NODE_EXTRA_CA_CERTS;

process.chdir(path.join(__dirname, '..'));
const chosen = process.argv.slice(2);
const files = mixed(chosen.length > 0 ? chosen : testFiles()).map((file) => path.resolve(file));
run({ files, concurrency: AT_ONCE, timeout: FILE_LIMIT })
  .on('test:fail', () => {
    process.exitCode = 1;
  })
  .compose(process.stdout.isTTY ? new spec() : tap)
  .pipe(process.stdout);
