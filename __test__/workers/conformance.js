// Runs the steps about arguments in a thread that may block.

const { data, doing, finish } = require('../helpers/inside.js');
const { loadFace } = require('../conformance/faces.js');
const { steps } = require('../conformance/arguments.js');

finish(() => {
  const face = loadFace(data.face);
  return steps.map(({ name, run }) => {
    doing(name);
    try {
      run(face);
      return null;
    } catch (error) {
      return error?.message ?? String(error);
    }
  });
});
