// npm run test:machine-mutants -- [PATH ...] [--since main] [--shard 0/20] [--tests __test__/named ...] [--minutes 10] [--resume]:
// plants a small fault at each place of `lib` and `src` where one can be, or of those below these paths, or on lines that have changed
// since a commit: a statement is left out, a condition or an operand taken for true or false, a value replaced by the default. The tests
// that reach a place run with its fault, those first that found others there, until one fails. A fault that none notices fails the run:
// answer it with a test, or in `machine-mutants/answered.js` with the reason why nobody can see it. `--resume` goes on with the build of
// the last run, and knows what came of those that it tried.
//
// `SABLOCK_MUTANT=NUMBER node __test__/named/fence.test.js` in `target/machine-mutants/package` tries one again.
//
// All of them are in one build, which takes some minutes, as does the run that says which tests reach whom. The tests are those of the
// core, and of `npm test`, or of these files and folders; not models, schedules and torture.

const { spawnSync } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { parseArgs } = require('node:util');
const ANSWERED = require('./machine-mutants/answered.js');
const { buildWithMutants } = require('./machine-mutants/build.js');
const { keep, kept, note } = require('./machine-mutants/kept.js');
const { Order, noticing, recorded } = require('./machine-mutants/tests.js');
const { AT_ONCE, testFiles } = require('./node-test.js');
const { SHARD, ofShard } = require('./shard.js');

const root = path.join(__dirname, '..');
/** The tests of one mutant, in milliseconds. */
const MOST = 60_000;
/** They start programs that take a copy of the package for what it is not, or none of the mutants. */
const OTHERS = ['release', 'surroundings'];

/** The lines of each file that have changed since a commit. */
function changedSince(commit) {
  const args = ['diff', '--unified=0', `${commit}...HEAD`, '--', 'lib', 'src'];
  const { status, stdout } = spawnSync('git', args, { cwd: root, encoding: 'utf8', maxBuffer: 1 << 28 });
  if (status !== 0) throw new Error(`git knows no ${commit}`);
  const changed = new Map();
  for (const part of stdout.split(/^\+\+\+ b\//m).slice(1)) {
    const ranges = [...part.matchAll(/^@@ \S+ \+(\d+)(?:,(\d+))? @@/gm)];
    const lines = ranges.flatMap(([, start, count = '1']) =>
      Array.from({ length: count }, (_, at) => Number(start) + at),
    );
    changed.set(part.slice(0, part.indexOf('\n')), new Set(lines));
  }
  return changed;
}

/** Calls `act` with each item, so many at once. */
async function each(items, atOnce, act) {
  const rest = items.values();
  const lane = async () => {
    for (const item of rest) await act(item);
  };
  await Promise.all(Array.from({ length: atOnce }, lane));
}

/** Whether a file is one of these, or below one; if there are none, all are. */
function isBelow(names) {
  const paths = names.map((name) => path.relative(root, path.resolve(name)));
  return (file) => paths.length === 0 || paths.some((name) => file === name || file.startsWith(`${name}${path.sep}`));
}

const room = ({ file }) => file.split('/').slice(0, 2).join('/');

/** Builds the package with mutants, and records whom the core's tests and these files and folders reach. */
async function prepared(names) {
  const { mutants, core, copy } = buildWithMutants();
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'reached-'));
  const javaScript = testFiles()
    .filter((file) => !OTHERS.includes(path.basename(path.dirname(file))))
    .filter(isBelow(names))
    .map((name) => ({ name, program: process.execPath, args: [name], cwd: copy }));
  const tests = [];
  await each([...core, ...javaScript], AT_ONCE, async (test) => {
    const known = await recorded(test, folder);
    if (known === undefined) console.log(`LEFT OUT  ${test.name}: fails without a mutant`);
    else tests.push(known);
  });
  fs.rmSync(folder, { recursive: true });
  keep({ mutants, tests });
  return { mutants, tests, tried: new Map() };
}

async function main() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      shard: SHARD,
      since: { type: 'string' },
      tests: { type: 'string', multiple: true },
      minutes: { type: 'string', default: 'Infinity' },
      resume: { type: 'boolean' },
    },
  });
  const changed = values.since === undefined ? undefined : changedSince(values.since);
  if (changed?.size === 0) {
    console.log(`Neither lib nor src has changed since ${values.since}`);
    return;
  }
  delete process.env.NODE_EXTRA_CA_CERTS;
  const { mutants, tests, tried } = values.resume ? kept() : await prepared(values.tests ?? []);
  const isChanged = ({ file, line }) => changed === undefined || changed.get(file)?.has(line);
  const isOfPath = isBelow(positionals);
  const isChosen = (mutant) => isOfPath(mutant.file) && isChanged(mutant);
  const chosen = ofShard(mutants.filter(isChosen), values.shard);
  console.log(`${chosen.length} of ${mutants.length} mutants`);

  const end = performance.now() + Number(values.minutes) * 60_000;
  const order = new Order(tests);
  const counts = new Map();
  await each(chosen, os.availableParallelism(), async (mutant) => {
    const { number, file, line, kind, text } = mutant;
    let result = tried.get(number);
    if (result === undefined) {
      if (performance.now() > end) return;
      result = await noticing(mutant, order, MOST);
      note(number, result);
    }
    const answer = ANSWERED.find(([files, places]) => files.test(file) && places.test(`${kind}: ${text}`));
    const count = counts.get(room(mutant)) ?? { noticed: 0, answered: 0, survived: 0 };
    counts.set(room(mutant), count);
    if (result.by !== undefined) count.noticed += 1;
    else if (answer !== undefined) count.answered += 1;
    else {
      count.survived += 1;
      console.log(`SURVIVED  ${number} ${file}:${line} ${kind}: ${text} (${result.tried} tests)`);
    }
  });
  console.table(Object.fromEntries(counts));
  const survivors = [...counts.values()].reduce((sum, { survived }) => sum + survived, 0);
  if (performance.now() > end)
    console.log(`${values.minutes} minutes are over; what was not tried is for a run with --resume`);
  console.log(`${survivors} failed`);
  process.exitCode = survivors > 0 ? 1 : 0;
}

main();
