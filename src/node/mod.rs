//! The Node-API binding: the only place that names napi. It converts, calls the core, and converts back;
//! arguments are checked and errors are made in `lib/`, where `lib/load/binary.js` alone loads it.
//!
//! Free functions with plain numbers, because a call costs what its conversions cost.

mod anchors;
mod condition;
mod copies;
mod futex;
mod holds;
mod inspection;
mod location;
mod thread;
mod typed_array;
mod word;

use std::sync::OnceLock;
use std::time::Duration;

use napi::{Env, bindgen_prelude::*};
use napi_derive::napi;

use crate::engine::deadline::Clock;
use crate::engine::{Corrupt, Engine, Failure, HoldOwner, Limit, Outcome, Patience, Reply, ReplyError};
use crate::primitives::mutex;
use thread::{BlockingCall, JsThread};
use word::JsWord;

/// Not acquired: held by somebody else, or the time was over.
#[napi]
pub const NOT_ACQUIRED: i32 = 0;
/// Acquired.
#[napi]
pub const ACQUIRED: i32 = 1;
/// Acquired, and `abandonedBy()` says which thread ended inside.
#[napi]
pub const ACQUIRED_ABANDONED: i32 = 2;
/// The wait could never end; `deadlockThread()` and `deadlockByteOffset()` say why.
#[napi]
pub const DEADLOCK: i32 = 3;
/// The word holds what no sablock wrote.
#[napi]
pub const CORRUPT: i32 = 4;
/// The thread is being terminated.
#[napi]
pub const INTERRUPTED: i32 = 5;
/// The background thread could not be started.
#[napi]
pub const NO_CLOCK: i32 = 6;
/// This thread does not hold the word in this way.
#[napi]
pub const NOT_OWNER: i32 = 7;
/// Unlocked.
#[napi]
pub const UNLOCKED: i32 = 8;
/// The codes are below this: `next()` answers a token times this plus a code.
#[napi]
pub const CODES: i32 = 16;

/// The engine of the process.
fn engine() -> &'static Engine {
    static ENGINE: OnceLock<Engine> = OnceLock::new();
    ENGINE.get_or_init(|| Engine::new(256, first_agent_id(), patience(), Box::new(Clock::new(engine))))
}

#[cfg(not(feature = "ablation"))]
fn patience() -> Patience {
    Patience::default()
}

/// For the bench: `SABLOCK_ABLATION` takes a part of the design away (see [`Patience::ablated`]).
#[cfg(feature = "ablation")]
fn patience() -> Patience {
    std::env::var("SABLOCK_ABLATION").ok().and_then(|name| Patience::ablated(&name)).unwrap_or_default()
}

/// A random start above 2^16 leaves three quarters of the 2^26 ids at least, and tells a word of another process, or of another library, apart.
fn first_agent_id() -> u32 {
    use std::hash::{BuildHasher, Hasher};
    let random = std::hash::RandomState::new().build_hasher().finish();
    (1 << 16) + 1 + (random % (1 << 24)) as u32
}

/// Milliseconds from JS: `Infinity` for ever, zero or less one try.
fn limit(timeout: f64) -> Limit {
    if timeout <= 0.0 {
        return Limit::Once;
    }
    Duration::try_from_secs_f64(timeout / 1e3).map_or(Limit::Endless, Limit::after)
}

fn hold_owner(guarded: bool) -> HoldOwner {
    if guarded { HoldOwner::Guard } else { HoldOwner::Thread }
}

fn code(outcome: Outcome, thread: &mut JsThread) -> i32 {
    match outcome {
        Outcome::TimedOut | Outcome::Refused => NOT_ACQUIRED,
        Outcome::Granted { abandoned_by } => {
            thread.abandoned_by = abandoned_by;
            if abandoned_by.is_some() { ACQUIRED_ABANDONED } else { ACQUIRED }
        }
    }
}

fn failure_code(failure: Failure, call: &BlockingCall, thread: &mut JsThread) -> i32 {
    match failure {
        Failure::Corrupt => CORRUPT,
        Failure::Interrupted if call.is_deadlocked() => DEADLOCK,
        Failure::Interrupted => INTERRUPTED,
        Failure::Deadlock(cycle) => {
            thread.deadlock = cycle;
            DEADLOCK
        }
    }
}

fn release_code(released: std::result::Result<bool, Corrupt>) -> i32 {
    match released {
        Ok(true) => UNLOCKED,
        Ok(false) => NOT_OWNER,
        Err(Corrupt) => CORRUPT,
    }
}

/// In a lock word: the bits that name the holder, an agent's id; 0: nobody.
#[napi]
pub const OWNER: u32 = mutex::OWNER;
/// In a lock word: a guard owns the hold.
#[napi]
pub const GUARDED: u32 = mutex::GUARDED;
/// In a lock word: a holder's thread ended inside.
#[napi]
pub const ABANDONED: u32 = mutex::ABANDONED;

/// What two copies of the package must have in common to work together.
#[napi]
pub const PROTOCOL: u32 = copies::PROTOCOL;

/// Of the package: its JavaScript works with a binary of its own version only.
#[napi]
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Another copy of this addon in the process.
#[napi(object)]
pub struct OtherCopy {
    /// Its file.
    pub path: String,
    /// Its `PROTOCOL`.
    pub protocol: u32,
}

/// The copy that was loaded first, with which all others must work; `null` if it is this one.
#[napi(catch_unwind)]
pub fn first_copy() -> Option<OtherCopy> {
    // The agents' ids and the queues live in statics: they must outlast the last worker that uses them.
    retain_current_module_for_unload_safety();
    let first = copies::first().filter(|copy| !copy.is_this)?;
    Some(OtherCopy { path: first.path.to_string_lossy().into_owned(), protocol: first.protocol })
}

/// Takes this environment in (see `JsThread::attach`): answers the state object that is to be used, of this call or of an earlier
/// one. `environment` is an object or function that the environment has one of, whatever loads the package there.
#[napi(
    catch_unwind,
    ts_args_type = "threadId: number, environment: object, thread: object, drain: () => void, pause: () => void"
)]
pub fn attach<'env>(
    env: Env,
    thread_id: u32,
    environment: Unknown<'env>,
    thread: Object<'env>,
    drain: Unknown<'env>,
    pause: Unknown<'env>,
) -> Result<Unknown<'env>> {
    JsThread::attach(env, thread_id, environment, thread, drain, pause)
}

/// Blocks this thread until the word is its own. Answers a code.
#[napi(catch_unwind, ts_args_type = "word: Int32Array, timeout: number, guarded: boolean")]
pub fn lock(env: Env, word: JsWord, timeout: f64, guarded: bool) -> Result<i32> {
    let (agent, mut call) =
        JsThread::with(env, |thread| (thread.event_loop.agent().clone(), thread.blocking_call(env)))?;
    // Nothing of the thread's state is borrowed here: a debugger may run this package during the pause.
    let outcome = engine().lock(&agent, word.0, hold_owner(guarded), limit(timeout), &mut call);
    JsThread::with(env, |thread| {
        thread.note_wait(&call);
        match outcome {
            Ok(outcome) => code(outcome, thread),
            Err(failure) => failure_code(failure, &call, thread),
        }
    })
}

/// Takes the word if it is free and not reserved. Answers a code.
#[napi(catch_unwind, ts_args_type = "word: Int32Array, guarded: boolean")]
pub fn try_lock(env: Env, word: JsWord, guarded: bool) -> Result<i32> {
    JsThread::with(env, |thread| {
        let owner = hold_owner(guarded);
        match engine().lock(thread.event_loop.agent(), word.0, owner, Limit::Once, &mut || true) {
            Ok(outcome) => code(outcome, thread),
            Err(_) => CORRUPT,
        }
    })
}

/// Frees the word. Answers a code. If this thread has pending waits, the caller has arranged for `drain` to be called soon:
/// the thread's own loop is not woken.
#[napi(catch_unwind, ts_args_type = "word: Int32Array, guarded: boolean")]
pub fn unlock(env: Env, word: JsWord, guarded: bool) -> Result<i32> {
    JsThread::with(env, |thread| release_code(engine().unlock(thread.event_loop.agent(), word.0, hold_owner(guarded))))
}

/// Locks the word or queues for it. Answers the token of a pending wait, or -1 minus a code.
#[napi(catch_unwind, ts_args_type = "word: Int32Array, timeout: number, guarded: boolean")]
pub fn lock_async(env: Env, word: JsWord, timeout: f64, guarded: bool) -> Result<i32> {
    JsThread::with(env, |thread| {
        let answer = match thread.lock_async(word, hold_owner(guarded), limit(timeout))? {
            Ok(Reply::Pending(token)) => token as i32,
            Ok(Reply::Now(outcome)) => -1 - code(outcome, thread),
            Err(ReplyError::Corrupt) => -1 - CORRUPT,
            Err(ReplyError::NotHeld) => -1 - NOT_OWNER,
            Err(ReplyError::NoClock(_)) => -1 - NO_CLOCK,
        };
        Ok(answer)
    })?
}

/// Takes a pending wait back.
#[napi(catch_unwind)]
pub fn cancel(env: Env, token: u32) -> Result<bool> {
    JsThread::with(env, |thread| thread.cancel(token))?
}

/// The next wait of this thread that is over: its token times `CODES`, plus a code; -1 if there is none.
/// Asking again says that the one before has been settled.
#[napi(catch_unwind)]
pub fn next(env: Env) -> Result<f64> {
    JsThread::with(env, |thread| {
        let Some(settled) = thread.next()? else { return Ok(-1.0) };
        let code = match settled.outcome {
            Err(Corrupt) => CORRUPT,
            Ok(outcome) if settled.is_for_hold => code(outcome, thread),
            Ok(outcome) => futex::outcome_code(outcome),
        };
        Ok(f64::from(settled.token) * f64::from(CODES) + f64::from(code))
    })
    // A callback that was queued before the thread's end: nothing is left to settle.
    .unwrap_or(Ok(-1.0))
}

/// Gives back the hold, or passes on the notification, that `next()` answered last: nobody waits for it.
#[napi(catch_unwind)]
pub fn refuse(env: Env) -> Result<()> {
    JsThread::with(env, |thread| thread.event_loop.refuse())
}

/// Whether two views stand for the same word.
#[napi(catch_unwind, ts_args_type = "word: Int32Array, other: Int32Array")]
pub fn is_same(word: JsWord, other: JsWord) -> bool {
    word.0 == other.0
}

/// Whether pending waits keep the event loop alive from now on.
#[napi(catch_unwind)]
pub fn keep_alive(env: Env, on: bool) -> Result<()> {
    JsThread::with(env, |thread| thread.keep_alive(env, on))
}

/// Takes the mark of abandonment off a word that this thread holds. Answers a code.
#[napi(catch_unwind, ts_args_type = "word: Int32Array")]
pub fn mark_consistent(env: Env, word: JsWord) -> Result<i32> {
    JsThread::with(env, |thread| release_code(engine().mark_consistent(thread.event_loop.agent().id, word.0)))
}

/// After `ACQUIRED_ABANDONED`: the `threadId` of the thread that ended inside.
#[napi(catch_unwind)]
pub fn abandoned_by(env: Env) -> Result<Option<u32>> {
    JsThread::with(env, |thread| engine().agents.thread(thread.abandoned_by?))
}

/// What `abandonedBy()` answers is reported: the next one to get the word need not do it.
#[napi(catch_unwind)]
pub fn reported(env: Env) -> Result<()> {
    JsThread::with(env, |thread| thread.abandoned_by = None)
}

/// After `DEADLOCK`: the thread of a step of the cycle, which begins with this thread; -1 beyond its end.
/// Numbers and not an array of objects, which cannot be made any more in a thread that is ending.
#[napi(catch_unwind)]
pub fn deadlock_thread(env: Env, step: u32) -> Result<f64> {
    JsThread::with(env, |thread| thread.deadlock.get(step as usize).map_or(-1.0, |hop| f64::from(hop.thread)))
}

/// After `DEADLOCK`: the byte offset of the mutex that this thread of the cycle waits for; -1 beyond its end.
#[napi(catch_unwind)]
pub fn deadlock_byte_offset(env: Env, step: u32) -> Result<f64> {
    JsThread::with(env, |thread| thread.deadlock.get(step as usize).map_or(-1.0, |hop| hop.byte_offset as f64))
}
