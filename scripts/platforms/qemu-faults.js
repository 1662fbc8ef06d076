// The faults of qemu. `npm run test:arm64` fails if one of them passes.

exports.FAULTS = [];

/** Files that say nothing about the processor. */
exports.LEFT_OUT = {
  'ends/environments': 'compiles an addon for the system that it runs on',
  'release/release': 'runs npm',
};

/** Tests of the core. */
exports.CORE_LEFT_OUT = {
  files: 'its children are the same program, and the kernel starts none for arm64; named/machine-* have such children',
};
