// What can be told of a binary by its bytes: the system that it is for, and the oldest glibc that it loads with.

const fs = require('node:fs');

/** The oldest glibc that the packages are for. */
const GLIBC_FLOOR = [2, 17];

/** A build of one thread's binary is well below this. */
const MAX_BYTES = 1.5e6;

/** Marks a file that takes the place of a binary in a dry run. */
const STAND_IN = 'sablock: a stand-in, not a binary';

const ELF = { x64: 0x3e, arm64: 0xb7 };
const MACH_O = { x64: 0x01000007, arm64: 0x0100000c };
const PE = { x64: 0x8664, arm64: 0xaa64 };
const PE_HEADER = 0x40;

/** The system and the processor in the file's header; undefined if it is of another kind. */
function target(bytes) {
  const cpuOf = (cpus, code) => Object.keys(cpus).find((cpu) => cpus[cpu] === code) ?? `processor ${code}`;
  if (bytes.length < 0x100) return undefined;
  if (bytes.readUInt32BE(0) === 0x7f454c46) return `linux ${cpuOf(ELF, bytes.readUInt16LE(18))}`;
  if (bytes.readUInt32LE(0) === 0xfeedfacf) return `darwin ${cpuOf(MACH_O, bytes.readUInt32LE(4))}`;
  if (bytes.toString('latin1', 0, 2) === 'MZ') {
    const header = bytes.readUInt32LE(0x3c);
    if (bytes.toString('latin1', header, header + 4) !== 'PE\0\0') return undefined;
    return `win32 ${cpuOf(PE, bytes.readUInt16LE(header + 4))}`;
  }
  return undefined;
}

/** The newest version of glibc that a symbol is wanted of. */
function newestGlibc(text) {
  const versions = Array.from(text.matchAll(/\0GLIBC_(\d+)\.(\d+)/g), ([, major, minor]) => [+major, +minor]);
  return versions.sort((a, b) => a[0] - b[0] || a[1] - b[1]).at(-1);
}

const isAbove = (version, floor) => version[0] > floor[0] || (version[0] === floor[0] && version[1] > floor[1]);

/** What speaks against publishing this file for this platform, or, if it is a trial, against trying that. */
exports.objections = (platform, file, isTrial) => {
  const bytes = fs.readFileSync(file);
  const text = bytes.toString('latin1');
  const found = [];
  const actual = target(bytes);
  if (actual === undefined) return ['is no binary of these systems'];
  if (actual !== `${platform.os} ${platform.cpu}`) found.push(`is for ${actual}`);
  if (bytes.length > MAX_BYTES) found.push(`has ${bytes.length} bytes, more than ${MAX_BYTES}`);
  if (text.includes(STAND_IN)) return isTrial ? found : [...found, 'is a stand-in'];
  if (!text.includes('sablock_protocol')) found.push('is no binary of sablock');
  if (platform.abi === 'musl' && text.includes('\0libc.so.6\0')) found.push('is for glibc');
  if (platform.abi === 'gnu') {
    const newest = newestGlibc(text);
    if (newest === undefined) found.push('is not for glibc');
    else if (!isTrial && isAbove(newest, GLIBC_FLOOR)) {
      found.push(`needs glibc ${newest.join('.')}, and the floor is ${GLIBC_FLOOR.join('.')}`);
    }
  }
  return found;
};

/** A file with the right header and nothing behind it. */
exports.standIn = ({ os, cpu }) => {
  const bytes = Buffer.alloc(0x100);
  if (os === 'linux') {
    bytes.writeUInt32BE(0x7f454c46, 0);
    bytes.writeUInt16LE(ELF[cpu], 18);
  } else if (os === 'darwin') {
    bytes.writeUInt32LE(0xfeedfacf, 0);
    bytes.writeUInt32LE(MACH_O[cpu], 4);
  } else {
    bytes.write('MZ', 0);
    bytes.writeUInt32LE(PE_HEADER, 0x3c);
    bytes.write('PE\0\0', PE_HEADER);
    bytes.writeUInt16LE(PE[cpu], PE_HEADER + 4);
  }
  return Buffer.concat([bytes, Buffer.from(STAND_IN)]);
};
