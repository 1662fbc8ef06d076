//! The binding's part of `inspect()`, of `stats()`, and of what is published on diagnostics channels.

use napi::Env;
use napi::bindgen_prelude::{Either, Null, Result};
use napi_derive::napi;

use super::ask::Ask;
use super::process::engine;
use super::record::Field;
use super::thread::JsThread;
use super::views::JsWord;
use crate::engine::{LockView, Primitive, WaiterView};
use crate::memory::Place;
use crate::primitives::futex::FUTEX;
use crate::primitives::mutex::{MUTEX, Word};
use crate::primitives::semaphore::FAIR_SEMAPHORE;

/// One waiter as `inspect()` shows it.
#[napi(object)]
pub struct JsWaiter {
    /// The thread that waits.
    pub thread_id: u32,
    /// `blocking` or `async`.
    pub kind: String,
    /// The mode in which it will hold.
    pub mode: String,
    /// For how long, in milliseconds.
    pub waited_ms: f64,
}

impl From<WaiterView> for JsWaiter {
    fn from(waiter: WaiterView) -> Self {
        Self {
            thread_id: waiter.thread,
            kind: if waiter.is_blocking { "blocking".into() } else { "async".into() },
            mode: waiter.mode.into(),
            waited_ms: waiter.waited.as_secs_f64() * 1e3,
        }
    }
}

/// A holder as `inspect()` shows it.
#[napi(object)]
pub struct JsHolder {
    /// The thread that holds.
    pub thread_id: u32,
    /// The mode in which it holds.
    pub mode: String,
    /// The number of its holds.
    pub count: u32,
}

/// The holders of a primitive, and its waiters.
#[napi(object)]
pub struct Occupancy {
    /// The holders.
    pub holders: Vec<JsHolder>,
    /// The waiters, in order.
    pub waiters: Vec<JsWaiter>,
}

impl Occupancy {
    fn new(primitive: &dyn Primitive, view: LockView) -> Self {
        let owner = view.owner.map(|thread_id| JsHolder { thread_id, mode: "exclusive".into(), count: 1 });
        let mode = primitive.about().registered.unwrap_or("passage");
        let registered =
            view.registered.into_iter().map(|(thread_id, count)| JsHolder { thread_id, mode: mode.into(), count });
        Self {
            holders: owner.into_iter().chain(registered).collect(),
            waiters: view.waiters.into_iter().map(JsWaiter::from).collect(),
        }
    }
}

/// A mutex and its queue as `inspect()` shows them.
#[napi(object, use_nullable = true)]
pub struct Inspection {
    /// Whether anybody holds it, or a thread that held it has ended.
    pub locked: bool,
    /// The thread that holds it.
    pub owner_thread_id: Option<u32>,
    /// Whether a holder's thread ended inside.
    pub abandoned: bool,
    /// The holders.
    pub holders: Vec<JsHolder>,
    /// The waiters, in order.
    pub waiters: Vec<JsWaiter>,
}

impl From<LockView> for Inspection {
    fn from(view: LockView) -> Self {
        let word = Word::from(view.state);
        let (owner_thread_id, abandoned) = (view.owner, word.is_abandoned() || view.owner_has_ended);
        let Occupancy { holders, waiters } = Occupancy::new(&MUTEX, view);
        Self { locked: word.owner() != 0, owner_thread_id, abandoned, holders, waiters }
    }
}

/// A primitive as its `inspect()` shows it.
fn shown(primitive: &dyn Primitive, view: LockView) -> Either<Inspection, Occupancy> {
    if primitive.is(&MUTEX) { Either::A(view.into()) } else { Either::B(Occupancy::new(primitive, view)) }
}

/// A snapshot for people. Without `ask` it is of a condition.
#[napi(catch_unwind, ts_args_type = "words: Int32Array, ask?: Ask")]
pub fn inspect(words: JsWord, ask: Option<Ask>) -> Either<Inspection, Occupancy> {
    let primitive = ask.map_or(&FUTEX as &dyn Primitive, Ask::primitive);
    shown(primitive, engine().inspect(primitive, words.0))
}

/// Returns the holders of a primitive, for messages.
#[napi(catch_unwind, ts_args_type = "words: Int32Array, ask: Ask")]
pub fn holders(words: JsWord, ask: Ask) -> Vec<JsHolder> {
    let primitive = ask.primitive();
    Occupancy::new(primitive, engine().holders(primitive, words.0)).holders
}

/// A primitive with waiters, as `inspectAll()` shows it.
#[napi(object)]
pub struct JsQueued {
    /// The result of `address()` for the same words.
    pub address: f64,
    /// The name of its class.
    pub kind: String,
    /// Its place in the buffer.
    pub byte_offset: f64,
    /// The rest: of a mutex all that its `inspect()` shows.
    pub inspection: Either<Inspection, Occupancy>,
}

/// A snapshot of every primitive with waiters.
#[napi(catch_unwind)]
pub fn inspect_all() -> Vec<JsQueued> {
    let queued = |(primitive, place, view): (&'static dyn Primitive, Place, LockView)| JsQueued {
        // Below 2^53 on every system that Node runs on.
        address: place.address() as f64,
        kind: primitive.name().into(),
        byte_offset: place.byte_offset as f64,
        inspection: shown(primitive, view),
    };
    engine().inspect_all().into_iter().map(queued).collect()
}

/// The class of what is waited for at the word; `null` if nothing is.
#[napi(catch_unwind, ts_args_type = "word: Int32Array")]
pub fn queued_kind(word: JsWord) -> Either<String, Null> {
    engine().queued_at(word.0).map_or(Either::B(Null), |primitive| {
        let order = if primitive.is(&FAIR_SEMAPHORE) { "fair " } else { "" };
        Either::A(format!("{order}{}", primitive.name()))
    })
}

/// Returns what tells the word from every other of the process.
#[napi(catch_unwind, ts_args_type = "word: Int32Array")]
pub fn address(word: JsWord) -> f64 {
    word.0.address() as f64
}

/// The result of `stats()`.
#[napi(object)]
pub struct JsStats {
    /// Acquisitions after a wait.
    pub contended: f64,
    /// The number of them that were handed straight to a blocked thread.
    pub handovers: f64,
    /// The number of times that a mutex was kept for an event loop that did not come in time.
    pub passed_by: f64,
    /// Waits whose time was over.
    pub timeouts: f64,
    /// Waits that were taken back.
    pub aborts: f64,
    /// Deadlocks found.
    pub deadlocks: f64,
    /// Acquisitions of what an ended thread had held.
    pub abandoned: f64,
    /// Ended threads whose registered holds went back, for each primitive.
    pub ended: f64,
    /// In milliseconds.
    pub longest_wait_ms: f64,
    /// Threads that wait.
    pub blocked: f64,
    /// Promises that wait.
    pub pending: f64,
}

/// The counts of the process.
#[napi(catch_unwind)]
pub fn stats() -> JsStats {
    let stats = engine().stats();
    JsStats {
        contended: stats.contended as f64,
        handovers: stats.handovers as f64,
        passed_by: stats.passed_by as f64,
        timeouts: stats.timeouts as f64,
        aborts: stats.aborts as f64,
        deadlocks: stats.deadlocks as f64,
        abandoned: stats.abandoned as f64,
        ended: stats.ended as f64,
        longest_wait_ms: stats.longest_wait.as_secs_f64() * 1e3,
        blocked: stats.blocked as f64,
        pending: stats.pending as f64,
    }
}

/// A hold of an ended thread, which went back.
#[napi(object)]
pub struct JsEndedHold {
    /// The thread that ended.
    pub thread_id: u32,
    /// The mode in which it held.
    pub mode: String,
}

/// A moment, for `takeEnded`.
#[napi(catch_unwind)]
pub fn moment() -> f64 {
    engine().moment() as f64
}

/// Whose holds of a primitive went back because their threads ended, after the moment since which this thread knows its memory.
/// Each is returned once in the process.
#[napi(catch_unwind, ts_args_type = "words: Int32Array, ask: Ask, since: number")]
pub fn take_ended(words: JsWord, ask: Ask, since: f64) -> Vec<JsEndedHold> {
    let primitive = ask.primitive();
    let mode = primitive.about().registered.unwrap_or("passage");
    let ended = engine().take_ended(primitive, words.0, since as u64).into_iter();
    ended
        .map(|agent| JsEndedHold { thread_id: engine().agents.thread(agent).unwrap_or_default(), mode: mode.into() })
        .collect()
}

/// Returns the number of the word's hold at this moment, which tells it from the word's other holds; -1 if it is not known to
/// last, because nobody waits. `HOLDER` is the thread that holds it in both cases.
#[napi(catch_unwind, ts_args_type = "word: Int32Array")]
pub fn hold(env: Env, word: JsWord) -> Result<f64> {
    let hold = engine().hold(word.0);
    let owner = hold.map_or_else(|| engine().agents.thread(MUTEX.owner(MUTEX.read(word.0))), |hold| Some(hold.thread));
    JsThread::with(env, |thread| {
        thread.record.set(Field::Holder, owner.map_or(-1.0, f64::from));
        hold.map_or(-1.0, |hold| hold.serial as f64)
    })
}

/// The kinds of the locks in the cycle of this thread's last deadlock, step by step.
#[napi(catch_unwind)]
pub fn cycle_kinds(env: Env) -> Result<Vec<String>> {
    JsThread::with(env, |thread| thread.cycle_kinds.iter().copied().map(String::from).collect())
}
