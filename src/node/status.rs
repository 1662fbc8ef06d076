//! The status of a call, as a number; what else there is to know of it is in the thread's record (see `record.rs`).

use napi_derive::napi;

use super::blocking_call::BlockingCall;
use super::process::engine;
use super::record::Field;
use super::thread::JsThread;
use crate::engine::{Corrupt, Failure, Outcome, Reply, ReplyError, State};

/// Without what it was for: held by another, or the time was over.
#[napi]
pub const TIMED_OUT: i32 = 0;
/// With what it was for.
#[napi]
pub const GRANTED: i32 = 1;
/// The same, and `ENDED_THREAD` says which thread ended inside.
#[napi]
pub const GRANTED_ABANDONED: i32 = 2;
/// The wait could never end; `CYCLE` says why.
#[napi]
pub const DEADLOCK: i32 = 3;
/// The words hold what this package did not write.
#[napi]
pub const CORRUPT: i32 = 4;
/// The thread is being terminated.
#[napi]
pub const INTERRUPTED: i32 = 5;
/// The background thread could not be started.
#[napi]
pub const NO_CLOCK: i32 = 6;
/// This thread does not hold it in this way.
#[napi]
pub const NOT_OWNER: i32 = 7;
/// Released.
#[napi]
pub const RELEASED: i32 = 8;
/// There is nothing to wait for.
#[napi]
pub const REFUSED: i32 = 9;
/// Not yet; the wait is under `TOKEN`.
#[napi]
pub const PENDING: i32 = 10;
/// It failed: `takeTold()` says why.
#[napi]
pub const FAILED: i32 = 11;
/// The guard's hold is lent to a wait.
#[napi]
pub const AWAY: i32 = 12;
/// The guard's hold was lent to a wait that could not lock the word again; or the hold in a store was lost, and `LOSS` says how.
#[napi]
pub const LOST: i32 = 13;
/// Released, but the file of the lock was removed while it was held.
#[napi]
pub const REMOVED: i32 = 14;
/// The guard's hold is with it.
#[napi]
pub const HERE: i32 = 15;
/// No wait of this thread is over.
#[napi]
pub const NOTHING: i32 = -1;
/// Nor is any here, but its loop has slept for one: the next turn is to be told, by `turned()`.
#[napi]
pub const SLEPT: i32 = -2;

/// Returns the status of a wait that is over.
pub fn of_outcome(outcome: Outcome, thread: &mut JsThread) -> i32 {
    match outcome {
        Outcome::TimedOut => TIMED_OUT,
        Outcome::Refused { found } => {
            thread.record.set(Field::Parties, f64::from(found));
            REFUSED
        }
        Outcome::Granted { abandoned_by, found } => {
            thread.abandoned_by = abandoned_by;
            thread.record.set(Field::Given, f64::from(found));
            let ended = abandoned_by.and_then(|ended| engine().agents.thread(ended));
            thread.record.set(Field::EndedThread, ended.map_or(-1.0, f64::from));
            if abandoned_by.is_some() { GRANTED_ABANDONED } else { GRANTED }
        }
    }
}

/// Returns the status of a wait that has blocked this thread.
pub fn of_wait(outcome: Result<Outcome, Failure>, call: &BlockingCall, thread: &mut JsThread) -> i32 {
    match outcome {
        Ok(outcome) => of_outcome(outcome, thread),
        Err(failure) => of_failure(failure, call, thread),
    }
}

/// Returns the status of a call that failed.
pub fn of_failure(failure: Failure, call: &BlockingCall, thread: &mut JsThread) -> i32 {
    let (status, cycle) = match &failure {
        Failure::Corrupt => return CORRUPT,
        Failure::Interrupted if !call.is_deadlocked() => return INTERRUPTED,
        Failure::Interrupted => (DEADLOCK, call.deadlock()),
        Failure::Deadlock(cycle) => (DEADLOCK, cycle.as_slice()),
    };
    thread.record.set_cycle(cycle);
    thread.cycle_kinds = cycle.iter().map(|hop| hop.kind).collect();
    status
}

/// Returns the status of a request.
pub fn of_reply(reply: Result<Reply, ReplyError>, thread: &mut JsThread) -> i32 {
    match reply {
        Ok(Reply::Pending { token, owner, found }) => {
            thread.record.set(Field::Token, f64::from(token));
            thread.record.set(Field::Found, f64::from(found));
            thread.record.set(Field::Parties, 0.0);
            thread.note_owner(owner);
            PENDING
        }
        Ok(Reply::Now(outcome)) => {
            thread.record.set(Field::Found, -1.0);
            of_outcome(outcome, thread)
        }
        Err(ReplyError::Corrupt) => CORRUPT,
        Err(ReplyError::NotHeld) => NOT_OWNER,
        Err(ReplyError::NoClock(_)) => NO_CLOCK,
    }
}

/// Returns the status of a release.
pub fn of_release(released: Result<bool, Corrupt>) -> i32 {
    match released {
        Ok(true) => RELEASED,
        Ok(false) => NOT_OWNER,
        Err(Corrupt) => CORRUPT,
    }
}

/// Returns the status of a change.
pub fn of_change(changed: Result<Option<State>, Corrupt>) -> i32 {
    of_release(changed.map(|state| state.is_some()))
}
