// The faults of Wine, with the version that was looked at; each was compared with a program without sablock. `npm run test:wine`
// fails if one of them passes.

const LINKS = 'fs.symlinkSync() makes nothing and says nothing, and a junction is ENOTSUP (Wine 8 and 10)';
const CUT =
  'process.dlopen() of a cut file says `Bad EXE format`, where Windows says `is not a valid Win32 application`';

exports.FAULTS = [
  {
    file: 'named/machine-directory',
    test: 'what is no directory, or a link that leads nowhere, is refused',
    why: LINKS,
  },
  { file: 'named/machine-directory', test: 'two paths to one directory are one', why: LINKS },
  { file: 'doctor/first-lines', why: LINKS },
  { file: 'doctor/programs', why: LINKS },
  { file: 'loading/loading', test: 'a truncated file is reported, in a package and as a build', why: CUT },
];

/** Files that say nothing about Windows. */
exports.LEFT_OUT = {
  'ends/environments': 'compiles an addon for the system that it runs on',
  'release/release': 'runs npm, which is not there',
};
