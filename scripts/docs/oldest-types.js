// npm run types:oldest: the tests of the declarations with the oldest TypeScript that knows `using`, which finds modules
// for CommonJS in the way that later ones have given up.

const { execFileSync } = require('node:child_process');
const path = require('node:path');
const { root } = require('./documents.js');

const compiler = require.resolve('typescript-oldest/bin/tsc');
const check = (project, ...options) => {
  const args = [compiler, '--project', path.join(root, '__test__/types', project), ...options];
  execFileSync(process.execPath, args, { stdio: 'inherit' });
};

check('.');
check('dom');
check('commonjs', '--moduleResolution', 'node10');
