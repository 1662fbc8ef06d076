// Helpers that the tests of named locks have in common.

const { locks } = require('../..');
const { startActors } = require('./actors.js');

/** A promise and what settles it. */
exports.deferred = () => {
  const parts = {};
  parts.promise = new Promise((resolve, reject) => Object.assign(parts, { resolve, reject }));
  return parts;
};

/** Holds a name until `release(result)` is called; `request` is the promise of the request. */
exports.hold = async (name, options = {}, manager = locks) => {
  const inside = exports.deferred();
  const end = exports.deferred();
  const request = manager.request(name, options, (lock) => {
    inside.resolve(lock);
    return end.promise;
  });
  request.catch(inside.reject);
  return { lock: await inside.promise, release: end.resolve, fail: end.reject, request };
};

/** Returns the rows of a list of `query()` that are for this name. */
exports.rowsOf = (list, name) => list.filter((row) => row.name === name);

/** The modes in which a name is held, and for which it is waited, in order. */
exports.modesOf = async (name, manager = locks) => {
  const { held, pending } = await manager.query();
  const modes = (list) => exports.rowsOf(list, name).map(({ mode }) => mode);
  return { held: modes(held), pending: modes(pending) };
};

/** Looks until so many wait for the name. */
exports.pendingFor = async (threads, name, count, manager = locks) => {
  let seen = -1;
  const look = async () => {
    seen = (await exports.modesOf(name, manager)).pending.length;
  };
  await look();
  await threads.until(`${count} wait for ${name}`, () => {
    look();
    return seen === count;
  });
};

/** Marks these names of a manager with these options: a thread ends that holds them. Returns its id. */
exports.abandonIn = async (threads, options, ...names) => {
  const [doomed] = await startActors(threads, 1);
  const keep = async (here, options, names) => {
    const manager = new here.sablock.LockManager(options);
    here.kept = await Promise.all(names.map((name) => manager.acquireAsync(name)));
  };
  await doomed.do(keep, options, names);
  await doomed.terminate();
  await doomed.exited;
  return doomed.threadId;
};

/** The same, of the process. */
exports.abandon = (threads, ...names) => exports.abandonIn(threads, {}, ...names);

const turn = () => new Promise((resolve) => setImmediate(resolve));

/** Lets everything happen that is about to. */
exports.turns = async (count = 3) => {
  for (let index = 0; index < count; index++) await turn();
};

/** The modes in which a name is held (`null`: not at all) and asked for with `ifAvailable`, and whether it is available then. */
exports.AVAILABLE = [
  [null, 'exclusive', true],
  [null, 'shared', true],
  ['exclusive', 'exclusive', false],
  ['exclusive', 'shared', false],
  ['shared', 'exclusive', false],
  ['shared', 'shared', true],
];
