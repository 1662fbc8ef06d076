//! The binding's part of once.

use napi::{Env, bindgen_prelude::*};
use napi_derive::napi;

use super::thread::JsThread;
use super::word::JsWord;
use super::{engine, status};

/// What this thread has run is done. Returns a status. The rest is as for `release`.
#[napi(catch_unwind, ts_args_type = "words: Int32Array")]
pub fn finish_once(env: Env, words: JsWord) -> Result<i32> {
    JsThread::with(env, |thread| status::of_release(engine().finish_once(thread.event_loop.agent(), words.0)))
}
