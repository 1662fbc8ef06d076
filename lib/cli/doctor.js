// `sablock doctor app.js`: runs a program with the doctor in all of its threads.

const path = require('node:path');
const { become, runChild } = require('./child.js');
const { fail } = require('./output.js');

module.exports = (args) => {
  if (args.length === 0) return fail('doctor needs a program. See sablock --help.');
  const preload = ['--require', path.join(__dirname, '..', 'doctor', 'index.js')];
  const env = { ...process.env, SABLOCK_DOCTOR_SIGNAL: 'SIGUSR2' };
  if (become([...preload, ...args], env)) return;
  // A group's signal reaches both: the doctor over there passes over the one that this process forwards.
  env.SABLOCK_DOCTOR_FORWARDER = String(process.pid);
  runChild(process.execPath, [...preload, ...args], { stdio: 'inherit', env }, (code) => {
    process.exitCode = code;
  });
};
