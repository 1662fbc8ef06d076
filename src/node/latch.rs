//! The binding's part of latches.

use napi::{Env, bindgen_prelude::*};
use napi_derive::napi;

use super::engine;
use super::thread::JsThread;
use super::word::JsWord;

/// Changes the count of a latch. Returns what is left; -1 if that is no count, and nothing was changed; -2 if the word holds
/// what this package did not write. The rest is as for `release`.
#[napi(catch_unwind, ts_args_type = "words: Int32Array, by: number")]
pub fn change_latch(env: Env, words: JsWord, by: i32) -> Result<i32> {
    JsThread::with(env, |thread| {
        match engine().change_latch(thread.event_loop.agent(), words.0, i64::from(by)) {
            // A count has 29 bits.
            Ok(left) => left.map_or(-1, |left| left as i32),
            Err(_) => -2,
        }
    })
}
