//! The binding's part of semaphores.

use napi::{Env, bindgen_prelude::*};
use napi_derive::napi;

use super::thread::JsThread;
use super::word::JsWord;
use super::{engine, status};

/// Adds permits to a semaphore that has `of` in all. Returns a status: `REFUSED` if they were more than there can be. The rest
/// is as for `release`.
#[napi(catch_unwind, ts_args_type = "words: Int32Array, count: number, of: number")]
pub fn add_permits(env: Env, words: JsWord, count: u32, of: u32) -> Result<i32> {
    JsThread::with(env, |thread| match engine().add_permits(thread.event_loop.agent(), words.0, count, of) {
        Ok(true) => status::RELEASED,
        Ok(false) => status::REFUSED,
        Err(_) => status::CORRUPT,
    })
}
