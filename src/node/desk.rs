//! The binding's part of locks in stores: desks, known by numbers in all threads; requests, known by numbers to their thread and
//! to the lock worker; leases, known by numbers to the lock worker.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use napi::bindgen_prelude::*;
use napi::{Env, sys};
use napi_derive::napi;

use super::beside::JsBeside;
use super::desks::{HAS_DUE, desk, desks, open};
use super::handles::check;
use super::named::{JsName, JsUnits, NameMode};
use super::process::{engine, limit, limit_with};
use super::record::Field;
use super::status::{FAILED, GRANTED, GRANTED_ABANDONED, REFUSED, TIMED_OUT, of_failure, of_reply};
use super::thread::JsThread;
use crate::clients::{ClientLoop, InStore};
use crate::desk::{Answer, Lease, Question, Task};
use crate::engine::Expiry;

/// A new desk, whose lock worker the caller starts.
#[napi(catch_unwind)]
pub fn open_desk(is_of_main: bool) -> u32 {
    open(is_of_main, false)
}

/// The desk of the main thread; -1 if it has none, and has not loaded the package. If it has no lock worker yet, it is asked to
/// start one.
#[napi(catch_unwind)]
pub fn main_desk() -> i32 {
    let find = || desks().iter().position(|entry| entry.is_of_main && !entry.desk.is_ended());
    if let Some(number) = find() {
        return number as i32;
    }
    let Some(main) = engine().agents.of_thread(0) else { return -1 };
    let number = open(true, true);
    HAS_DUE.store(true, Ordering::Relaxed);
    main.wake();
    number as i32
}

/// The desk whose lock worker the main thread has to start; -1 if there is none.
#[napi(catch_unwind)]
pub fn next_due_desk() -> i32 {
    // Relaxed: the thread that has set it wakes the main thread afterwards, which looks then.
    if !HAS_DUE.load(Ordering::Relaxed) {
        return -1;
    }
    let mut all = desks();
    let Some(number) = all.iter().position(|entry| entry.is_due) else { return -1 };
    all[number].is_due = false;
    number as i32
}

/// Whether a desk has a lock worker that lives: 1; 0 if it has not come yet, -1 if it has ended.
#[napi(catch_unwind)]
pub fn desk_state(number: u32) -> Result<i32> {
    let desk = desk(number)?;
    Ok(if desk.is_ended() { -1 } else { i32::from(desk.is_served()) })
}

/// Its lock worker could not begin, or has ended: `text` is how the lock worker says why something failed.
#[napi(catch_unwind)]
pub fn end_desk(number: u32, text: String) -> Result<()> {
    desk(number).map(|desk| desk.end(&text))
}

/// This thread is the lock worker of the desk.
#[napi(catch_unwind)]
pub fn serve_desk(env: Env, number: u32) -> Result<()> {
    let desk = desk(number)?;
    let agent = JsThread::with(env, |thread| Arc::clone(thread.event_loop.agent()))?;
    desks()[number as usize].server = agent.id;
    desk.serve(Box::new(move || agent.wake()));
    Ok(())
}

/// A question for the lock worker; the verbs, the flags and the payload are between it and the thread.
#[napi(object, object_to_js = false)]
pub struct JsQuestion {
    /// The number of the store.
    pub store: u32,
    /// The verb.
    pub verb: u32,
    /// The name, if it is about one.
    #[napi(ts_type = "string")]
    pub name: JsName,
    /// The mode of the name.
    pub mode: NameMode,
    /// Options of the verb.
    pub flags: u32,
    /// Arguments of the verb.
    pub payload: String,
}

impl JsQuestion {
    fn of(self, thread: &JsThread) -> Result<Question> {
        let Self { store, verb, name, mode, flags, payload } = self;
        let is_shared = matches!(mode, NameMode::Shared);
        Ok(Question { store, verb, name: name.units()?, is_shared, flags, payload, thread: thread.number() })
    }
}

/// Asks: `PENDING`, under `TOKEN`, or `NO_CLOCK`. When its time is over, what is beside it goes back as well
/// (as for `expiresWithNames`), whatever this thread does then. `next()` says how it ended.
#[napi(catch_unwind)]
pub fn ask_store(env: Env, desk: u32, question: JsQuestion, timeout: f64, beside: Option<JsBeside>) -> Result<i32> {
    let desk = self::desk(desk)?;
    JsThread::with(env, |thread| {
        let question = question.of(thread)?;
        let beside = beside.map(|beside| Arc::new(thread.beside(beside)) as Arc<dyn Expiry>);
        let store = InStore::at(&desk, &question);
        let asked = thread.event_loop.ask_outside(store, question, limit_with(timeout, true), beside);
        Ok(of_reply(asked.map(|(reply, _)| reply), thread))
    })?
}

/// Asks, and blocks this thread for the answer: `GRANTED`, `REFUSED`, `TIMED_OUT`, `INTERRUPTED` or `FAILED`.
#[napi(catch_unwind)]
pub fn ask_store_blocking(env: Env, desk: u32, question: JsQuestion, timeout: f64) -> Result<i32> {
    let desk = self::desk(desk)?;
    let (question, agent, mut call) = JsThread::with(env, |thread| {
        question.of(thread).map(|question| (question, Arc::clone(thread.event_loop.agent()), thread.blocking_call(env)))
    })??;
    let store = InStore::at(&desk, &question);
    // Nothing of the thread's state is borrowed here, as in `lockFile`.
    let asked = ClientLoop::ask_outside_blocking(engine(), &agent, store, question, limit(timeout), &mut call);
    JsThread::with(env, |thread| match asked {
        Ok(Some(answered)) => {
            let answer = thread.event_loop.take_in(answered);
            of_answer(answer, thread)
        }
        Ok(None) => TIMED_OUT,
        Err(failure) => of_failure(failure, &call, thread),
    })
}

/// Opens a store: the lock worker knows it until the number that this returns is released. Nobody waits for an answer.
#[napi(catch_unwind)]
pub fn open_store(env: Env, desk: u32, question: JsQuestion) -> Result<i64> {
    let desk = self::desk(desk)?;
    JsThread::with(env, |thread| {
        let question = question.of(thread)?;
        Ok(thread.event_loop.tell_store(&desk, question) as i64)
    })?
}

/// From an answer to a status: `NUMBER` is the request's, `FENCE` its fence.
pub fn of_answer((number, answer): (u64, Answer), thread: &mut JsThread) -> i32 {
    thread.record.set(Field::Number, number as f64);
    match answer {
        Answer::Granted { fence, is_abandoned, text, .. } => {
            thread.record.set_fence(fence);
            thread.stores.text = text;
            if is_abandoned { GRANTED_ABANDONED } else { GRANTED }
        }
        Answer::Refused => REFUSED,
        Answer::Failed(text) => {
            thread.stores.text = text;
            FAILED
        }
    }
}

/// The next request of this thread whose hold was lost; -1 if there is none.
#[napi(catch_unwind)]
pub fn next_lost_store(env: Env) -> Result<i64> {
    JsThread::with(env, |thread| thread.event_loop.next_lost().map_or(-1, |number| number as i64)).or(Ok(-1))
}

/// Returns what the last answer has to say.
#[napi(catch_unwind)]
pub fn take_store_text(env: Env) -> Result<String> {
    JsThread::with(env, |thread| std::mem::take(&mut thread.stores.text))
}

/// Returns how the lock that a request holds was lost, by its number; 0 if it is held.
#[napi(catch_unwind)]
pub fn look_store(env: Env, number: i64) -> Result<u32> {
    JsThread::with(env, |thread| {
        let hold = thread.event_loop.outside_hold::<InStore>(number as u64);
        hold.and_then(|hold| hold.lost()).map_or(0, |loss| loss as u32)
    })
}

/// Notes that a request's hold does not suffice yet: until `isIn`, the end of this thread leaves no mark.
#[napi(catch_unwind)]
pub fn note_store_in(env: Env, number: i64, is_in: bool) -> Result<()> {
    JsThread::with(env, |thread| {
        if let Some(hold) = thread.event_loop.outside_hold::<InStore>(number as u64) {
            hold.note_in(is_in);
        }
    })
}

/// Releases what a request holds, if `hasEnded`, or it was lost inside, with a mark, where that leaves one; it is over. Returns how it
/// was lost before, by its number; 0 if it was held.
#[napi(catch_unwind)]
pub fn release_store(env: Env, number: i64, has_ended: bool) -> Result<u32> {
    JsThread::with(env, |thread| {
        thread.event_loop.release_store(number as u64, has_ended).map_or(0, |loss| loss as u32)
    })
}

/// Something that the lock worker has to do.
#[napi(object, object_from_js = false)]
pub struct StoreTask {
    /// 0: to see to a request; 1: it is withdrawn; 2: to release it; 3: the same, and its holder's thread ended inside.
    pub kind: u32,
    /// The request's number.
    pub number: i64,
    /// As it was asked for.
    pub store: u32,
    /// As it was asked for.
    pub verb: u32,
    /// As it was asked for.
    #[napi(ts_type = "string")]
    pub name: JsUnits,
    /// As it was asked for.
    pub shared: bool,
    /// As it was asked for.
    pub flags: u32,
    /// As it was asked for.
    pub payload: String,
    /// Whose it is.
    pub thread_id: u32,
}

/// The next task of this lock worker; `null` if there is none.
#[napi(catch_unwind)]
pub fn next_task(number: u32) -> Result<Option<StoreTask>> {
    let empty = |kind, number: u64| StoreTask {
        kind,
        number: number as i64,
        store: 0,
        verb: 0,
        name: JsUnits(Box::default()),
        shared: false,
        flags: 0,
        payload: String::new(),
        thread_id: 0,
    };
    Ok(desk(number)?.next().map(|task| match task {
        Task::Ask(number, Question { store, verb, is_shared: shared, flags, thread, name, payload }) => {
            let name = JsUnits(name.into());
            StoreTask { store, verb, name, shared, flags, payload, thread_id: thread, ..empty(0, number) }
        }
        Task::Cancel(number) => empty(1, number),
        Task::Release(number, is_abandoned) => empty(2 + u32::from(is_abandoned), number),
    }))
}

/// A fence, as JS has it.
pub struct JsFence(u64);

impl FromNapiValue for JsFence {
    unsafe fn from_napi_value(env: sys::napi_env, value: sys::napi_value) -> Result<Self> {
        let (mut fence, mut is_whole) = (0, false);
        // SAFETY: both are those of the call in progress.
        check(unsafe { sys::napi_get_value_bigint_uint64(env, value, &mut fence, &mut is_whole) })?;
        Ok(Self(fence))
    }
}

/// A grant, as a lock worker gives it.
#[napi(object, object_to_js = false)]
pub struct TaskGrant {
    /// The lease by which it holds, of this thread; 0: one that no time ends.
    pub lease: u32,
    /// Its fence, if one was asked for; else 0.
    #[napi(ts_type = "bigint")]
    pub fence: JsFence,
    /// Whether somebody has ended inside, and nobody has said since that all is well.
    pub abandoned: bool,
    /// Words for whoever asked.
    pub text: String,
}

/// Answers a request: with a grant; with why it has `failed`; or that it cannot be granted at once, and does not wait. False if it is
/// not wanted any more.
#[napi(catch_unwind)]
pub fn answer_task(env: Env, desk: u32, number: i64, grant: Option<TaskGrant>, failed: Option<String>) -> Result<bool> {
    let desk = self::desk(desk)?;
    let answer = match grant {
        Some(TaskGrant { lease, fence: JsFence(fence), abandoned: is_abandoned, text }) => {
            let lease = match lease {
                0 => Lease::endless(),
                // One that has ended meanwhile is over: what is granted by it is lost already.
                _ => {
                    JsThread::with(env, |thread| thread.stores.leases.get(&lease).cloned())?.unwrap_or_else(Lease::over)
                }
            };
            Answer::Granted { fence, lease, is_abandoned, text }
        }
        None => failed.map_or(Answer::Refused, Answer::Failed),
    };
    Ok(desk.answer(number as u64, answer))
}

/// Gives the calling thread a name for the system's tools, where that can be.
#[napi(catch_unwind)]
pub fn name_thread() {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    // SAFETY: the name is a string of less than 16 bytes with a zero at its end, which lives for ever.
    unsafe {
        libc::prctl(libc::PR_SET_NAME, c"sablock-locks".as_ptr());
    }
    #[cfg(target_os = "macos")]
    // SAFETY: the name is a string with a zero at its end, which lives for ever.
    unsafe {
        libc::pthread_setname_np(c"sablock-locks".as_ptr());
    }
}
