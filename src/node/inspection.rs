//! The binding's part of `inspect()`.

use napi_derive::napi;

use super::lot;
use super::word::JsWord;
use crate::lot::WaiterView;

/// One waiter as `inspect()` shows it.
#[napi(object)]
pub struct Waiter {
    /// The thread that waits.
    pub thread_id: u32,
    /// `blocking` or `async`.
    pub kind: String,
    /// For how long, in milliseconds.
    pub waited_ms: f64,
}

/// A mutex and its queue as `inspect()` shows them.
#[napi(object, use_nullable = true)]
pub struct Inspection {
    /// Whether anybody, dead or alive, holds it.
    pub locked: bool,
    /// The thread that holds it.
    pub owner_thread_id: Option<u32>,
    /// Whether a holder's thread ended inside.
    pub abandoned: bool,
    /// Who waits, in order.
    pub waiters: Vec<Waiter>,
}

/// A snapshot for people.
#[napi(catch_unwind, ts_args_type = "word: Int32Array")]
pub fn inspect(word: JsWord) -> Inspection {
    let view = lot().inspect(word.0);
    let waiter = |waiter: WaiterView| Waiter {
        thread_id: waiter.thread,
        kind: if waiter.is_blocking { "blocking".into() } else { "async".into() },
        waited_ms: waiter.waited.as_secs_f64() * 1e3,
    };
    Inspection {
        locked: view.word.owner() != 0,
        owner_thread_id: view.owner,
        abandoned: view.word.is_abandoned() || view.owner_is_dead,
        waiters: view.waiters.into_iter().map(waiter).collect(),
    }
}
