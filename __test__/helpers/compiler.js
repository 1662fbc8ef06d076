// The C compiler with which some tests make a library, where there is one.

const { spawnSync } = require('node:child_process');

exports.CC = process.env.CC ?? 'cc';

const isGlibc = process.platform === 'linux' && process.report.getReport().header.glibcVersionRuntime !== undefined;
/** Node.js may be emulated, and is for another processor then than what `cc` compiles for. */
const MACHINE = { x64: 'x86_64', arm64: 'aarch64' }[process.arch];
const hasCompiler = isGlibc && String(spawnSync(exports.CC, ['-dumpmachine']).stdout).startsWith(MACHINE);

/** The options of a test that needs it. */
exports.withCompiler = { skip: !hasCompiler && `no glibc, or no C compiler for ${MACHINE}` };
