//! The binding's part of events.

use napi::{Env, bindgen_prelude::*};
use napi_derive::napi;

use super::ask::Ask;
use super::thread::JsThread;
use super::word::JsWord;
use super::{engine, status};
use crate::primitives::event::{AUTO_RESET_EVENT, Event, MANUAL_RESET_EVENT};

fn event(ask: Ask) -> &'static Event {
    match ask {
        Ask::AutoResetEvent => &AUTO_RESET_EVENT,
        _ => &MANUAL_RESET_EVENT,
    }
}

/// Sets an event. Returns a status. The rest is as for `release`.
#[napi(catch_unwind, ts_args_type = "words: Int32Array, ask: Ask")]
pub fn set_event(env: Env, words: JsWord, ask: Ask) -> Result<i32> {
    JsThread::with(env, |thread| {
        let set = engine().set_event(thread.event_loop.agent(), event(ask), words.0);
        status::of_release(set.map(|()| true))
    })
}

/// Resets an event. Returns a status.
#[napi(catch_unwind, ts_args_type = "words: Int32Array, ask: Ask")]
pub fn reset_event(env: Env, words: JsWord, ask: Ask) -> Result<i32> {
    JsThread::with(env, |thread| {
        let reset = engine().reset_event(thread.event_loop.agent(), event(ask), words.0);
        status::of_release(reset.map(|()| true))
    })
}
