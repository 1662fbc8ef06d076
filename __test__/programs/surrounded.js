// The core of what the package promises (core-verbs.js), in whatever surroundings: prints what came of each verb.
// `node surrounded.js SURROUNDINGS`; the first argument names what is changed before and after the package loads, as `surroundings.js`
// has it.

const path = require('node:path');
const { SURROUNDINGS } = require('../surroundings/surroundings.js');
const { core } = require('./core-verbs.js');

const write = process.stdout.write.bind(process.stdout);
const surroundings = SURROUNDINGS[process.argv[2]];
const index = path.join(__dirname, '..', '..', 'index.js');

async function run() {
  surroundings.before?.();
  const load = surroundings.load ?? require;
  const S = load(index);
  if (S.Mutex === undefined) throw new Error('the package did not load');
  // All that is loaded when it is first used.
  void { ...S };
  surroundings.after?.();
  return core(S, surroundings.newSignal ?? (() => new AbortController()));
}

run().then(
  (seen) => write(`${seen.join('\n')}\n`, () => process.exit(0)),
  (error) => write(`failed: ${error?.stack ?? error}\n`, () => process.exit(1)),
);
