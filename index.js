// The package's face; index.d.ts documents every member.

const { Condition } = require('./lib/condition.js');
const { Mutex } = require('./lib/mutex.js');
const { LockGuard } = require('./lib/guard.js');
const { DeadlockError, TimeoutError } = require('./lib/errors.js');
const { notify, wait, waitAsync } = require('./lib/futex.js');

exports.Mutex = Mutex;
exports.Condition = Condition;
exports.LockGuard = LockGuard;
exports.TimeoutError = TimeoutError;
exports.DeadlockError = DeadlockError;
exports.wait = wait;
exports.notify = notify;
exports.waitAsync = waitAsync;
