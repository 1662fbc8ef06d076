// Loads the package of this folder and prints how that fails, as JSON. `--platform` and `--arch` pretend to be elsewhere.

const { parseArgs } = require('node:util');

const { values } = parseArgs({ options: { platform: { type: 'string' }, arch: { type: 'string' } } });
for (const [name, value] of Object.entries(values)) Object.defineProperty(process, name, { value });

const describe = ({ name, code, message, errors }) => ({ name, code, message, errors: errors?.map(describe) });

let error = null;
try {
  require(process.cwd());
} catch (thrown) {
  error = { ...describe(thrown), cause: thrown.cause && describe(thrown.cause) };
}
console.log(JSON.stringify(error));
