'use strict';
// The contenders, and what each file in contenders/ exports:
//
//   name            in tables and on the command line
//   nodeFlags       flags that its process needs (optional)
//   oneThread       true: works inside one thread only (optional)
//   knownWrong      how it is known to break exclusion: shown as wrong, but no reason to fail the run (optional)
//   minNode         the first major version of Node it runs on (optional)
//   entry           what a user would load: { require: path } or { import: specifier }
//   load()          loads it in this thread; throws or rejects if this Node cannot; called once before the rest
//   share(count)    `count` unlocked locks, as something that can be posted to workers
//   open(memory, i) lock number i in this thread: an object with as many of these as the contender has:
//                   lock() unlock() tryLock() lockAsync({ timeout, signal }) acquire() executeLocked(fn) executeLockedSync(fn)
//                   `false` from lock or lockAsync: timed out. acquire() returns something with unlock().
//
// Instead of the last two, or beside them, other primitives, as far as it has them:
//
//   rwlock          share(), open(memory): `{ read, write }`, two objects like those of `open` above
//   semaphore       share(permits), open(memory, permits): an object with tryAcquire() acquire() acquireAsync(), which return
//                   something with release(); of tryAcquire, `null` if there is no permit
//   barrier         share(parties), open(memory, parties): an object with wait(), which returns whether this was the last party
//   toolkit()       sablock's own package, for what nobody else has

const path = require('node:path');

const FILES = [
  'sablock',
  'plain',
  'multithreading',
  'async-mutex',
  'locks',
  'atomics-mutex',
  'rocicorp-lock',
  'async-rwlock',
  'async-sema',
];

/** Loaded only when asked for by name: it locks nothing, to show that the results are really checked. */
const HIDDEN = ['busted'];

const byName = (name) => require(path.join(__dirname, '..', 'contenders', name));

function pick(names) {
  const known = [...FILES, ...HIDDEN];
  for (const name of names) {
    if (!known.includes(name)) throw new Error(`No contender is called '${name}'. Choose from: ${known.join(', ')}`);
  }
  return names.length ? names : FILES;
}

const major = Number(process.versions.node.split('.')[0]);

async function load(contender) {
  if (major < (contender.minNode ?? 0)) throw new Error(`needs Node >= ${contender.minNode}`);
  await contender.load();
}

/** Loads a contender's package as its users do. */
async function loadEntry(entry) {
  if (entry.import) await import(entry.import);
  else require(entry.require);
}

/** True if the lock has all of these methods. */
const has = (lock, ...methods) => methods.every((method) => typeof lock[method] === 'function');

/** Returns the fault of a lock that nobody holds now, as text, if there is one: it must be free, and taken only once. */
function faultOf(lock) {
  if (!has(lock, 'tryLock', 'unlock')) return undefined;
  if (!lock.tryLock()) return 'the lock is not free after all its holds have ended';
  const twice = lock.tryLock();
  lock.unlock();
  return twice ? 'the lock was taken twice at once' : undefined;
}

/** The same of a readers-writer lock, as far as it can be asked. */
function faultOfRwlock({ read, write }) {
  const fault = faultOf(write);
  if (fault || !has(write, 'tryLock') || !has(read, 'tryLock')) return fault;
  write.tryLock();
  const besideWriter = read.tryLock();
  write.unlock();
  if (besideWriter) return 'a reader was in beside a writer';
  if (!read.tryLock()) return 'no reader gets in after all holds have ended';
  const besideReader = write.tryLock();
  const together = read.tryLock();
  if (together) read.unlock();
  read.unlock();
  if (besideReader) return 'a writer was in beside a reader';
  return together ? undefined : 'two readers were not in together';
}

/** True if the contender has what a scenario is about: a mutex, or its `kind`. */
const takesPart = (name, { kind = 'open' }) => byName(name)[kind] !== undefined;

module.exports = { byName, pick, load, loadEntry, has, faultOf, faultOfRwlock, takesPart };
