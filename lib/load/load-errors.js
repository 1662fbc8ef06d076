'use strict';

// Errors that say why the package cannot be loaded: what was tried, why each failed, and what to do. This file must not require
// the rest of the package, which has not been loaded.

const { createRequire } = require('node:module');
const path = require('node:path');

const BUILD = 'To build the binary on this system, see "Develop" in the README.';
const INSTALL_HERE = 'Remove node_modules and install again, on the system where the program runs.';

/** Messages of the operating systems' loaders, and what they mean. The first that matches counts. */
const MEANINGS = [
  {
    text: /GLIBC_\S+ not found/,
    reason: 'it needs a newer glibc than this system has',
    advice: `Use a system with glibc 2.17 or later. ${BUILD}`,
  },
  {
    text: /libc\.musl|ld-musl|ld-linux|libc\.so\b|error relocating|symbol not found/i,
    reason: 'it is made for another C library than that of this system',
    advice: `glibc and musl (Alpine) have a package each. ${INSTALL_HERE}`,
  },
  {
    text: /file too short|invalid ELF|wrong ELF|ELF file|exec format|mach-o|architecture|truncated|not a valid Win32/i,
    reason: 'the file is damaged, or made for another system',
    advice: INSTALL_HERE,
  },
];

const UNKNOWN = { reason: 'the system does not load it', advice: `${INSTALL_HERE} ${BUILD}` };

const DISABLED = {
  reason: 'native addons are disabled in this process',
  advice: 'Run Node.js with --allow-addons beside --permission, and without --no-addons.',
};

const NOT_PERMITTED = {
  reason: 'Deno does not permit it',
  advice: 'Run Deno with --allow-read and --allow-ffi.',
};

const MISSING = {
  reason: 'not installed',
  advice:
    'The binary comes in a package for each platform, an optional dependency of sablock that npm installs where it ' +
    'fits: install again on this system, without --omit=optional. A bundler must leave sablock external, or copy the binary.',
};

const INCOMPLETE = {
  reason: 'installed without its binary',
  advice: 'Install again. If the file is missing again, check whether a virus scanner or a copy step removes it.',
};

const FIRST_LINE = /^.*/;

function meaningOf(error) {
  if (error?.code === 'ERR_DLOPEN_DISABLED') return DISABLED;
  // Node names the manifest whose "main" points nowhere.
  if (error?.code === 'MODULE_NOT_FOUND') return error.path === undefined ? MISSING : INCOMPLETE;
  const message = String(error?.message ?? error);
  const { reason, advice } =
    error?.name === 'NotCapable' ? NOT_PERMITTED : (MEANINGS.find(({ text }) => text.test(message)) ?? UNKNOWN);
  return { reason: `${reason} (${FIRST_LINE.exec(message)[0]})`, advice };
}

/** `failures` are the places where a binary may be, and the error of each; empty if there is none for the platform. */
exports.noBinary = (failures) => {
  const platform = `${process.platform}-${process.arch}`;
  const system = `${platform}, Node.js ${process.versions.node}`;
  if (failures.length === 0) {
    const message =
      `sablock has no binary for this platform (${system}). There are binaries for Linux (glibc and musl), macOS and ` +
      'Windows, on x64 and arm64. WebAssembly (WASI) cannot replace them, because it has no access to the memory that ' +
      'threads share. ' +
      BUILD;
    return coded(new Error(message), 'ERR_LOCK_NO_BINARY');
  }
  const found = failures.map(({ name, error }) => ({ name, ...meaningOf(error) }));
  // A package that is not installed matters only if no other is installed either.
  const relevant = found.filter(({ advice }) => advice !== MISSING.advice);
  const advice = new Set((relevant.length > 0 ? relevant : found).map((failure) => failure.advice));
  if (process.versions.webcontainer !== undefined) {
    advice.add('A WebContainer runs only WebAssembly, which has no access to the memory that threads share.');
  }
  const message = [
    `sablock could not load its binary (${system}). Tried:`,
    ...found.map(({ name, reason }) => `- ${name}: ${reason}`),
    ...advice,
  ].join('\n');
  const errors = failures.map(({ error }) => error);
  const cause = errors.length === 1 ? errors[0] : new AggregateError(errors, 'No binary could be loaded');
  return coded(new Error(message, { cause }), 'ERR_LOCK_NO_BINARY');
};

/** `name` is the package, or the file of a build, that the binding came from. */
exports.versionMismatch = (version, { name, binding }) => {
  const advice = path.isAbsolute(name)
    ? 'Build it again: npm run build.'
    : 'Install sablock again, so that npm installs both in one version. If it is part of a bundle, build the bundle again.';
  return coded(
    new Error(
      `The JavaScript of sablock has version ${version}, and its binary (${locate(name)}) has version ` +
        `${binding.VERSION ?? 'unknown'}: both must have the same version. ${advice}`,
    ),
    'ERR_LOCK_VERSION_MISMATCH',
  );
};

exports.twoCopies = (first, protocol) =>
  coded(
    new Error(
      `Two incompatible copies of sablock in one process: ${first.path} (protocol ${first.protocol}) was loaded first, and ` +
        `${path.join(__dirname, '..', '..')} (protocol ${protocol}) cannot work with it. Install one version for all packages that depend on it.`,
    ),
    'ERR_LOCK_TWO_COPIES',
  );

function locate(name) {
  try {
    return createRequire(__filename).resolve(name);
  } catch {
    return name;
  }
}

function coded(error, code) {
  error.code = code;
  return error;
}
