//! Acquiring and releasing, the same for every primitive: `ask` says what is asked of which.

use std::ptr::NonNull;

use napi::{Env, bindgen_prelude::*};
use napi_derive::napi;

use super::ask::Ask;
use super::outer::of_told;
use super::process::{engine, limit, limit_with};
use super::record::Field;
use super::status::{self, LOST};
use super::thread::JsThread;
use super::views::JsWord;
use crate::engine::{Change, Corrupt, Limit, Request, Slot};

/// Blocks this thread until it has what it asks for: `count` of `of`, which are permits, entries, a party; 1 of 0 where nothing is
/// counted. Returns a status.
#[napi(catch_unwind, ts_args_type = "words: Int32Array, ask: Ask, timeout: number, count: number, of: number")]
pub fn acquire(env: Env, words: JsWord, ask: Ask, timeout: f64, count: u32, of: u32) -> Result<i32> {
    let request = Request::Hold(ask.hold(count, of));
    let (outcome, call) = JsThread::block(env, |agent, call| {
        engine().wait(agent, ask.primitive(), words.0, request, limit(timeout), call)
    })?;
    JsThread::with(env, |thread| {
        thread.note_wait(&call);
        thread.note_ended(words.0);
        status::of_wait(outcome, &call, thread)
    })
}

/// As `acquire`, but gets what can be had at once, or nothing.
#[napi(catch_unwind, ts_args_type = "words: Int32Array, ask: Ask, count: number, of: number")]
pub fn try_acquire(env: Env, words: JsWord, ask: Ask, count: u32, of: u32) -> Result<i32> {
    let request = Request::Hold(ask.hold(count, of));
    JsThread::with(env, |thread| {
        let agent = thread.event_loop.agent();
        let outcome = engine().wait(agent, ask.primitive(), words.0, request, Limit::Once, &mut || true);
        thread.note_ended(words.0);
        outcome.map_or(status::CORRUPT, |outcome| status::of_outcome(outcome, thread))
    })
}

/// As `acquire`, but queues for what cannot be had at once. `hasSignal`: the wait may be aborted.
#[napi(
    catch_unwind,
    ts_args_type = "words: Int32Array, ask: Ask, timeout: number, hasSignal: boolean, count: number, of: number"
)]
pub fn acquire_async(
    env: Env,
    words: JsWord,
    ask: Ask,
    timeout: f64,
    has_signal: bool,
    count: u32,
    of: u32,
) -> Result<i32> {
    JsThread::with(env, |thread| {
        let request = Request::Hold(ask.hold(count, of));
        let limit = limit_with(timeout, has_signal);
        let reply = thread.wait_async(ask.primitive(), words.0, words.1, request, limit)?;
        thread.note_ended(words.0);
        Ok(status::of_reply(reply, thread))
    })?
}

impl JsThread {
    /// Releases what this thread holds; see `release`.
    pub fn release(&mut self, words: &JsWord, ask: Ask, count: u32, of: u32, era: Option<f64>) -> i32 {
        let code = self.end_lent(words, era, |thread| {
            let agent = thread.event_loop.agent();
            status::of_release(engine().release(agent, ask.primitive(), words.0, ask.hold(count, of)))
        });
        if let (LOST, Some(era)) = (code, era) {
            self.spend(words, era);
        }
        code
    }
}

/// Releases what this thread holds; with `era`, by the guard that was made then, if its hold is here. Returns a status; after
/// `RELEASED` and `LOST` the guard is spent. If this thread has pending waits, the caller has arranged for `drain` to be called soon:
/// the thread's own loop is not woken.
#[napi(catch_unwind, ts_args_type = "words: Int32Array, ask: Ask, count: number, of: number, era?: number")]
pub fn release(env: Env, words: JsWord, ask: Ask, count: u32, of: u32, era: Option<f64>) -> Result<i32> {
    JsThread::with(env, |thread| thread.release(&words, ask, count, of, era))
}

/// Changes beside acquiring and releasing.
#[napi(js_name = "Change")]
#[derive(Clone, Copy)]
pub enum JsChange {
    /// Sets an event.
    Set,
    /// Makes it as it was in the beginning: an event, a barrier.
    Reset,
    /// Breaks a barrier, as a party of `of` does that comes and goes.
    Break,
    /// Adds permits, or what a latch counts; `count` may be negative there.
    Add,
    /// This thread has done what it runs once.
    Finish,
    /// Makes the exclusive hold of `ask` shared.
    Downgrade,
    /// Makes the shared hold of `ask`, which this thread's slot says that it has, exclusive.
    Upgrade,
    /// Takes the mark of abandonment off what this thread holds.
    MarkConsistent,
}

/// Makes a change. Returns a status: `NOT_OWNER` if that cannot be, and nothing was changed. `FOUND` shows what is there now. With
/// `era` it ends the hold of the guard that was made then, which is not lent afterwards. The rest is as for `release`.
#[napi(
    catch_unwind,
    ts_args_type = "words: Int32Array, ask: Ask, change: Change, count: number, of: number, era?: number"
)]
pub fn change(
    env: Env,
    words: JsWord,
    ask: Ask,
    change: JsChange,
    count: i32,
    of: u32,
    era: Option<f64>,
) -> Result<i32> {
    let (primitive, owner) = (ask.primitive(), ask.hold(1, 0).owner());
    let change = match change {
        JsChange::Set => Change::Set,
        JsChange::Reset => Change::Reset,
        JsChange::Break => Change::Break(of),
        JsChange::Add => Change::Add { count, of },
        JsChange::Finish => Change::Finish,
        JsChange::Downgrade => Change::Downgrade(owner),
        JsChange::Upgrade => Change::Upgrade(owner),
        JsChange::MarkConsistent => Change::MarkConsistent,
    };
    let make = |thread: &mut JsThread| {
        let changed = engine().change(thread.event_loop.agent(), primitive, words.0, change);
        if let Ok(Some(state)) = changed {
            thread.record.set(Field::Found, f64::from(primitive.found(state)[0]));
        }
        status::of_change(changed)
    };
    JsThread::with(env, |thread| thread.end_lent(&words, era, make))
}

/// Takes back what was acquired a moment ago, since the code that asked will not learn of it. An ended holder that is still to be
/// reported will be by the next.
#[napi(catch_unwind, ts_args_type = "words: Int32Array, ask: Ask, count: number, of: number")]
pub fn give_back(env: Env, words: JsWord, ask: Ask, count: u32, of: u32) -> Result<()> {
    JsThread::with(env, |thread| {
        let abandoned_by = thread.abandoned_by.take();
        let agent = thread.event_loop.agent();
        engine().give_back(agent, ask.primitive(), words.0, ask.hold(count, of), abandoned_by);
    })
}

/// The event loop never sleeps for this wait, which was queued just now.
#[napi(catch_unwind)]
pub fn stay_awake(env: Env, token: u32) -> Result<()> {
    JsThread::with(env, |thread| thread.event_loop.stay_awake(token))
}

/// Takes a pending wait back.
#[napi(catch_unwind)]
pub fn cancel(env: Env, token: u32) -> Result<bool> {
    JsThread::with(env, |thread| thread.cancel(token))?
}

/// The next wait of this thread that is over, by its status; `NOTHING` or `SLEPT` if there is none. `TOKEN` and `IS_FOR_HOLD` say which.
/// Calling it again says that the one before has been settled.
#[napi(catch_unwind)]
pub fn next(env: Env) -> Result<i32> {
    JsThread::with(env, |thread| {
        let Some(settled) = thread.next()? else {
            return Ok(if thread.event_loop.has_parked() { status::SLEPT } else { status::NOTHING });
        };
        thread.record.set(Field::Token, f64::from(settled.token));
        thread.record.set(Field::IsForHold, f64::from(u8::from(settled.is_for_hold)));
        thread.note_ended(settled.place);
        if let Some(told) = thread.event_loop.take_told() {
            return Ok(of_told(told, thread));
        }
        Ok(match settled.outcome {
            Err(Corrupt) => status::CORRUPT,
            Ok(outcome) => status::of_outcome(outcome, thread),
        })
    })
    // A callback that was queued before the thread's end: nothing is left to settle.
    .unwrap_or(Ok(status::NOTHING))
}

/// This thread's event loop turns: it may sleep once more.
#[napi(catch_unwind)]
pub fn turned(env: Env) -> Result<()> {
    JsThread::with(env, |thread| thread.event_loop.turned())
}

/// Gives back the hold, or passes on the notification, that `next()` returned last: it is not wanted any more.
#[napi(catch_unwind)]
pub fn refuse(env: Env) -> Result<()> {
    JsThread::with(env, JsThread::refuse)?
}

/// Takes in the slot of this thread's register of holds for a primitive: two counts, zero now, in memory that the thread keeps.
#[napi(catch_unwind, ts_args_type = "words: Int32Array, ask: Ask, slot: Int32Array")]
pub fn add_slot(env: Env, words: JsWord, ask: Ask, slot: JsWord) -> Result<()> {
    JsThread::with(env, |thread| {
        let counts: NonNull<[crate::sync::AtomicU32; 2]> = NonNull::from(slot.0.word()).cast();
        // SAFETY: `lib/engine/register.js` gives two words of a chunk that its thread keeps until it ends, when the engine
        // forgets its slots, or until the slot is freed.
        let slot = unsafe { Slot::new(thread.event_loop.agent().id, counts) };
        engine().add_slot(ask.primitive(), words.0, slot);
    })
}

/// Gives up the slot for a primitive; false if it is in use.
#[napi(catch_unwind, ts_args_type = "words: Int32Array, ask: Ask")]
pub fn free_slot(env: Env, words: JsWord, ask: Ask) -> Result<bool> {
    JsThread::with(env, |thread| engine().free_slot(ask.primitive(), words.0, thread.event_loop.agent().id))
}
