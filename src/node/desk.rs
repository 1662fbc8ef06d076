//! The binding's part of lock workers: desks, known by numbers in all threads, and their tasks, known by the numbers of the requests.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use napi::bindgen_prelude::*;
use napi::{Env, sys};
use napi_derive::napi;

use super::desks::{HAS_DUE, desk, desks, open};
use super::handles::check;
use super::named::JsUnits;
use super::process::engine;
use super::thread::JsThread;
use crate::desk::{Answer, Lease, Question, Task};

/// A new desk, whose lock worker the caller starts.
#[napi(catch_unwind)]
pub fn open_desk(is_of_main: bool) -> u32 {
    open(&mut desks(), is_of_main, false)
}

/// The desk of the main thread; -1 if it has none, and has not loaded the package. If it has no lock worker yet, it is asked to
/// start one.
#[napi(catch_unwind)]
pub fn main_desk() -> i32 {
    let main = engine().agents.of_thread(0);
    let mut all = desks();
    if let Some(number) = all.iter().position(|entry| entry.is_of_main && !entry.desk.is_ended()) {
        return number as i32;
    }
    let Some(main) = main else { return -1 };
    // Locked since the look: of threads that come at the same time one asks for a lock worker.
    let number = open(&mut all, true, true);
    drop(all);
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

/// This thread is the lock worker of the desk; it gets a name for the system's tools, where that can be.
#[napi(catch_unwind)]
pub fn serve_desk(env: Env, number: u32) -> Result<()> {
    let desk = desk(number)?;
    let agent = JsThread::with(env, |thread| Arc::clone(thread.event_loop.agent()))?;
    name_thread();
    desks()[number as usize].server = agent.id;
    desk.serve(Box::new(move || agent.wake()));
    Ok(())
}

fn name_thread() {
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
    pub lease: i64,
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
                _ => JsThread::with(env, |thread| thread.leases.all.get(&lease).cloned())?.unwrap_or_else(Lease::over),
            };
            Answer::Granted { fence, lease, is_abandoned, text }
        }
        None => failed.map_or(Answer::Refused, Answer::Failed),
    };
    Ok(desk.answer(number as u64, answer))
}
