// The time that a test, or what it starts, may take before it counts as stuck. `SABLOCK_TEST_SLOWNESS=10` is for a machine, or
// what stands for one, that is ten times slower; less than 1 is for what nobody waits for (scripts/hollow.js).

const slowness = Number(process.env.SABLOCK_TEST_SLOWNESS ?? 1);
if (!(slowness > 0)) throw new Error(`SABLOCK_TEST_SLOWNESS is no factor: ${process.env.SABLOCK_TEST_SLOWNESS}`);

/** A limit of time, on this machine. */
exports.limit = (time) => time * slowness;
