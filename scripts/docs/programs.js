// Runs code blocks, each in a folder of its own where `sablock` is this repository.

const { spawn } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const ts = require('typescript');
const { USING_IS_KNOWN } = require('../runtimes.js');
const { NAMES } = require('./fragments.js');
const { root } = require('./documents.js');

const LIMIT_MS = 60_000;

/** The packages that the documents may require. */
const PACKAGES = new Map([
  ['sablock', root],
  ['async-mutex', path.join(root, 'bench', 'node_modules', 'async-mutex')],
  ['multithreading', path.join(root, 'bench', 'node_modules', 'multithreading')],
  ['@opentelemetry', path.join(__dirname, 'node_modules', '@opentelemetry')],
]);

/** For a Node.js that knows neither types nor `using`. */
const compile = (code) =>
  ts.transpileModule(code, {
    compilerOptions: { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext },
  }).outputText;

const isModule = (code) => ts.isExternalModule(ts.createSourceFile('block.js', code, ts.ScriptTarget.Latest));

const asFragment = (code) =>
  `require(${JSON.stringify(path.join(__dirname, 'fragments.js'))})` +
  `.run(__filename, async ({ ${NAMES.join(', ')} }) => {{\n${code}\n}});\n`;

/** Writes the program into a new folder. Returns its path. */
const write = ({ code, isFragment, isDoctored, isTyped }) => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'sablock-docs-'));
  const modules = path.join(folder, 'node_modules');
  fs.mkdirSync(modules);
  for (const [name, home] of PACKAGES) fs.symlinkSync(home, path.join(modules, name), 'junction');
  const source = isFragment ? asFragment(code) : code;
  const file = path.join(folder, isModule(source) ? 'program.mjs' : 'program.js');
  // The report has the lines of the source.
  fs.writeFileSync(file, !isTyped && (USING_IS_KNOWN || isDoctored) ? source : compile(source));
  return file;
};

/** A program that hangs is ended so long after the last of the doctor's report. */
const HANGS_MS = 1000;

const start = (node, file, isDoctored) =>
  new Promise((resolve) => {
    const child = spawn(node, [...(isDoctored ? ['--require', 'sablock/doctor'] : []), file], {
      cwd: path.dirname(file),
      timeout: LIMIT_MS,
      killSignal: 'SIGKILL',
    });
    const output = { stdout: '', stderr: '' };
    let silence;
    const hearReport = () => {
      clearTimeout(silence);
      silence = setTimeout(() => child.kill('SIGKILL'), HANGS_MS).unref();
    };
    for (const name of ['stdout', 'stderr']) {
      child[name].setEncoding('utf8').on('data', (text) => {
        output[name] += text;
        if (isDoctored && name === 'stderr') hearReport();
      });
    }
    child.on('close', (code, signal) => resolve({ ...output, code, signal }));
  });

/** The lines that the block's comments announce, in the order of the source. Threads may print them in another. */
const statedLines = (code) => Array.from(code.matchAll(/\/\/ prints (.+)$/gm), ([, line]) => line);

const toLines = (text) => text.replace(/\n$/, '').split('\n');

/** The doctor's report without what differs each time. */
const withoutTimes = (report) => report.replace(/\b\d+(\.\d+)? m?s\b/g, '0 ms');

const withoutPlaces = (report) => report.replace(/\bprogram\.m?js:\d+:\d+/g, 'program');

/** Returns what is wrong with the doctor's report, or null. Lines of TypeScript are others than those that ran. */
const judgeReport = ({ output, isTyped }, { stderr }) => {
  const toCompare = (report) => withoutTimes(isTyped ? withoutPlaces(report) : report);
  return output !== null && toCompare(stderr) === toCompare(output)
    ? null
    : `was reported as\n${stderr}instead of\n${output}`;
};

/** Returns what is wrong with how a program ended, or null. */
const judge = ({ code, output }, { code: status, signal, stdout, stderr }) => {
  if (status !== 0) return `ended with ${signal ?? `code ${status}`}\n${stdout}${stderr}`;
  if (output !== null && stdout !== output) return `printed\n${stdout}instead of\n${output}`;
  const stated = statedLines(code);
  if (stated.length > 0 && toLines(stdout).sort().join('\n') !== stated.sort().join('\n')) {
    return `printed\n${stdout}instead of\n${stated.join('\n')}\n`;
  }
  return null;
};

/** Runs `{ code, isFragment, output, node }`, where `node` is the path of a Node.js. Returns what is wrong, or null. */
exports.run = async (program) => {
  const file = write(program);
  try {
    const result = await start(program.node, file, program.isDoctored);
    return program.isDoctored ? judgeReport(program, result) : judge(program, result);
  } finally {
    fs.rmSync(path.dirname(file), { recursive: true, force: true });
  }
};
