// The built-in functions do not always do what the specification says: shown as a table, and no failure of this package.

const { after } = require('node:test');

/** Runs a step of the suite; what fails is a failure for this package, and a line of the table for the built-in ones. */
exports.createJudge = () => {
  const deviations = [];
  after(() => {
    if (deviations.length > 0) console.log(`The built-in functions of Node ${process.version} deviate:`);
    for (const { step, error } of deviations) console.log(`  ${step}: ${error}`);
  });
  return async (t, face, step, run) => {
    try {
      await run();
    } catch (error) {
      if (face === 'sablock') throw error;
      const [line] = String(error?.message ?? error).split('\n');
      deviations.push({ step, error: line });
      t.diagnostic(`the built-in one deviates: ${line}`);
    }
  };
};
