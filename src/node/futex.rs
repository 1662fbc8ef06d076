//! The binding's part of `wait`, `notify` and `waitAsync`.

use napi::{Env, bindgen_prelude::*};
use napi_derive::napi;

use super::process::{engine, limit};
use super::status;
use super::thread::JsThread;
use super::views::{JsExpected, JsIntegers};
use crate::engine::Request;
use crate::primitives::futex::FUTEX;

/// Blocks this thread until a notification, if the element at `index` holds `value`. Returns a status.
#[napi(
    catch_unwind,
    ts_args_type = "integers: Int32Array | BigInt64Array, index: number, value: number | bigint, timeout: number"
)]
pub fn wait(env: Env, integers: JsIntegers, index: f64, value: JsExpected, timeout: f64) -> Result<i32> {
    let (location, request) = (integers.location(index)?, Request::NotificationWhile(value.0));
    let (outcome, call) =
        JsThread::block(env, |agent, call| engine().wait(agent, &FUTEX, location, request, limit(timeout), call))?;
    JsThread::with(env, |thread| status::of_wait(outcome, &call, thread))
}

/// Notifies the first `count` who wait for the element at `index`; returns how many they were.
#[napi(catch_unwind, ts_args_type = "integers: Int32Array | BigInt64Array, index: number, count: number")]
pub fn notify(integers: JsIntegers, index: f64, count: f64) -> Result<f64> {
    // Saturates: Infinity is everybody.
    Ok(engine().notify(integers.location(index)?, count as usize) as f64)
}

/// Waits for a notification if the element at `index` holds `value`. Returns a status.
#[napi(
    catch_unwind,
    ts_args_type = "integers: Int32Array | BigInt64Array, index: number, value: number | bigint, timeout: number"
)]
pub fn wait_async(env: Env, integers: JsIntegers, index: f64, value: JsExpected, timeout: f64) -> Result<i32> {
    let location = integers.location(index)?;
    JsThread::with(env, |thread| {
        let request = Request::NotificationWhile(value.0);
        let reply = thread.wait_async(&FUTEX, location, integers.value, request, limit(timeout))?;
        Ok(status::of_reply(reply, thread))
    })?
}

/// Returns the number of waiters for the element at `index`, for tests and diagnosis.
#[napi(catch_unwind, ts_args_type = "integers: Int32Array | BigInt64Array, index: number")]
pub fn waiting(integers: JsIntegers, index: f64) -> Result<f64> {
    Ok(engine().waiting(integers.location(index)?) as f64)
}
