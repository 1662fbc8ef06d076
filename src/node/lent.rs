//! The binding's part of holds that guards lend to waits, and of giving holds back. Whatever happens to the stack of JS, these
//! functions can be called: nothing of JS runs in them.

use napi::{Env, bindgen_prelude::*};
use napi_derive::napi;

use super::ask::Ask;
use super::process::engine;
use super::record::Field;
use super::status::{self, AWAY, LOST};
use super::thread::JsThread;
use super::views::JsWord;
use crate::clients::lent::{LentHolds, Whereabouts};

/// Asks this thread's lent holds of one that is known by its word, and a number or an era.
fn ask<T>(env: Env, word: &JsWord, key: f64, ask: impl FnOnce(&mut LentHolds, usize, u64) -> T) -> Result<T> {
    JsThread::with(env, |thread| ask(&mut thread.holds, word.0.address(), key as u64))
}

/// The guard that holds the word lends its hold to a wait, which ends this era. Returns the hold's number.
#[napi(catch_unwind, ts_args_type = "word: Int32Array, era: number")]
pub fn depart(env: Env, word: JsWord, era: f64) -> Result<f64> {
    ask(env, &word, era, LentHolds::depart).map(|number| number as f64)
}

/// The hold `number` is with its guard again. Returns as `hasAway`.
#[napi(catch_unwind, ts_args_type = "word: Int32Array, number: number")]
pub fn arrive(env: Env, word: JsWord, number: f64) -> Result<bool> {
    ask(env, &word, number, LentHolds::arrive)
}

/// The hold `number` will not come back.
#[napi(catch_unwind, ts_args_type = "word: Int32Array, number: number")]
pub fn lose(env: Env, word: JsWord, number: f64) -> Result<()> {
    ask(env, &word, number, LentHolds::lose)
}

/// Whether the hold `number` is away, and its guard not spent.
#[napi(catch_unwind, ts_args_type = "word: Int32Array, number: number")]
pub fn is_away(env: Env, word: JsWord, number: f64) -> Result<bool> {
    ask(env, &word, number, |holds, address, number| holds.is_away(address, number))
}

/// Remembers the guard that holds the word, which ends this era. Returns the hold's number.
#[napi(catch_unwind, ts_args_type = "word: Int32Array, era: number")]
pub fn watch_hold(env: Env, word: JsWord, era: f64) -> Result<f64> {
    ask(env, &word, era, LentHolds::watch).map(|number| number as f64)
}

/// The guard of the hold `number` need not be remembered any more. Returns as `hasAway`.
#[napi(catch_unwind, ts_args_type = "word: Int32Array, number: number")]
pub fn unwatch_hold(env: Env, word: JsWord, number: f64) -> Result<bool> {
    ask(env, &word, number, LentHolds::unwatch)
}

/// Whether the hold `number`, which is watched, is with its guard.
#[napi(catch_unwind, ts_args_type = "word: Int32Array, number: number")]
pub fn is_here(env: Env, word: JsWord, number: f64) -> Result<bool> {
    ask(env, &word, number, |holds, address, number| holds.is_here(address, number))
}

/// Whether any hold of this thread is away, lost, or watched.
#[napi(catch_unwind)]
pub fn has_away(env: Env) -> Result<bool> {
    JsThread::with(env, |thread| !thread.holds.is_empty())
}

/// Whether the hold of the guard that was made in `era` is lost.
#[napi(catch_unwind, ts_args_type = "word: Int32Array, era: number")]
pub fn is_lost(env: Env, word: JsWord, era: f64) -> Result<bool> {
    ask(env, &word, era, |holds, address, era| holds.find(address, era).0 == Whereabouts::Lost)
}

/// Frees the hold of the guard that was made in `era`, if it is here. Returns a status; after `RELEASED` and `LOST` the guard is
/// spent. `ask` is what it was acquired by, a guarded mutex if it is left out. The rest is as for `release`.
#[napi(catch_unwind, ts_args_type = "word: Int32Array, era: number, ask?: Ask")]
pub fn unlock_guard(env: Env, word: JsWord, era: f64, ask: Option<Ask>) -> Result<i32> {
    JsThread::with(env, |thread| match thread.holds.find(word.0.address(), era as u64).0 {
        Whereabouts::Away => AWAY,
        Whereabouts::Lost => {
            thread.holds.end(word.0.address(), era as u64);
            LOST
        }
        Whereabouts::Here => unlock_here(thread, word, era, ask),
    })
}

/// As `unlockGuard`, but the guard is spent whatever comes of it: a hold that is away, whose number is `NUMBER` then, does not come
/// back.
#[napi(catch_unwind, ts_args_type = "word: Int32Array, era: number, ask?: Ask")]
pub fn end_guard(env: Env, word: JsWord, era: f64, ask: Option<Ask>) -> Result<i32> {
    JsThread::with(env, |thread| {
        let (whereabouts, number) = thread.holds.find(word.0.address(), era as u64);
        if whereabouts == Whereabouts::Here {
            return unlock_here(thread, word, era, ask);
        }
        thread.holds.end(word.0.address(), era as u64);
        thread.record.set(Field::Number, number as f64);
        if whereabouts == Whereabouts::Away { AWAY } else { LOST }
    })
}

fn unlock_here(thread: &mut JsThread, word: JsWord, era: f64, ask: Option<Ask>) -> i32 {
    let ask = ask.unwrap_or(Ask::MutexGuarded);
    let agent = thread.event_loop.agent();
    let code = status::of_release(engine().release(agent, ask.primitive(), word.0, ask.hold(1, 0)));
    if code == status::RELEASED {
        thread.holds.end(word.0.address(), era as u64);
    }
    code
}

/// Makes this thread's loop turn and drain.
#[napi(catch_unwind)]
pub fn wake(env: Env) -> Result<()> {
    JsThread::with(env, |thread| thread.wake())
}
