//! The binding's requests for what is kept outside of the process: locks of files, lists of their holders, and what is asked of stores.
//! They wait as all requests do. A hold is known by its number, in this thread; see `held.rs`.

use napi::Env;
use napi::bindgen_prelude::*;
use napi_derive::napi;

use super::beside::JsBeside;
use super::desks::desk;
use super::directories::{JsFileFailure, describe, directory};
use super::files::HolderRows;
use super::named::{JsName, NameMode};
use super::process::{engine, limit, limit_with};
use super::record::Field;
use super::status::{FAILED, GRANTED, GRANTED_ABANDONED, REFUSED, TIMED_OUT, of_failure, of_reply};
use super::thread::JsThread;
use crate::clients::{ClientLoop, FileHolders, Held, InFile, InStore, Outside, Told};
use crate::desk::{Answer, Question};
use crate::engine::Limit;
use crate::files::{Asker, FileFailure, NamedFile, Past};

/// A question for a lock worker; the verbs, the flags and the payload are between it and the thread.
#[napi(object, object_to_js = false)]
pub struct JsQuestion {
    /// The number of its desk.
    pub desk: u32,
    /// The number of the store.
    pub store: u32,
    /// The verb.
    pub verb: u32,
    /// The name, if it is about one.
    #[napi(ts_type = "string")]
    pub name: JsName,
    /// The mode of the name.
    pub mode: NameMode,
    /// Whether it is asked for together with others: until `noteIn()` says so, no code is in with it alone.
    pub is_part: Option<bool>,
    /// Options of the verb.
    pub flags: u32,
    /// Arguments of the verb.
    pub payload: String,
}

impl JsQuestion {
    fn read(self, thread: u32) -> Result<(InStore, Question)> {
        let Self { desk: number, store, verb, name, mode, is_part, flags, payload } = self;
        let is_shared = matches!(mode, NameMode::Shared);
        let question = Question { store, verb, name: name.units()?, is_shared, flags, payload, thread };
        Ok((InStore::at(&desk(number)?, &question, is_part.unwrap_or(false)), question))
    }
}

/// Asks a store: `PENDING`, under `TOKEN`, or `NO_CLOCK`. When its time is over, what is beside it goes back as well, whatever this
/// thread does then. `next()` says how it ended, as `askStoreBlocking` does.
#[napi(catch_unwind)]
pub fn ask_store(env: Env, question: JsQuestion, timeout: f64, beside: Option<JsBeside>) -> Result<i32> {
    JsThread::with(env, |thread| {
        let (store, question) = question.read(thread.number())?;
        Ok(request(store, question, limit_with(timeout, true), beside, thread))
    })?
}

/// Asks a store, and blocks this thread for the answer: `GRANTED`, `GRANTED_ABANDONED`, `REFUSED`, `TIMED_OUT`, `INTERRUPTED` or
/// `FAILED`. `NUMBER` is that of the request, and of its hold; `FENCE` its fence; `takeTold` has more.
#[napi(catch_unwind)]
pub fn ask_store_blocking(env: Env, question: JsQuestion, timeout: f64) -> Result<i32> {
    let (store, question) = question.read(JsThread::with(env, |thread| thread.number())?)?;
    ask_blocking(env, store, question, limit(timeout))
}

/// Asks for those who hold names of a directory alone, in other processes, by their records: as `askStore`; `takeTold` has them.
#[napi(catch_unwind)]
pub fn list_file_holders(env: Env, directory: u32) -> Result<i32> {
    let holders = FileHolders(self::directory(directory)?);
    JsThread::with(env, |thread| request(holders, (), Limit::Revocable, None, thread))
}

/// Asks for the lock of a file, as `askStore` does; `next()` says how it ended, as `lockFile` does. `isPart`: it is asked for together
/// with others, and `noteIn` says when all are there.
#[napi(
    catch_unwind,
    ts_args_type = "directory: number, name: string, mode: NameMode, timeout: number, wantsFence: boolean, isPart: boolean, beside?: JsBeside"
)]
#[allow(clippy::too_many_arguments, reason = "no objects, which cannot be read in a thread that is ending")]
pub fn lock_file_async(
    env: Env,
    directory: u32,
    name: JsName,
    mode: NameMode,
    timeout: f64,
    wants_fence: bool,
    is_part: bool,
    beside: Option<JsBeside>,
) -> Result<i32> {
    let name = NamedFile::get(&self::directory(directory)?, &name.units()?);
    JsThread::with(env, |thread| {
        let asker = Asker { thread: thread.number(), wants_fence, is_part };
        request(InFile::of(&name, mode.into()), asker, limit_with(timeout, true), beside, thread)
    })
}

/// Blocks this thread until it has the lock of a file. Without a time it is only tried for: granted if nobody is next; or, `ifAvailable`,
/// unless somebody holds it, and, shared, unless somebody waits to hold it alone. Returns a status, as `askStoreBlocking`. If the lock is
/// abandoned, `HAS_ENDED` says whether that is reported for the first time, `ENDED_PROCESS` and `ENDED_THREAD` by whom, or -1.
#[napi(
    catch_unwind,
    ts_args_type = "directory: number, name: string, mode: NameMode, timeout: number, wantsFence: boolean, isPart: boolean, ifAvailable: boolean"
)]
#[allow(clippy::too_many_arguments, reason = "no objects, which cannot be read in a thread that is ending")]
pub fn lock_file(
    env: Env,
    directory: u32,
    name: JsName,
    mode: NameMode,
    timeout: f64,
    wants_fence: bool,
    is_part: bool,
    if_available: bool,
) -> Result<i32> {
    let (name, limit) = (NamedFile::get(&self::directory(directory)?, &name.units()?), limit(timeout));
    let asker = Asker { thread: JsThread::with(env, |thread| thread.number())?, wants_fence, is_part };
    if limit != Limit::Once {
        return ask_blocking(env, InFile::of(&name, mode.into()), asker, limit);
    }
    let locked = if if_available { NamedFile::lock_if_available } else { NamedFile::try_lock };
    JsThread::with(env, |thread| match locked(&name, mode.into(), asker) {
        Ok(Some(hold)) => {
            let number = thread.event_loop.hold_file(hold);
            of_told((number, Told::File(Ok(()))), thread)
        }
        Ok(None) => TIMED_OUT,
        Err(failure) => fail(thread, failure),
    })
}

fn request<K: Outside>(
    kind: K,
    question: K::Question,
    limit: Limit,
    beside: Option<JsBeside>,
    thread: &mut JsThread,
) -> i32 {
    let beside = beside.map(|beside| thread.beside(beside));
    let asked = thread.event_loop.ask_outside(kind, question, limit, beside);
    of_reply(asked.map(|(reply, _)| reply), thread)
}

fn ask_blocking<K: Outside>(env: Env, kind: K, question: K::Question, limit: Limit) -> Result<i32> {
    let (asked, call) = JsThread::block(env, |agent, call| {
        ClientLoop::ask_outside_blocking(engine(), agent, kind, question, limit, call)
    })?;
    JsThread::with(env, |thread| match asked {
        Ok(Some(answered)) => {
            let told = thread.event_loop.take_in(answered);
            of_told(told, thread)
        }
        Ok(None) => TIMED_OUT,
        Err(failure) => of_failure(failure, &call, thread),
    })
}

/// The wait for a file that was over last, or was cancelled, has ended without the lock: `PENDING`, under `TOKEN`, until nothing of it is
/// left in the kernel; `REFUSED` if nothing is.
#[napi(catch_unwind)]
pub fn await_left(env: Env) -> Result<i32> {
    JsThread::with(env, |thread| {
        let reply = thread.event_loop.wait_left();
        of_reply(reply, thread)
    })
}

/// Opens a store: the lock worker knows it until the number that this returns is released. Nobody waits for an answer.
#[napi(catch_unwind)]
pub fn open_store(env: Env, desk: u32, store: u32, verb: u32, payload: String) -> Result<i64> {
    let desk = self::desk(desk)?;
    JsThread::with(env, |thread| {
        let (name, thread_id) = (Vec::new(), thread.number());
        let question = Question { store, verb, name, is_shared: false, flags: 0, payload, thread: thread_id };
        thread.event_loop.tell_store(&desk, question) as i64
    })
}

/// Keeps why a call has failed. Returns its status.
pub fn fail(thread: &mut JsThread, failure: FileFailure) -> i32 {
    thread.told = Some(Told::File(Err(failure)));
    FAILED
}

/// From the news of a request to a status.
pub fn of_told((number, told): (u64, Told), thread: &mut JsThread) -> i32 {
    thread.record.set(Field::Number, number as f64);
    let status = match &told {
        Told::File(Ok(())) => of_file(number, thread),
        Told::Holders(Ok(_)) => GRANTED,
        Told::Store(Answer::Granted { fence, is_abandoned, .. }) => {
            thread.record.set_fence(*fence);
            if *is_abandoned { GRANTED_ABANDONED } else { GRANTED }
        }
        Told::Store(Answer::Refused) => REFUSED,
        Told::File(Err(_)) | Told::Holders(Err(_)) | Told::Store(Answer::Failed(_)) => FAILED,
    };
    thread.told = Some(told);
    status
}

/// From the hold of a file to a status.
fn of_file(number: u64, thread: &mut JsThread) -> i32 {
    let seen = match thread.event_loop.held(number) {
        Some(Held::File(hold)) => hold.with(|hold| (hold.past(), hold.fence())),
        _ => None,
    };
    let (past, fence) = seen.unwrap_or((Past::Clean, None));
    let holder = if let Past::Ended(holder) = past { holder } else { None };
    thread.record.set(Field::EndedThread, holder.map_or(-1.0, |holder| f64::from(holder.thread)));
    thread.record.set(Field::EndedProcess, holder.map_or(-1.0, |holder| f64::from(holder.process)));
    thread.record.set(Field::HasEnded, f64::from(u8::from(matches!(past, Past::Ended(_)))));
    if let Some(fence) = fence {
        thread.record.set_fence(fence);
    }
    if past == Past::Clean { GRANTED } else { GRANTED_ABANDONED }
}

/// Returns what the last request that is over has to say, once: the words of a store, also of why it failed; why a call for a file has
/// failed; holders.
#[napi(catch_unwind)]
pub fn take_told(env: Env) -> Result<Option<Either3<String, JsFileFailure, HolderRows>>> {
    let told = JsThread::with(env, |thread| thread.told.take())?;
    Ok(told.and_then(|told| match told {
        Told::Store(Answer::Granted { text, .. } | Answer::Failed(text)) => Some(Either3::A(text)),
        Told::File(Err(failure)) | Told::Holders(Err(failure)) => Some(Either3::B(describe(failure))),
        Told::Holders(Ok(listed)) => Some(Either3::C(HolderRows::from(listed))),
        Told::File(Ok(())) | Told::Store(Answer::Refused) => None,
    }))
}
