const assert = require('node:assert/strict');
const { spawnSync } = require('node:child_process');
const path = require('node:path');
const { limit } = require('./limits.js');

/** The program behind `sablock`. */
const CLI = path.join(__dirname, '..', '..', 'lib', 'cli', 'index.js');
const PROGRAM = path.join(__dirname, '..', 'programs', 'command-lines.js');

/**
 * The same as a process of `sablock` for each of these lists of arguments, in one that takes them one after the other. None may be
 * one whose command a signal ends: that ends the process. The line at `index` has `environments[index]` beside the environment.
 * The process is the command of the lines in `around`, each inside of the one before.
 */
exports.sablockAll = (lines, environments = [], around = []) => {
  const asked = lines.map((args, index) => ({ args, env: environments[index] ?? {} }));
  const outer = around.flatMap((args) => [CLI, ...args, '--', process.execPath]);
  const { stdout, stderr } = spawnSync(process.execPath, [...outer, PROGRAM, JSON.stringify(asked)], {
    encoding: 'utf8',
    timeout: limit(60_000),
  });
  // The output of each, then its exit code.
  const outputs = stdout.split('\0');
  const errors = stderr.split('\0');
  assert.equal(errors.length, lines.length + 1, `not all have ended: ${stdout}\n${stderr}`);
  return lines.map((_, index) => ({
    status: Number(outputs[2 * index + 1]),
    stdout: outputs[2 * index],
    stderr: errors[index],
  }));
};

exports.CLI = CLI;
