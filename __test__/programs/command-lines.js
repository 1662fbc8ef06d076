// Command lines of `sablock`, one after the other in this process: each begins when nothing of the one before keeps it running.
//
//     node command-lines.js '[{ "args": ["locks"], "env": {} }, ...]'

const fs = require('node:fs');

const CLI = require.resolve('../../lib/cli/index.js');
const lines = JSON.parse(process.argv[2]);
const warn = process.listeners('warning');
let before = {};

/** Listeners and the environment are as in a process of its own. */
function restore() {
  for (const name of ['warning', ...process.eventNames().filter((event) => String(event).startsWith('SIG'))]) {
    process.removeAllListeners(name);
  }
  for (const each of warn) process.on('warning', each);
  process.stdout.removeAllListeners('error');
  for (const [name, value] of Object.entries(before)) {
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
  }
  process.exitCode = undefined;
}

function end() {
  fs.writeSync(1, `\0${process.exitCode ?? 0}\0`);
  fs.writeSync(2, '\0');
  restore();
  // From the event loop: otherwise the end of a line that does all at once would not be told.
  if (lines.length > 0) setImmediate(begin, lines.shift());
}

function begin({ args, env }) {
  before = Object.fromEntries(Object.keys(env).map((name) => [name, process.env[name]]));
  Object.assign(process.env, env);
  process.argv = [process.execPath, CLI, ...args];
  process.once('beforeExit', end);
  delete require.cache[CLI];
  require(CLI);
}

begin(lines.shift());
