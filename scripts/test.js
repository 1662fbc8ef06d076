// npm test [-- OPTION | FILE ...]: the JS tests, or those in files. Options are those of `node --test`, each with its value behind `=`.

const { spawnSync } = require('node:child_process');
const path = require('node:path');
const { nodeTest, testFiles } = require('./node-test.js');

const isOption = (argument) => argument.startsWith('-');
const given = process.argv.slice(2);
const chosen = given.filter((argument) => !isOption(argument));
const args = [...given.filter(isOption), ...nodeTest(chosen.length > 0 ? chosen : testFiles())];
// Node.js 20 reads these certificates whenever a process starts, which then takes it four times as long, and the tests start a
// thousand. No test asks a server that they vouch for.
const { NODE_EXTRA_CA_CERTS, ...env } = process.env;
process.exitCode =
  spawnSync(process.execPath, args, { cwd: path.join(__dirname, '..'), env, stdio: 'inherit' }).status ?? 1;
