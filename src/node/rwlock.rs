//! The binding's part of readers-writer locks.

use napi::{Env, bindgen_prelude::*};
use napi_derive::napi;

use super::holds::{AWAY, LOST};
use super::thread::JsThread;
use super::word::JsWord;
use super::{engine, hold_owner, status};
use crate::engine::HoldOwner;
use crate::engine::holds::Whereabouts;

/// Turns the exclusive hold of the thread itself into a shared one. Returns a status. The rest is as for `release`.
#[napi(catch_unwind, ts_args_type = "words: Int32Array")]
pub fn downgrade(env: Env, words: JsWord) -> Result<i32> {
    JsThread::with(env, |thread| {
        status::of_release(engine().downgrade(thread.event_loop.agent(), words.0, HoldOwner::Thread))
    })
}

/// As `downgrade`, for the guard that was made in `era`. Returns `AWAY` or `LOST` if its hold is not here.
#[napi(catch_unwind, ts_args_type = "words: Int32Array, era: number")]
pub fn downgrade_guard(env: Env, words: JsWord, era: f64) -> Result<i32> {
    JsThread::with(env, |thread| {
        let (address, era) = (words.0.address(), era as u64);
        match thread.holds.find(address, era).0 {
            Whereabouts::Away => return AWAY,
            Whereabouts::Lost => return LOST,
            Whereabouts::Here => {}
        }
        let code = status::of_release(engine().downgrade(thread.event_loop.agent(), words.0, HoldOwner::Guard));
        if code == status::RELEASED {
            // What it holds from now on is in the register, and cannot be lent to a wait.
            thread.holds.end(address, era);
        }
        code
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
