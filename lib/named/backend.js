// What a LockManager stands on: a backend, one for each scope. The face (`face.js`: options, promises, callbacks, HeldLock)
// calls nothing else, and it alone knows the engine's table of names.
//
// Every request first goes through the engine's queue of this process, keyed by (space, name). Whoever is granted that then
// takes the backend's `outer` lock, if there is one (the file lock of the machine scope), before its callback runs; so one
// request of a process at a time waits outside, for all of them, or several shared ones, which the engine lets in together.
// Releases go the other way: first `outer`, then the engine.
//
// A backend is `{ scope, space, canSteal, outer }`:
//
// - `scope`: 'process' or 'machine', for messages;
// - `space`: a number, which tells the names of this backend from those of others in the engine's table; 0 is the process scope.
//   `binding.nameSpace(key)` returns the same new number for the same string, in all threads: "device:inode" of a directory;
// - `canSteal`: whether `steal` is possible; else it is refused with a NotSupportedError;
// - `outer`: null, or an object with
//   - `tryLock(name, mode)`: the held lock (see below), or null if it cannot be had at once. Throws coded errors;
//   - `lockAsync(name, mode, timeout, ref)`: `{ promise, cancel() }`. The promise is fulfilled with the held lock, or with null
//     when the time (milliseconds, Infinity for ever) is over, and rejected with coded errors. `cancel()` withdraws the request
//     (its signal has aborted): afterwards the promise is left pending or fulfilled with null, and nothing is held; false if
//     it is too late, since the promise is fulfilled already;
//   - `lockBlocking(name, mode, timeout)`: the held lock, or null when the time is over; blocks the thread in slices, as the
//     engine does. Throws coded errors;
//   - `query()`: `[{ name, mode, clientId, pid, threadId, heldMs }]`, holders in other processes.
//   A held lock is `{ abandoned, ended, markConsistent(), unlock() }`: `abandoned` is false again after `markConsistent()`; `ended`
//   is `{ pid, threadId }` of the holder that ended inside if this thread has to report it (-1 where that is not known), else null;
//   `markConsistent()` is called for exclusive ones only; `unlock()` is synchronous, is called once, and must not throw.
//
// The face calls `tryLock` first, then `lockAsync` or `lockBlocking`, never twice at the same time for an exclusive name. Several
// shared holders of one name may be in; `outer` counts them, and they share what it opened. When the thread of a holder ends,
// `outer` unlocks by itself, and leaves its mark, before the engine lets the next of the process in: the hook by which it
// learns of the end has to be added after the thread was attached to the engine (Node runs them last in, first out).

/** Locks of this process: the engine's queue is all there is. */
exports.processBackend = { scope: 'process', space: 0, canSteal: true, outer: null };

/** Locks of this machine, or of all who can write in a directory; `directory` is undefined for the user's own. */
exports.machineBackend = (directory) => require('./machine.js').backendFor(directory);
