// Programs of the system's packages, and running them.

const { spawnSync } = require('node:child_process');
const fs = require('node:fs');

/** The code of `sysexits.h`: `.ci/run` goes on without what ends so. */
const EX_UNAVAILABLE = 69;

/** It is not there, and not to be had on this machine. */
class Unavailable extends Error {}

const run = (command, args) => spawnSync(command, args, { stdio: ['ignore', 'ignore', 'inherit'] }).status === 0;

/** Installs packages of Debian or Ubuntu, as root or with sudo. */
const install = (packages) => {
  const asRoot = process.getuid() === 0 ? [] : ['sudo', '-n'];
  const apt = (...args) => {
    const quietly = ['apt-get', '-qq', '-o', 'Acquire::Retries=3'];
    const [command, ...rest] = [...asRoot, 'env', 'DEBIAN_FRONTEND=noninteractive', ...quietly, ...args];
    return run(command, rest);
  };
  console.log(`Installing ${packages.join(' ')}`);
  if (!apt('update') || !apt('install', '-y', '--no-install-recommends', ...packages)) {
    throw new Unavailable(`apt-get could not install ${packages.join(' ')}`);
  }
};

/** Installs what brings the programs that are missing: `{ program: packages }`. */
const needPrograms = (programs) => {
  const missing = Object.keys(programs).filter((program) => !run('which', [program]));
  const packages = missing.flatMap((program) => programs[program]);
  if (packages.length > 0) install([...new Set(packages)]);
};

/** Node.js for another system, from npm, into `folder`. */
const installNode = (folder, name, version) => {
  const options = [
    '--no-save',
    '--no-package-lock',
    '--no-audit',
    '--no-fund',
    '--prefer-offline',
    '--force',
    '--ignore-scripts',
  ];
  fs.mkdirSync(folder, { recursive: true });
  const args = ['install', ...options, '--prefix', folder, `${name}@${version}`];
  const { status } = spawnSync('npm', args, { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] });
  if (status !== 0) throw new Unavailable(`npm could not install ${name}@${version}`);
};

/** Runs a script, which ends with `EX_UNAVAILABLE` if the machine cannot have what it needs. */
const runScript = async (script) => {
  try {
    await script();
  } catch (error) {
    if (!(error instanceof Unavailable)) throw error;
    console.error(error.message);
    process.exitCode = EX_UNAVAILABLE;
  }
};

module.exports = { install, installNode, needPrograms, runScript };
