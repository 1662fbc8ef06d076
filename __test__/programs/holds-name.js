// Holds a name of a directory until its input ends.

const { LockManager } = require('../../index.js');

const [directory, name] = process.argv.slice(2);
new LockManager({ directory }).request(name, async () => {
  process.stdout.write('held');
  for await (const _ of process.stdin);
});
