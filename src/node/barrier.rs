//! The binding's part of barriers.

use napi::{Env, bindgen_prelude::*};
use napi_derive::napi;

use super::thread::JsThread;
use super::word::JsWord;
use super::{engine, status};

/// Breaks a barrier for those who wait, and makes it new. Returns a status. The rest is as for `release`.
#[napi(catch_unwind, ts_args_type = "words: Int32Array")]
pub fn reset_barrier(env: Env, words: JsWord) -> Result<i32> {
    JsThread::with(env, |thread| {
        let reset = engine().reset_barrier(thread.event_loop.agent(), words.0);
        status::of_release(reset.map(|()| true))
    })
}

/// Breaks a barrier, as a party does that comes and goes. Returns a status. The rest is as for `release`.
#[napi(catch_unwind, ts_args_type = "words: Int32Array")]
pub fn break_barrier(env: Env, words: JsWord) -> Result<i32> {
    JsThread::with(env, |thread| {
        let broken = engine().break_barrier(thread.event_loop.agent(), words.0);
        status::of_release(broken.map(|()| true))
    })
}
