// The errors and warnings of locks of files: what failed, on which file, what to do.

const { inspect } = require('node:util');
const clock = require('../load/clock.js');
const { describe, threadEnding } = require('../errors.js');
const { placeOf } = require('./errors.js');

/** By what the binding gives as the reason. */
const REASONS = {
  owner: ({ found, user }) =>
    `user ${found} owns it, and this process runs as user ${user}. Remove it as that user, or give a "directory" of your own.`,
  permissions: ({ found }) =>
    `it is not for this user alone (its permissions are ${found.toString(8)}). See who made it so, then run \`chmod 700\` ` +
    'on it; or give a "directory" that you want to share.',
  'not-sticky': ({ found }) =>
    `others may write in it and remove files that are in use (its permissions are ${found.toString(8)}). Run \`chmod +t\` on ` +
    'it, or take the right to write there from others. If it is not yours, make a folder of your own in it and give that as the ' +
    '"directory".',
  link: () => 'it is a symbolic link, which could lead anywhere. Remove it, or give the "directory" that it leads to.',
  'not-a-directory': () => 'it is not a directory. Remove the file, or give another "directory".',
  'no-parent': () => 'neither it nor its parent exists. Make the parent first, or give another "directory".',
  'file-system': ({ what }) =>
    `its file system is ${what}, on which locks are slow, missing, or shared with other machines. Give a "directory" on a ` +
    'local disk.',
  'no-thread': ({ message }) =>
    `the system refused the thread that waits for it (${message}). Wait for fewer locks at once, or end other threads.`,
  system: ({ what, message }) => `the system could not ${what} it (${message}). ${ADVICE}`,
};

const ADVICE =
  'See to it that this user may read and write there and that the disk has room and the process file descriptors left, or ' +
  'give another "directory".';

/** `place` is the lock that was asked for, if one was; `failure` is nothing in a thread that is ending, where no objects can be made. */
exports.directoryError = (failure, place) => {
  if (failure === undefined)
    return threadEnding(place === undefined ? 'a directory of locks' : describe(place), 'open');
  const { path, reason, errno } = failure;
  const what = place === undefined ? 'keep locks' : `lock ${describe(place)}`;
  const where = path === '' ? '' : ` in ${inspect(path)}`;
  const error = new Error(`Cannot ${what}${where}: ${REASONS[reason](failure)}`);
  error.code = reason === 'no-thread' ? 'ERR_LOCK_NO_THREAD' : 'ERR_LOCK_DIRECTORY';
  if (path !== '') error.path = path;
  if (errno !== 0) error.errno = -errno;
  return error;
};

function warn(message, code) {
  try {
    process.emitWarning(message, { type: 'LockFileWarning', code });
  } catch (error) {
    // A replaced `emitWarning` threw, or the stack has ended: an uncaught error of its own. The lock is unlocked.
    clock.throwLater(error);
  }
}

/** The file of a lock that was just unlocked was gone. */
exports.removed = (name, directory) =>
  warn(
    `The file of ${describe(placeOf(name))} in ${inspect(directory)} was removed while this thread held it, so another ` +
      'process may have held it at the same time. Find out what removes files there: nothing may, while they are in use.',
    'SABLOCK_LOCK_FILE_REMOVED',
  );

/** The record of a lock that was just unlocked could not be written. */
exports.unwritten = (name, { path, message }) =>
  warn(
    `The record ${inspect(path)} of ${describe(placeOf(name))} could not be written when it was unlocked (${message}): ` +
      'the next holder sees it as abandoned.',
    'SABLOCK_LOCK_RECORD',
  );
