//! The binding's part of readers-writer locks.

use napi::{Env, bindgen_prelude::*};
use napi_derive::napi;

use super::process::engine;
use super::status::{self, AWAY, LOST};
use super::thread::JsThread;
use super::views::JsWord;
use crate::clients::lent::Whereabouts;
use crate::engine::{Change, HoldOwner};
use crate::primitives::rwlock::RWLOCK;

/// As `change` by `Downgrade`, for the guard that was made in `era`. Returns `AWAY` or `LOST` if its hold is not here.
#[napi(catch_unwind, ts_args_type = "words: Int32Array, era: number")]
pub fn downgrade_guard(env: Env, words: JsWord, era: f64) -> Result<i32> {
    JsThread::with(env, |thread| {
        let (address, era) = (words.0.address(), era as u64);
        match thread.holds.find(address, era).0 {
            Whereabouts::Away => return AWAY,
            Whereabouts::Lost => return LOST,
            Whereabouts::Here => {}
        }
        let code = status::of_change(engine().change(
            thread.event_loop.agent(),
            &RWLOCK,
            words.0,
            Change::Downgrade(HoldOwner::Guard),
        ));
        if code == status::RELEASED {
            // Later holds are in the register, and cannot be lent to a wait.
            thread.holds.end(address, era);
        }
        code
    })
}
