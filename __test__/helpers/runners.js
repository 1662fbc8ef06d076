// The packages that `npm run test:runners` installs into a folder of its own: much, and so not for everybody.

const { createRequire } = require('node:module');
const path = require('node:path');
const { limit } = require('./limits.js');
const { needs } = require('./runtime.js');

/** The folder of such a package; undefined without it. */
exports.folderOf = (name) => {
  try {
    const { resolve } = createRequire(path.join(__dirname, '..', 'runners', 'package.json'));
    return path.dirname(resolve(`${name}/package.json`));
  } catch {
    return undefined;
  }
};

/** The options of a test that needs the package in this folder. */
exports.withTool = (folder) => ({
  ...needs('preloading'),
  ...(folder === undefined && { skip: 'npm run test:runners installs it' }),
  timeout: limit(120_000),
});
