import type { Barrier } from './barrier';
import type { DeadlockError, LockLostError } from './errors';
import type { HoldMode } from './inspection';
import type { Latch } from './latch';
import type { Mutex } from './mutex';
import type { HeldLock } from './named';
import type { Once } from './once';
import type { RwLock } from './rwlock';
import type { Semaphore } from './semaphore';
import type { Store } from './stores';

/** The lock that a message is about: of all channels but `sablock:store`. */
export interface DiagnosticsSubject {
  /** The lock, or other primitive, as the object that this thread used: of `read` and `write` their {@link RwLock}. */
  lock: Mutex | RwLock | Semaphore | Latch | Barrier | Once | HeldLock;
  /** The class of `lock`. A lock of a {@link LockTable} is a {@link Mutex}. */
  lockKind: 'Mutex' | 'RwLock' | 'Semaphore' | 'Latch' | 'Barrier' | 'Once' | 'HeldLock';
  /** The same as `lock` if that is a mutex, else `null`. */
  mutex: Mutex | null;
  /** Its name; `null` without one. */
  name: string | null;
  /** Its byte offset; -1 for a lock of a {@link LockManager}. */
  byteOffset: number;
}

/**
 * The messages that are published on the channels of `node:diagnostics_channel`, by the channel's name.
 *
 * Published at once in the thread that waited or found it: subscribe in each thread that you are interested in, before or after
 * this package is loaded there. Without subscribers no message is made, and no clock is read. A subscriber runs between the
 * lock and the code that waits for it (for `sablock:long-hold` in a thread that is blocked, even inside its sleep), so let it
 * be short, and never lock in it: a thread that is blocked could not unlock, and gets a {@link DeadlockError} instead of the
 * lock. What it throws becomes an uncaught error, and changes nothing about the lock. It runs in the asynchronous context of
 * the code that waits, so that AsyncLocalStorage returns there what it returns in that code (of several waits of a thread for
 * one lock, `sablock:long-hold` takes the first).
 *
 * With the types of Node.js, `subscribe` and `unsubscribe` of `node:diagnostics_channel` know these messages.
 *
 * @example
 * ```js
 * const { subscribe } = require('node:diagnostics_channel');
 * subscribe('sablock:contended', ({ byteOffset, ownerThreadId, waitedMs }) => {
 *   if (waitedMs > 10) console.warn(`waited ${waitedMs} ms at ${byteOffset} for thread ${ownerThreadId}`);
 * });
 * ```
 */
export interface DiagnosticsMessages {
  /**
   * A wait for a lock, for permits or for the turn of a {@link Once} is over, unless by an error. Published to those who were
   * subscribed when it began. Waits for latches, events, barriers and conditions are not: they wait for something to happen,
   * not for others. A request for several names publishes a message for each name that it had to wait for. A
   * {@link lockAll} publishes one for each lock that it had to wait for, once it is over itself, with its own outcome. For a name
   * in a store, only a wait behind this process's own requests is published.
   */
  'sablock:contended': DiagnosticsSubject & {
    /** `'blocking'`: this thread has slept. `'async'`: a promise was pending. */
    kind: 'blocking' | 'async';
    /**
     * The `threadId` of the thread that held the lock alone when the wait began; `null` if none did: it was free, about to be
     * handed on, or read; and of permits.
     */
    ownerThreadId: number | null;
    /** Only where another process held the lock of a name alone: that process, whose thread `ownerThreadId` is. */
    ownerPid?: number;
    /** The length of the wait, in milliseconds. */
    waitedMs: number;
    /** The end of the wait; after `'acquired'` this thread holds the lock while the message is published. */
    outcome: 'acquired' | 'timed-out' | 'aborted';
  };
  /**
   * A thread that waits for the lock (or in a `Condition.wait` with it, while others wait for it) has seen one exclusive hold
   * last for 100 ms. Published again each time that this has doubled, for as long as the thread waits.
   * Each waiting thread that has subscribers publishes its own. Read holds and permits are not published.
   */
  'sablock:long-hold': DiagnosticsSubject & {
    /** The `threadId` of the holder's thread: perhaps this one's, if another of its tasks holds the lock. */
    ownerThreadId: number;
    /** Only where another process holds the lock of a name: that process, whose thread `ownerThreadId` is. */
    ownerPid?: number;
    /**
     * For how long this thread has seen it, in milliseconds. The hold is older: by the time before this thread
     * waited, and by up to 25 ms, which is how often it looks (a busy event loop looks later).
     */
    heldAtLeastMs: number;
  };
  /**
   * A thread has ended with a hold. Of an exclusive hold, it is published in the thread that gets it next, as the warning
   * `SABLOCK_ABANDONED`. Read holds, permits, entries and memberships have gone back, and nothing is in doubt: published in the
   * thread of the next waiter that gets in, or, if none waits, by the next call on that primitive that cannot be served by its
   * word alone. Each is published once, by a thread that had made a primitive other than a mutex in that buffer before the end:
   * for one that comes to the memory later, the end may have been in other memory at that address. If a thousand such threads
   * end before the next call, only some are. If the memory is freed meanwhile, the message may be published for whatever uses
   * that memory next.
   */
  'sablock:abandoned': DiagnosticsSubject & {
    /** The `threadId` of the thread that ended. */
    ownerThreadId: number;
    /** The mode in which that held it. */
    mode: Exclude<HoldMode, 'passage'>;
  };
  /** This thread is about to get a {@link DeadlockError}; `lock` is what it would have waited for. */
  'sablock:deadlock': DiagnosticsSubject & {
    /** As {@link DeadlockError.cycle}, which begins with this thread. */
    cycle: DeadlockError['cycle'];
    /**
     * Only for a deadlock of tasks, which the lock doctor (`sablock/doctor`) finds: whether none of its waits can end, or that is
     * only likely.
     */
    certainty?: 'certain' | 'likely';
    /** Only for a deadlock of tasks: its waits, with the call sites of who waits and who holds. */
    waits?: import('./entries/doctor.js').DeadlockWait[];
  };
  /** A named lock was lost while this thread held it; see {@link LockLostError}. Published once, on the thread that held it. */
  'sablock:lost': DiagnosticsSubject & Pick<LockLostError, 'fence' | 'reason' | 'heldMs'>;
  /**
   * A change of how a store is reached. Published on the thread that started the hidden thread with the connection: the main
   * thread if that has loaded this package, else the one that asked first.
   */
  'sablock:store': {
    /** The kind of the store. */
    store: Store['kind'];
    /** Its namespace. */
    namespace: string;
    /**
     * `'unreachable'`: a connection has failed or ended, or the server says that it does not serve now; published once, until the
     * store is reached again, which is `'reconnected'` after the first time.
     * `'pooler'`: a pooler in session mode stands between this process and PostgreSQL.
     */
    event: 'connected' | 'unreachable' | 'reconnected' | 'pooler';
    /** Why; `null` unless `'unreachable'`. */
    error: Error | null;
  };
}

/** A subscriber of the channel of that name. */
export type DiagnosticsListener<Name extends keyof DiagnosticsMessages> = (
  message: DiagnosticsMessages[Name],
  name: string | symbol,
) => void;
