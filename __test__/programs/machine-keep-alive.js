// Requests a name that another process holds, and does nothing else.

const { LockManager } = require('../..');

const [, , directory, ref] = process.argv;
// It ends while it waits.
if (ref === 'false' && process.env.SABLOCK_AUDIT) process.env.SABLOCK_AUDIT = 'waiting';
new LockManager({ directory }).request('a', { ref: ref === 'true' }, () => console.log('locked'));
// Once it waits, and not before.
setTimeout(() => console.log('waits'), 100);
