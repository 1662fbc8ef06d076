//! The binding's part of readers-writer locks.

use napi::{Env, bindgen_prelude::*};
use napi_derive::napi;

use super::thread::JsThread;
use super::word::JsWord;
use super::{engine, hold_owner, status};

/// Turns this thread's exclusive hold into a shared one. Returns a status. The rest is as for `release`.
#[napi(catch_unwind, ts_args_type = "words: Int32Array, guarded: boolean")]
pub fn downgrade(env: Env, words: JsWord, guarded: bool) -> Result<i32> {
    JsThread::with(env, |thread| {
        status::of_release(engine().downgrade(thread.event_loop.agent(), words.0, hold_owner(guarded)))
    })
}

/// Turns this thread's shared hold, which its slot says that it has, into an exclusive one. Returns a status: `NOT_OWNER` if
/// there are other readers, or somebody waits.
#[napi(catch_unwind, ts_args_type = "words: Int32Array, guarded: boolean")]
pub fn try_upgrade(env: Env, words: JsWord, guarded: bool) -> Result<i32> {
    JsThread::with(env, |thread| {
        status::of_release(engine().try_upgrade(thread.event_loop.agent(), words.0, hold_owner(guarded)))
    })
}

/// Takes the mark of abandonment off an RwLock that this thread writes under. Returns a status.
#[napi(catch_unwind, ts_args_type = "words: Int32Array")]
pub fn mark_rwlock_consistent(env: Env, words: JsWord) -> Result<i32> {
    JsThread::with(env, |thread| {
        status::of_release(engine().mark_rwlock_consistent(thread.event_loop.agent().id, words.0))
    })
}
