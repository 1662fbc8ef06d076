// Runs every example of this folder, or those that are named, and prints how many passed. An example passes if it ends with code 0
// in time. One that ends with code 69 is left out: it needs a server that is not installed, and says which.

const { execFileSync, spawnSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const { USING_IS_KNOWN } = require('../scripts/runtimes.js');

const LIMIT_MS = 60_000;
const LEFT_OUT = 69;
const COMPILED = path.join(__dirname, '.compiled');

/** Returns the file to run: the example, or what TypeScript makes of it if this Node.js does not know `using` yet. */
const prepare = (file) => {
  const isCompiled = file.endsWith('.mjs') && !USING_IS_KNOWN;
  if (!isCompiled) return path.join(__dirname, file);
  const compiler = path.join(path.dirname(require.resolve('typescript/package.json')), 'bin', 'tsc');
  const options = [
    '--ignoreConfig',
    '--allowJs',
    '--noCheck',
    '--target',
    'es2022',
    '--module',
    'nodenext',
    '--rootDir',
    __dirname,
    '--outDir',
    COMPILED,
  ];
  execFileSync(process.execPath, [compiler, ...options, path.join(__dirname, file)], { stdio: 'inherit' });
  return path.join(COMPILED, file);
};

const start = (file) => {
  try {
    return spawnSync(process.execPath, [prepare(file)], { encoding: 'utf8', timeout: LIMIT_MS, killSignal: 'SIGKILL' });
  } catch (error) {
    return { error, stdout: '', stderr: '' };
  }
};

const run = (file) => {
  const { status, signal, error, stdout, stderr } = start(file);
  const result = { 0: 'pass', [LEFT_OUT]: 'left out' }[status] ?? 'FAIL';
  console.log(`${result}  ${file}`);
  const text = `${stdout}${stderr}`.trim();
  if (text) console.log(text.replace(/^/gm, '      '));
  if (result === 'FAIL') console.log(`      ended with ${error?.message ?? signal ?? `code ${status}`}`);
  return { file, result };
};

const isExample = (file) => /\.m?js$/.test(file) && file !== path.basename(__filename);
const named = process.argv.slice(2);
const files = named.length > 0 ? named : fs.readdirSync(__dirname).filter(isExample);
try {
  const results = files.map(run);
  const of = (wanted) => results.filter(({ result }) => result === wanted);
  const failed = of('FAIL').length;
  console.log(`${of('pass').length} passed, ${failed} failed`);
  const left = of('left out').map(({ file }) => file);
  if (left.length > 0) console.log(`Left out, for want of a server: ${left.join(', ')}`);
  if (failed > 0) process.exitCode = 1;
} finally {
  fs.rmSync(COMPILED, { recursive: true, force: true });
}
