//! The binding's part of `Condition`.

use napi::{Env, bindgen_prelude::*};
use napi_derive::napi;

use super::ask::Ask;
use super::process::{engine, limit};
use super::record::Field;
use super::status;
use super::thread::JsThread;
use super::views::{JsIntegers, JsWord};
use crate::clients::condition::{ConditionFailure, ConditionLock};
use crate::clients::lent::LentHolds;

/// Frees the word, which was acquired by `ask`, blocks this thread until a notification, and locks the word again. Returns the status of that;
/// `IS_NOTIFIED` says whether it was notified. `NOT_OWNER`: the word was not held, and nothing was changed.
/// `era`: that of the guard's hold, which ends; 0: the hold is the thread's own. A guard's hold that does not come back is lost.
/// If this thread has pending waits, the caller has arranged for `drain` to be called soon.
#[napi(catch_unwind, ts_args_type = "condition: Int32Array, word: Int32Array, ask: Ask, timeout: number, era: number")]
pub fn wait_unlocked(env: Env, condition: JsIntegers, word: JsWord, ask: Ask, timeout: f64, era: f64) -> Result<i32> {
    let location = condition.location(0.0)?;
    let address = word.0.address();
    let lent = JsThread::with(env, |thread| {
        (era > 0.0).then(|| thread.change_lent(|holds| holds.depart(address, era as u64)))
    })?;
    let lock = ConditionLock { primitive: ask.primitive(), place: word.0, hold: ask.hold(1, 0) };
    let (outcome, call) =
        JsThread::block(env, |agent, call| lock.wait(engine(), agent, location, limit(timeout), call))?;
    JsThread::with(env, |thread| {
        thread.note_wait(&call);
        thread.note_ended(word.0);
        if let Some(number) = lent {
            let is_lost = matches!(outcome, Err(ConditionFailure::NotLocked(_)));
            let settle = if is_lost { LentHolds::lose } else { LentHolds::arrive };
            thread.change_lent(|holds| settle(holds, address, number));
        }
        match outcome {
            Ok((is_notified, outcome)) => {
                thread.record.set(Field::IsNotified, f64::from(u8::from(is_notified)));
                status::of_outcome(outcome, thread)
            }
            Err(ConditionFailure::NotHeld) => status::NOT_OWNER,
            Err(ConditionFailure::Corrupt) => status::CORRUPT,
            Err(ConditionFailure::NotLocked(failure)) => status::of_failure(failure, &call, thread),
        }
    })
}

/// Frees the word and waits for a notification. Returns a status.
/// The rest is as for `waitUnlocked`; once the wait is settled and the word is held again, `accept` is due, and `settleHold` for a
/// guard's hold, whose number is `NUMBER`.
#[napi(catch_unwind, ts_args_type = "condition: Int32Array, word: Int32Array, ask: Ask, timeout: number, era: number")]
pub fn wait_unlocked_async(
    env: Env,
    condition: JsIntegers,
    word: JsWord,
    ask: Ask,
    timeout: f64,
    era: f64,
) -> Result<i32> {
    let location = condition.location(0.0)?;
    let address = word.0.address();
    JsThread::with(env, |thread| {
        let reply = thread.wait_released(location, condition.value, word, ask, limit(timeout))?;
        if reply.is_ok() && era > 0.0 {
            let number = thread.change_lent(|holds| holds.depart(address, era as u64));
            thread.record.set(Field::Number, number as f64);
        }
        Ok(status::of_reply(reply, thread))
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
