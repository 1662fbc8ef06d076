#!/usr/bin/env node
// `npx sablock doctor app.js`: runs a program with the doctor in all of its threads.

const { spawn } = require('node:child_process');
const { constants } = require('node:os');
const path = require('node:path');

const USAGE = `Usage: sablock doctor [node options] program.js [arguments]

Runs a program with the lock doctor in all of its threads. If something hangs or
could deadlock, a report is printed to stderr; kill -USR2 <pid> prints it at any time.
`;

const FORWARDED = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGUSR2'];

function run(args) {
  const preload = ['--require', path.join(__dirname, 'index.js')];
  const env = { ...process.env, SABLOCK_DOCTOR_SIGNAL: 'SIGUSR2' };
  const child = spawn(process.execPath, [...preload, ...args], { stdio: 'inherit', env });
  for (const signal of FORWARDED) process.on(signal, () => child.kill(signal));
  child.on('error', (error) => {
    console.error(error.message);
    process.exitCode = 1;
  });
  child.on('exit', (code, signal) => {
    process.exitCode = code ?? 128 + constants.signals[signal];
  });
}

const [command, ...args] = process.argv.slice(2);
if (command === 'doctor' && args.length > 0) {
  run(args);
} else {
  process.stderr.write(USAGE);
  process.exitCode = command === '--help' || command === '-h' ? 0 : 2;
}
