//! The binding's part of `Condition`.

use napi::{Env, bindgen_prelude::*};
use napi_derive::napi;

use super::futex::{NOTIFIED, TIMED_OUT};
use super::location::JsIntegers;
use super::thread::JsThread;
use super::word::JsWord;
use super::{CODES, CORRUPT, NO_CLOCK, NOT_OWNER, code, engine, failure_code, hold_owner, limit};
use crate::engine::{Hold, ReplyError};
use crate::primitives::condition::ConditionFailure;

/// Frees the word, blocks this thread until a notification, and locks the word again. Answers the outcome's code times
/// `CODES`, plus that of the lock; or, below `CODES`, why the word is not held, or never was.
/// If this thread has pending waits, the caller has arranged for `drain` to be called soon.
#[napi(catch_unwind, ts_args_type = "condition: Int32Array, word: Int32Array, guarded: boolean, timeout: number")]
pub fn wait_unlocked(env: Env, condition: JsIntegers, word: JsWord, guarded: bool, timeout: f64) -> Result<i32> {
    let location = condition.location(0.0)?;
    let (agent, mut call) =
        JsThread::with(env, |thread| (thread.event_loop.agent().clone(), thread.blocking_call(env)))?;
    let hold = Hold::exclusive(hold_owner(guarded));
    // Nothing of the thread's state is borrowed here: a debugger may run this package during the pause.
    let outcome = engine().wait_released(&agent, location, word.0, hold, limit(timeout), &mut call);
    JsThread::with(env, |thread| {
        thread.note_wait(&call);
        match outcome {
            Ok((is_notified, outcome)) => {
                let notified = if is_notified { NOTIFIED } else { TIMED_OUT };
                notified * CODES + code(outcome, thread)
            }
            Err(ConditionFailure::NotHeld) => NOT_OWNER,
            Err(ConditionFailure::Corrupt) => CORRUPT,
            Err(ConditionFailure::NotLocked(failure)) => failure_code(failure, &call, thread),
        }
    })
}

/// Frees the word and waits for a notification. Answers the token of the pending wait, or -1 minus a code.
/// The rest is as for `waitUnlocked`; once the wait is settled and the word is held again, `accept` is due.
#[napi(catch_unwind, ts_args_type = "condition: Int32Array, word: Int32Array, guarded: boolean, timeout: number")]
pub fn wait_unlocked_async(env: Env, condition: JsIntegers, word: JsWord, guarded: bool, timeout: f64) -> Result<i32> {
    let location = condition.location(0.0)?;
    JsThread::with(env, |thread| {
        let answer = match thread.wait_released(location, condition.value, word, hold_owner(guarded), limit(timeout))? {
            Ok(token) => token as i32,
            Err(ReplyError::NotHeld) => -1 - NOT_OWNER,
            Err(ReplyError::Corrupt) => -1 - CORRUPT,
            Err(ReplyError::NoClock(_)) => -1 - NO_CLOCK,
        };
        Ok(answer)
    })?
}

/// The thread's code knows of the notification that this wait got, and holds its word again; or, if it does not hold it,
/// the notification is passed on.
#[napi(catch_unwind)]
pub fn accept(env: Env, token: u32, is_held: bool) -> Result<()> {
    JsThread::with(env, |thread| {
        if is_held {
            thread.event_loop.accept(token);
        } else {
            thread.event_loop.drop_wait(token);
        }
    })
}
