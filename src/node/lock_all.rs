//! The binding's part of several locks at once. A list of them is two arrays of the same length: their words, and what is
//! asked of each. All functions on one list get the same arrays.

use napi::{Env, bindgen_prelude::*};
use napi_derive::napi;

use super::ask::Ask;
use super::process::{engine, limit, limit_with};
use super::record::{Field, Found, Record};
use super::status;
use super::thread::JsThread;
use super::views::JsWord;
use crate::agents::AgentId;
use crate::clients::{LockSet, PartWait};
use crate::engine::{Limit, Outcome, Reply, ReplyError};
use crate::memory::Place;
use crate::sync;

fn set_of(words: &[JsWord], asks: &[Ask]) -> LockSet {
    LockSet::new(words.iter().zip(asks).map(|(words, ask)| (ask.primitive(), words.0, ask.hold(1, 0))))
}

fn note_stop(record: &mut Record, set: &LockSet) {
    record.set(Field::StoppedAt, set.stopped_at.map_or(-1.0, |index| index as f64));
}

/// Notes what there is to know of a set beside the status; returns the status of one that is complete.
fn note(record: &mut Record, found: &mut Found, set: &LockSet) -> i32 {
    note_stop(record, set);
    record.set(Field::HasEnded, f64::from(u8::from(set.places().any(|place| engine().has_ended(place)))));
    *found = Found { indices: set.indices().collect(), reports: set.reports().collect(), waits: set.waits.clone() };
    record.set(Field::Locks, found.indices.len() as f64);
    if found.reports.is_empty() { status::GRANTED } else { status::GRANTED_ABANDONED }
}

/// The status of a reply about `set`; `None`: the set that the event loop has.
fn of_reply(thread: &mut JsThread, reply: std::result::Result<Reply, ReplyError>, set: Option<&LockSet>) -> i32 {
    let JsThread { event_loop, record, found, .. } = thread;
    if let Ok(Reply::Pending { token, .. }) = reply {
        // No more than this: there is one such call for each of its locks.
        event_loop.look_at_set(Some(token), |set| note_stop(record, set));
        return status::of_reply(reply, thread);
    }
    let mut note = |set: &LockSet| note(record, found, set);
    let noted = match set {
        Some(set) => Some(note(set)),
        None => event_loop.look_at_set(None, note),
    };
    let granted = noted.unwrap_or(status::NOT_OWNER);
    if matches!(reply, Ok(Reply::Now(Outcome::Granted { .. }))) { granted } else { status::of_reply(reply, thread) }
}

impl JsThread {
    /// Asks for several locks, and queues for those that cannot be had; a pending set keeps the memory of `views`, which are
    /// those of its list.
    pub fn lock_all_async(
        &mut self,
        set: &mut LockSet,
        views: &[JsWord],
        limit: Limit,
    ) -> Result<std::result::Result<Reply, ReplyError>> {
        let places: Vec<Place> = set.places().collect();
        let kept: Vec<usize> = set.indices().collect();
        for (place, index) in places.iter().zip(kept) {
            self.anchors.hold(self.env, place.address(), views[index].1)?;
        }
        let reply = self.event_loop.lock_all(set, limit);
        if !matches!(reply, Ok(Reply::Pending { .. })) {
            self.release_anchors(places)?;
        }
        Ok(reply)
    }
}

/// Blocks this thread until it has all locks of a list. Returns a status; unless it is `GRANTED` or `GRANTED_ABANDONED`,
/// nothing is held, and `STOPPED_AT` says which lock could not be had. `LOCKS` says how many different ones there are.
#[napi(catch_unwind, ts_args_type = "words: Int32Array[], asks: Ask[], timeout: number")]
pub fn lock_all(env: Env, words: Vec<JsWord>, asks: Vec<Ask>, timeout: f64) -> Result<i32> {
    let mut set = set_of(&words, &asks);
    let (outcome, call) = JsThread::block(env, |agent, call| set.lock(engine(), agent, limit(timeout), call))?;
    JsThread::with(env, |thread| {
        let granted = note(&mut thread.record, &mut thread.found, &set);
        match outcome {
            Ok(Outcome::Granted { .. }) => granted,
            outcome => status::of_wait(outcome, &call, thread),
        }
    })
}

/// Locks all that can be had at once, or queues for the first that cannot, `STOPPED_AT`. Returns a status, as `lockAll`. When
/// the wait is settled as granted, `goOn` is due before anything else of this thread is settled. However else it ends,
/// nothing is held.
#[napi(catch_unwind, ts_args_type = "words: Int32Array[], asks: Ask[], timeout: number, hasSignal: boolean")]
pub fn lock_all_async(env: Env, words: Vec<JsWord>, asks: Vec<Ask>, timeout: f64, has_signal: bool) -> Result<i32> {
    JsThread::with(env, |thread| {
        let mut set = set_of(&words, &asks);
        let reply = thread.lock_all_async(&mut set, &words, limit_with(timeout, has_signal))?;
        Ok(of_reply(thread, reply, Some(&set)))
    })?
}

/// Goes on with the list whose next lock was granted by the wait that `next()` returned last. Returns a status, as
/// `lockAllAsync`.
#[napi(catch_unwind)]
pub fn go_on(env: Env) -> Result<i32> {
    JsThread::with(env, |thread| match thread.event_loop.go_on() {
        Some(reply) => of_reply(thread, reply, None),
        None => status::NOT_OWNER,
    })
}

/// An ended holder that whoever got a list has to report.
#[napi(object)]
pub struct EndReport {
    /// The lock, by its place in the list.
    pub index: u32,
    /// The agent, for `setReport`.
    pub ended: u32,
}

/// A wait for one lock of a list that is over.
#[napi(object, object_from_js = false, use_nullable = true)]
pub struct JsPartWait {
    /// The lock, by its place in the list.
    pub index: u32,
    /// The thread that held it; `null` for none.
    pub owner_thread_id: Option<u32>,
    /// The time since it began, in milliseconds.
    pub begun_ms: f64,
    /// For how long, in milliseconds.
    pub waited_ms: f64,
}

/// The state that the last call for several locks found, beside its record.
#[napi(object, object_from_js = false)]
pub struct JsFound {
    /// The locks by their places in the list, each lock once, in the list's order.
    pub indices: Vec<u32>,
    /// The ended holders that whoever got the locks has to report.
    pub reports: Vec<EndReport>,
    /// The waits of a call that blocked.
    pub waits: Vec<JsPartWait>,
}

/// Returns what the last call for several locks found, until the next.
#[napi(catch_unwind)]
pub fn found_all(env: Env) -> Result<JsFound> {
    let report = |&(index, ended): &(usize, AgentId)| EndReport { index: index as u32, ended };
    let part_wait = |PartWait { index, owner, since, waited }: &PartWait| JsPartWait {
        index: *index as u32,
        owner_thread_id: engine().agents.thread(*owner),
        begun_ms: sync::since(*since).as_secs_f64() * 1e3,
        waited_ms: waited.as_secs_f64() * 1e3,
    };
    JsThread::with(env, |thread| {
        let Found { indices, reports, waits } = &thread.found;
        let mut indices: Vec<u32> = indices.iter().map(|index| *index as u32).collect();
        indices.sort_unstable();
        JsFound { indices, reports: reports.iter().map(report).collect(), waits: waits.iter().map(part_wait).collect() }
    })
}

/// Makes this the ended holder that the last acquisition has to report, as if only that lock had been acquired; 0: none, for
/// instance because it is reported. Returns the one that it had to report before.
#[napi(catch_unwind)]
pub fn set_report(env: Env, ended: u32) -> Result<u32> {
    JsThread::with(env, |thread| {
        let before = thread.abandoned_by.unwrap_or_default();
        status::of_outcome(Outcome::granted((ended != 0).then_some(ended)), thread);
        before
    })
}

/// Takes back all locks of a list, which were acquired a moment ago. `reports` are those that were not made; without them, no code has
/// asked for them since.
#[napi(catch_unwind, ts_args_type = "words: Int32Array[], asks: Ask[], reports?: EndReport[]")]
pub fn give_back_all(env: Env, words: Vec<JsWord>, asks: Vec<Ask>, reports: Option<Vec<EndReport>>) -> Result<()> {
    JsThread::with(env, |thread| {
        let reports = reports.map_or_else(
            || std::mem::take(&mut thread.found.reports),
            |reports| reports.iter().map(|report| (report.index as usize, report.ended)).collect(),
        );
        set_of(&words, &asks).all_held(&reports).give_back(engine(), thread.event_loop.agent());
    })
}
