// The base of a LockManager: a backend, one for each scope. The face (`manager.js`, `requests.js`, `outside.js` and
// `blocking.js`) calls nothing else, and it alone knows the engine's table of names.
//
// Every request first goes through the engine's queue of this process, keyed by (space, name). A request that is granted there then
// takes the backend's `outer` lock, if there is one (the file lock of the machine scope), before its callback runs; so one
// request of a process at a time waits outside, for all of them, or several shared ones, which the engine lets in together.
// Releases go the other way: first `outer`, then the engine.
//
// A backend is `{ scope, space, canSteal, canShare, outer, closing }`:
//
// - `scope`: 'process', 'machine' or 'store', for messages;
// - `space`: a number, which tells the names of this backend from those of others in the engine's table; 0 is the process scope.
//   `binding.nameSpace(key)` returns the same new number for the same string, in all threads: "device:inode" of a directory;
// - `canSteal`, `canShare`: whether `steal` and the mode "shared" are possible; else they are refused with a NotSupportedError;
// - `closing`: of a manager that can be closed, the AbortController whose signal takes its requests back; else undefined;
// - `outer`: null, or an object with
//   - `tryLock(name, { mode, fence, isPart })`: the held lock (see below), or null if it cannot be had at once. Throws coded errors;
//   - `lockIfAvailable(name, { mode, fence, isPart })`: the same for `{ ifAvailable: true }`: null means that it is held; of a
//     shared one, or that a request to hold it alone waits. `tryLock` passes none that is next;
//   - `lockAsync(name, { mode, fence, isPart, ref }, { timeout, patience, beside })`: `{ promise, cancel() }`. The promise is fulfilled
//     with the held lock, or with null when the time (milliseconds, Infinity for ever) is over, and rejected with coded errors. If
//     there is a time, `beside` (`goesBack()` of held-lock.js) goes back as soon as it is over, whatever this thread does.
//     `cancel()` withdraws the request (its signal has aborted): the promise is fulfilled with null when nothing is held any
//     more, if it is not over;
//   - `lockBlocking(name, { mode, fence, isPart }, { timeout, patience })`: the held lock, or null when the time is over; blocks the
//     thread as the engine does. Throws coded errors;
//   - `isAsync`: true if there is no `tryLock`: `lockAsync` and `lockBlocking` with a timeout of 0 try, and fail if there is no answer
//     within `patience`; `check()` throws if the manager was closed;
//   - `isPart` of these: it is asked for together with others, and `noteIn(true)` says when all are there. It may be left out;
//   - `holderOf(name)`: `{ pid, threadId, heldMs }` of who holds it alone in another process, for messages; null if that is not
//     known. May be missing; does not block;
//   - `askHolders(name)`, `askHoldersBlocking(name)`: a promise of such rows as those of `query()`, or these, for messages; empty if
//     that is not known soon. May be missing;
//   - `query(names)`: a promise of `[{ name, mode, clientId, pid, threadId, heldMs }]`, holders in other processes; of a store
//     only those of these names, which this process holds or asks for.
//   A held lock is `{ abandoned, ended, fence, markConsistent(), unlock() }`: `abandoned` is false again after `markConsistent()`;
//   `ended` is `{ pid, threadId, isOfStore }` of the holder that ended inside if this thread has to report it (-1 where that is not known),
//   else null; `fence` is a bigint if `fence` was asked for (of `{ fence: true }`; it may be left out), else null: of an exclusive lock
//   larger than all before of this name, of a shared one not below that of the last exclusive one; `markConsistent()` is called for exclusive ones only; `unlock()` is synchronous, is called once, and must not throw.
//   `key` may be there, for users; and `number`, the binding's, by which it goes back beside a wait. `noteIn(isIn)` may be there: false while others are waited for that were asked for together with
//   it, so that neither the end of the thread nor that of the process leaves a mark. One that can be lost has also `lost`, null or `{ reason, heldMs }`; `onLost`, which it calls when it may have been; and its
//   `unlock()` returns false if it was.
//
// The face calls `tryLock` first, then `lockAsync` or `lockBlocking`, never twice at the same time for an exclusive name. Several
// shared holders of one name may be in; `outer` counts them, and they share what it opened. When the thread of a holder ends,
// `outer` unlocks by itself, and leaves its mark, before the engine lets the next of the process in: what a thread holds
// by the binding goes back in that order (`ended()` in `src/clients/mod.rs`).

/** Locks of this process: the engine's queue is all there is. */
exports.processBackend = { scope: 'process', space: 0, canSteal: true, canShare: true, outer: null };

/** Locks of this machine, or of all who can write in a directory; `directory` is undefined for the user's own. */
exports.machineBackend = (directory) => require('./machine.js').backendFor(directory);

/** Locks of all who use the same store; a new backend for each manager, which can be closed. */
exports.storeBackend = (store) => require('../stores/outer.js').storeBackend(store);
