// Requests a name that another process holds, and does nothing else.

const { LockManager } = require('../..');
const { endsWaiting } = require('../helpers/audited.js');

const [, , directory, ref] = process.argv;
if (ref === 'false') endsWaiting(process.env);
new LockManager({ directory }).request('a', { ref: ref === 'true' }, () => console.log('locked'));
// Once it waits, and not before.
setTimeout(() => console.log('waits'), 100);
