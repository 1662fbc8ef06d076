//! The binding's part of holds that guards lend to waits, and of giving holds back. Whatever happens to the stack of JS, these
//! functions can be called: nothing of JS runs in them.

use napi::{Env, bindgen_prelude::*};
use napi_derive::napi;

use super::ask::Ask;
use super::record::Field;
use super::status::{AWAY, HERE, LOST, RELEASED};
use super::thread::JsThread;
use super::views::JsWord;
use crate::clients::lent::{LentHolds, Whereabouts};

impl JsThread {
    /// Changes which holds are lent, and notes whether any are.
    pub fn change_lent<T>(&mut self, change: impl FnOnce(&mut LentHolds) -> T) -> T {
        let result = change(&mut self.holds);
        self.record.set(Field::HasAway, f64::from(u8::from(!self.holds.is_empty())));
        result
    }

    /// Returns where the hold of the guard is that was made in `era`, and notes its number.
    fn find_lent(&mut self, word: &JsWord, era: f64) -> i32 {
        let (whereabouts, number) = self.holds.find(word.0.address(), era as u64);
        self.record.set(Field::Number, number as f64);
        match whereabouts {
            Whereabouts::Here => HERE,
            Whereabouts::Away => AWAY,
            Whereabouts::Lost => LOST,
        }
    }

    /// Ends the hold of the guard that was made in `era` by `end`, if it is here; else returns where it is. After `RELEASED` the guard
    /// is spent. Without `era` the hold is the thread's own, or of what is never lent.
    pub fn end_lent(&mut self, word: &JsWord, era: Option<f64>, end: impl FnOnce(&mut Self) -> i32) -> i32 {
        let Some(era) = era else { return end(self) };
        let whereabouts = self.find_lent(word, era);
        let code = if whereabouts == HERE { end(self) } else { whereabouts };
        if code == RELEASED {
            self.spend(word, era);
        }
        code
    }

    /// The guard that was made in `era` is spent.
    pub fn spend(&mut self, word: &JsWord, era: f64) {
        self.change_lent(|holds| holds.end(word.0.address(), era as u64));
    }
}

/// Returns where the hold is of the guard that was made in `era`, which may be the number of a hold: `HERE`, `AWAY` or `LOST`.
/// `NUMBER` is that of the hold; 0: nothing is known of it, so that it is here, or its guard is spent.
#[napi(catch_unwind, ts_args_type = "word: Int32Array, era: number")]
pub fn whereabouts(env: Env, word: JsWord, era: f64) -> Result<i32> {
    JsThread::with(env, |thread| thread.find_lent(&word, era))
}

/// The wait that the hold `number` was lent to is over: it is with its guard again if `isHeld`, and lost if not.
#[napi(catch_unwind, ts_args_type = "word: Int32Array, number: number, isHeld: boolean")]
pub fn settle_hold(env: Env, word: JsWord, number: f64, is_held: bool) -> Result<()> {
    let settle = if is_held { LentHolds::arrive } else { LentHolds::lose };
    JsThread::with(env, |thread| thread.change_lent(|holds| settle(holds, word.0.address(), number as u64)))
}

/// Remembers the guard that holds the word, which ends this era. Returns the hold's number.
#[napi(catch_unwind, ts_args_type = "word: Int32Array, era: number")]
pub fn watch_hold(env: Env, word: JsWord, era: f64) -> Result<f64> {
    JsThread::with(env, |thread| thread.change_lent(|holds| holds.watch(word.0.address(), era as u64)) as f64)
}

/// The guard of the hold `number` need not be remembered any more.
#[napi(catch_unwind, ts_args_type = "word: Int32Array, number: number")]
pub fn unwatch_hold(env: Env, word: JsWord, number: f64) -> Result<()> {
    JsThread::with(env, |thread| thread.change_lent(|holds| holds.unwatch(word.0.address(), number as u64)))
}

/// As `release` for a guard, which is spent whatever comes of it: a hold that is away, whose number is `NUMBER` then, does not come
/// back.
#[napi(catch_unwind, ts_args_type = "word: Int32Array, ask: Ask, era: number")]
pub fn end_guard(env: Env, word: JsWord, ask: Ask, era: f64) -> Result<i32> {
    JsThread::with(env, |thread| {
        let code = thread.release(&word, ask, 1, 0, Some(era));
        if code == AWAY {
            thread.spend(&word, era);
        }
        code
    })
}

/// Makes this thread's loop turn and drain.
#[napi(catch_unwind)]
pub fn wake(env: Env) -> Result<()> {
    JsThread::with(env, |thread| thread.wake())
}
