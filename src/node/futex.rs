//! The binding's part of `wait`, `notify` and `waitAsync`.

use napi::{Env, bindgen_prelude::*};
use napi_derive::napi;

use super::location::{JsExpected, JsIntegers};
use super::thread::JsThread;
use super::{INTERRUPTED, NO_CLOCK, engine, limit};
use crate::engine::{Outcome, Reply};

/// Told of a notification.
#[napi]
pub const NOTIFIED: i32 = 9;
/// The location held another value.
#[napi]
pub const NOT_EQUAL: i32 = 10;
/// The time of a wait for a notification was over.
#[napi]
pub const TIMED_OUT: i32 = 11;

/// What JS gets for it.
pub fn outcome_code(outcome: Outcome) -> i32 {
    match outcome {
        Outcome::Granted { .. } => NOTIFIED,
        Outcome::Refused => NOT_EQUAL,
        Outcome::TimedOut => TIMED_OUT,
    }
}

/// Blocks this thread until a notification, if the element at `index` holds `value`. Answers a code.
#[napi(
    catch_unwind,
    ts_args_type = "integers: Int32Array | BigInt64Array, index: number, value: number | bigint, timeout: number"
)]
pub fn wait(env: Env, integers: JsIntegers, index: f64, value: JsExpected, timeout: f64) -> Result<i32> {
    let location = integers.location(index)?;
    let (agent, mut call) =
        JsThread::with(env, |thread| (thread.event_loop.agent().clone(), thread.blocking_call(env)))?;
    // Nothing of the thread's state is borrowed here: a debugger may run this package during the pause.
    let outcome = engine().wait_while(&agent, location, value.0, limit(timeout), &mut call);
    Ok(outcome.map_or(INTERRUPTED, outcome_code))
}

/// Tells the first `count` who wait for the element at `index`; answers how many they were.
#[napi(catch_unwind, ts_args_type = "integers: Int32Array | BigInt64Array, index: number, count: number")]
pub fn notify(integers: JsIntegers, index: f64, count: f64) -> Result<f64> {
    // Saturates: Infinity is everybody.
    Ok(engine().notify(integers.location(index)?, count as usize) as f64)
}

/// Waits for a notification if the element at `index` holds `value`. Answers the token of a pending wait, or -1 minus a code.
#[napi(
    catch_unwind,
    ts_args_type = "integers: Int32Array | BigInt64Array, index: number, value: number | bigint, timeout: number"
)]
pub fn wait_async(env: Env, integers: JsIntegers, index: f64, value: JsExpected, timeout: f64) -> Result<i32> {
    let location = integers.location(index)?;
    JsThread::with(env, |thread| {
        let answer = match thread.wait_async(location, integers.value, value.0, limit(timeout))? {
            Ok(Reply::Pending(token)) => token as i32,
            Ok(Reply::Now(outcome)) => -1 - outcome_code(outcome),
            Err(_) => -1 - NO_CLOCK,
        };
        Ok(answer)
    })?
}

/// How many wait for the element at `index`, for tests and diagnosis.
#[napi(catch_unwind, ts_args_type = "integers: Int32Array | BigInt64Array, index: number")]
pub fn waiting(integers: JsIntegers, index: f64) -> Result<f64> {
    Ok(engine().waiting(integers.location(index)?) as f64)
}
