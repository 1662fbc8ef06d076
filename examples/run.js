// Runs every example of this folder and prints how many passed. An example passes if it ends with code 0 in time.

const { execFileSync, spawnSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const { USING_IS_KNOWN } = require('../scripts/runtimes.js');

const LIMIT_MS = 60_000;
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
  const isPassed = status === 0;
  console.log(`${isPassed ? 'pass' : 'FAIL'}  ${file}`);
  const text = `${stdout}${stderr}`.trim();
  if (text) console.log(text.replace(/^/gm, '      '));
  if (!isPassed) console.log(`      ended with ${error?.message ?? signal ?? `code ${status}`}`);
  return isPassed;
};

const files = fs.readdirSync(__dirname).filter((file) => /\.m?js$/.test(file) && file !== path.basename(__filename));
try {
  const passed = files.filter(run).length;
  console.log(`${passed} passed, ${files.length - passed} failed`);
  if (passed !== files.length) process.exitCode = 1;
} finally {
  fs.rmSync(COMPILED, { recursive: true, force: true });
}
