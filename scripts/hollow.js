// npm run test:hollow [-- --shard 0/3 | FILE ...]: runs the test files with the code of their workers replaced by a throw, and reports each
// test that passes all the same although it has started a worker: whatever that worker was to do, the test does not notice.
//
// A test that hangs has noticed too, and is left after a while.

const { spawn } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { parseArgs } = require('node:util');
const ALLOWED = require('./hollow/allowed.js');
const { endGroup } = require('./end-group.js');
const { testFiles } = require('./node-test.js');
const { SHARD, ofShard } = require('./shard.js');

const root = path.join(__dirname, '..');
const PRELOAD = path.join(__dirname, 'hollow', 'preload.js');
const LIMIT_MS = 2500;
/** For a file, some of which have dozens of tests that hang: of a test that is busy for ever nobody hears. */
const FILE_LIMIT_MS = 240_000;
/** Most of the time they wait for what does not come. */
const AT_ONCE = 4 * os.availableParallelism();

/** Runs a file. Returns how each of its tests ended, and how many workers it started: `[{ test, end, workers }]`. */
function run(file, folder) {
  const log = path.join(folder, file.replaceAll(path.sep, '-'));
  fs.writeFileSync(log, '');
  const program = path.join(root, file);
  const env = {
    ...process.env,
    NODE_OPTIONS: `--require ${JSON.stringify(PRELOAD)}`,
    // A program that keeps its thread busy until then hears of no other limit.
    SABLOCK_TEST_SLOWNESS: '0.1',
    SABLOCK_HOLLOW: log,
    SABLOCK_HOLLOW_LIMIT: String(LIMIT_MS),
    SABLOCK_HOLLOW_FILE: program,
  };
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [program], { cwd: root, env, stdio: 'ignore', detached: true });
    let isKilled = false;
    const watchdog = setTimeout(() => {
      isKilled = child.kill('SIGKILL');
    }, FILE_LIMIT_MS);
    child.on('error', reject);
    child.on('close', () => {
      clearTimeout(watchdog);
      endGroup(child.pid);
      const tests = new Map();
      for (const line of fs.readFileSync(log, 'utf8').split('\n').filter(Boolean)) {
        const { test, end, worker } = JSON.parse(line);
        const entry = tests.get(test) ?? { test, end: undefined, workers: 0 };
        // Whatever was running then hangs.
        tests.set(test, {
          ...entry,
          end: end ?? entry.end ?? (isKilled ? 'hangs' : undefined),
          workers: entry.workers + (worker ? 1 : 0),
        });
      }
      resolve([...tests.values()]);
    });
  });
}

async function main() {
  const { values, positionals } = parseArgs({ allowPositionals: true, options: { shard: SHARD } });
  const chosen = positionals.map((name) => path.relative(root, path.resolve(name)));
  const files = ofShard(chosen.length > 0 ? chosen : testFiles(), values.shard);
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'hollow-'));
  const allowed = (file, test) => ALLOWED[file.replaceAll(path.sep, '/')]?.find(([pattern]) => pattern.test(test));
  let [noticed, accepted, failures] = [0, 0, 0];
  const rest = [...files];
  const work = async () => {
    for (let file = rest.shift(); file !== undefined; file = rest.shift()) {
      const tests = await run(file, folder);
      for (const { test, end, workers } of tests.filter(({ workers }) => workers > 0)) {
        if (end === undefined) {
          failures += 1;
          console.log(`NO END    ${file}: ${test}`);
        } else if (end !== 'passes') {
          noticed += 1;
        } else if (allowed(file, test)) {
          accepted += 1;
          console.log(`allowed   ${file}: ${test} (${allowed(file, test)[1]})`);
        } else {
          failures += 1;
          console.log(`PASSES    ${file}: ${test} (${workers} workers without code)`);
        }
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  fs.rmSync(folder, { recursive: true });
  console.log(`${noticed} tests notice that their workers have no code, ${accepted} need not, ${failures} failed`);
  if (failures > 0 || noticed === 0) process.exitCode = 1;
}

main();
