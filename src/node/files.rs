//! The binding's part of locks of files, among processes. A directory and a hold are known by numbers; those of holds belong to
//! their thread. Waits are those of the engine.

use std::io;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use napi::Env;
use napi::bindgen_prelude::*;
use napi_derive::napi;

use super::beside::JsBeside;
use super::directories::{JsFileFailure, describe, directory as find};
use super::named::{JsName, JsUnits, NameMode};
use super::process::{engine, limit, limit_with};
use super::record::Field;
use super::status::{FAILED, GRANTED, GRANTED_ABANDONED, RELEASED, REMOVED, TIMED_OUT, of_failure, of_reply};
use super::thread::JsThread;
use crate::clients::{ClientLoop, FileHolders, HolderList, InFile};
use crate::engine::{Expiry, Limit};
use crate::files::{Asker, FileFailure, FileHold, LockMode, NamedFile, Past, RecordedHolder, Released};

impl From<NameMode> for LockMode {
    fn from(mode: NameMode) -> Self {
        match mode {
            NameMode::Exclusive => Self::Exclusive,
            NameMode::Shared => Self::Shared,
        }
    }
}

/// Why the last call of this thread has failed.
#[napi(catch_unwind)]
pub fn take_file_failure(env: Env) -> Result<Option<JsFileFailure>> {
    JsThread::with(env, |thread| thread.file_failure.take().map(describe))
}

fn fail(thread: &mut JsThread, failure: FileFailure) -> i32 {
    thread.file_failure = Some(failure);
    FAILED
}

/// From the hold of this number to a status: `NUMBER` is the hold's.
fn granted(thread: &mut JsThread, number: u64) -> i32 {
    let seen = with_hold(thread, number as i64, |hold| (hold.past(), hold.fence()));
    let (past, fence) = seen.unwrap_or((Past::Clean, None));
    thread.record.set(Field::Number, number as f64);
    let holder = if let Past::Ended(holder) = past { holder } else { None };
    thread.record.set(Field::EndedThread, holder.map_or(-1.0, |holder| f64::from(holder.thread)));
    thread.record.set(Field::EndedProcess, holder.map_or(-1.0, |holder| f64::from(holder.process)));
    thread.record.set(Field::HasEnded, f64::from(u8::from(matches!(past, Past::Ended(_)))));
    if let Some(fence) = fence {
        thread.record.set_fence(fence);
    }
    if past == Past::Clean { GRANTED } else { GRANTED_ABANDONED }
}

/// From the outcome of a wait to a status.
pub fn of_file((number, told): (u64, std::result::Result<(), FileFailure>), thread: &mut JsThread) -> i32 {
    match told {
        Ok(()) => granted(thread, number),
        Err(failure) => fail(thread, failure),
    }
}

/// Locks a file if that can be at once, and nobody is next for it; or, `ifAvailable`, unless somebody holds it, and, shared, unless
/// somebody waits to hold it alone. `GRANTED`, `GRANTED_ABANDONED`, `TIMED_OUT` or `FAILED`. If the lock is
/// abandoned, `HAS_ENDED` says whether that is reported for the first time, `ENDED_PROCESS` and `ENDED_THREAD` by whom, or -1. If it is
/// granted and a fence was wanted, that is in `FENCE`. `isPart`: it is asked for together with others, and
/// `noteFileIn` says when all are there.
#[napi(
    catch_unwind,
    ts_args_type = "directory: number, name: string, mode: NameMode, ifAvailable: boolean, wantsFence: boolean, isPart: boolean"
)]
pub fn try_lock_file(
    env: Env,
    directory: u32,
    name: JsName,
    mode: NameMode,
    if_available: bool,
    wants_fence: bool,
    is_part: bool,
) -> Result<i32> {
    let name = NamedFile::get(&find(directory)?, &name.units()?);
    JsThread::with(env, |thread| {
        let asker = Asker { thread: thread.number(), wants_fence, is_part };
        let locked = if if_available { NamedFile::lock_if_available } else { NamedFile::try_lock };
        match locked(&name, mode.into(), asker) {
            Ok(Some(hold)) => {
                let number = thread.event_loop.hold_file(hold);
                granted(thread, number)
            }
            Ok(None) => TIMED_OUT,
            Err(failure) => fail(thread, failure),
        }
    })
}

/// Waits for the lock of a file: `PENDING`, under `TOKEN`, or `NO_CLOCK`. When its time is over, what is beside it goes back as well (as
/// for `expiresWithNames`), whatever this thread does then. `next()` says how it ended, as `tryLockFile` does.
#[napi(
    catch_unwind,
    ts_args_type = "directory: number, name: string, mode: NameMode, timeout: number, wantsFence: boolean, isPart: boolean, beside: JsBeside | undefined | null"
)]
#[allow(clippy::too_many_arguments, reason = "as JS has them; not expected of what napi makes of it")]
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
    let name = NamedFile::get(&find(directory)?, &name.units()?);
    JsThread::with(env, |thread| {
        let asker = Asker { thread: thread.number(), wants_fence, is_part };
        let beside = beside.map(|beside| Arc::new(thread.beside(beside)) as Arc<dyn Expiry>);
        let wait = InFile::of(&name, mode.into());
        let asked = thread.event_loop.ask_outside(wait, asker, limit_with(timeout, true), beside);
        of_reply(asked.map(|(reply, _)| reply), thread)
    })
}

/// The wait for a file that was over last, or was cancelled, has ended without the lock: `PENDING`, under `TOKEN`, until nothing of it is
/// left in the kernel; `REFUSED` if nothing is.
#[napi(catch_unwind)]
pub fn await_file_left(env: Env) -> Result<i32> {
    JsThread::with(env, |thread| {
        let reply = thread.event_loop.wait_left();
        of_reply(reply, thread)
    })
}

/// Blocks this thread until it has the lock of a file. As `tryLockFile`, or `INTERRUPTED`.
#[napi(
    catch_unwind,
    ts_args_type = "directory: number, name: string, mode: NameMode, timeout: number, wantsFence: boolean, isPart: boolean"
)]
pub fn lock_file(
    env: Env,
    directory: u32,
    name: JsName,
    mode: NameMode,
    timeout: f64,
    wants_fence: bool,
    is_part: bool,
) -> Result<i32> {
    let name = NamedFile::get(&find(directory)?, &name.units()?);
    let (thread, agent, mut call) = JsThread::with(env, |thread| {
        (thread.number(), Arc::clone(thread.event_loop.agent()), thread.blocking_call(env))
    })?;
    // Nothing of the thread's state is borrowed here: a debugger may run this package during the pause.
    let asker = Asker { thread, wants_fence, is_part };
    let wait = InFile::of(&name, mode.into());
    let asked = ClientLoop::ask_outside_blocking(engine(), &agent, wait, asker, limit(timeout), &mut call);
    JsThread::with(env, |thread| match asked {
        Ok(Some(answered)) => {
            let told = thread.event_loop.take_in(answered);
            of_file(told, thread)
        }
        Ok(None) => TIMED_OUT,
        Err(failure) => of_failure(failure, &call, thread),
    })
}

/// Returns the result of `act` on the hold of this number; `None` if there is none any more.
fn with_hold<T>(thread: &mut JsThread, number: i64, act: impl FnOnce(&mut FileHold) -> T) -> Option<T> {
    thread.event_loop.outside_hold::<InFile>(number as u64).and_then(|hold| hold.with(act))
}

/// Unlocks what this thread holds: `RELEASED`, `REMOVED`, or `FAILED` if its record could not be written.
#[napi(catch_unwind)]
pub fn release_file(env: Env, number: i64) -> Result<i32> {
    JsThread::with(env, |thread| {
        let hold = thread.event_loop.remove_outside::<InFile>(number as u64);
        match hold.and_then(|hold| hold.take()).map(FileHold::release) {
            None | Some(Released::Whole) => RELEASED,
            Some(Released::Removed) => REMOVED,
            Some(Released::Unwritten(failure)) => fail(thread, failure),
        }
    })
}

/// Notes that this thread's hold does not suffice yet: until `isIn`, its end leaves no mark. `GRANTED`; or `FAILED`, and no code
/// may run with it.
#[napi(catch_unwind)]
pub fn note_file_in(env: Env, number: i64, is_in: bool) -> Result<i32> {
    JsThread::with(env, |thread| match with_hold(thread, number, |hold| hold.note_in(is_in)) {
        Some(Err(failure)) => fail(thread, failure),
        _ => GRANTED,
    })
}

/// The descriptors that keep a lock which this thread holds, and cleaners of old files out of its directory.
#[napi(catch_unwind)]
pub fn file_descriptors(env: Env, number: i64) -> Result<Vec<i32>> {
    JsThread::with(env, |thread| with_hold(thread, number, |hold| hold.descriptors().collect()).unwrap_or_default())
}

/// Takes the mark of abandonment off a lock that this thread holds alone.
#[napi(catch_unwind)]
pub fn mark_file_consistent(env: Env, number: i64) -> Result<()> {
    JsThread::with(env, |thread| {
        with_hold(thread, number, FileHold::mark_consistent);
    })
}

/// A holder of a name.
#[napi(object, object_from_js = false)]
pub struct FileHolder {
    /// The name.
    #[napi(ts_type = "string")]
    pub name: JsUnits,
    /// The process.
    pub pid: u32,
    /// Its thread.
    pub thread_id: u32,
    /// For how long it has held it, in milliseconds.
    pub held_ms: f64,
    /// When it has locked it, in milliseconds of Unix time.
    pub since: f64,
}

/// Reads a directory on another thread: `PENDING`, under `TOKEN`. `GRANTED` in the end, and `NUMBER` is that of the list.
#[napi(catch_unwind)]
pub fn list_file_holders(env: Env, directory: u32) -> Result<i32> {
    let directory = find(directory)?;
    JsThread::with(env, |thread| {
        let asked = thread.event_loop.ask_outside(FileHolders(directory), (), Limit::Revocable, None);
        of_reply(asked.map(|(reply, _)| reply), thread)
    })
}

/// The next `most` of those who hold names of a directory alone, in other processes, by their records. An empty array, after the
/// last ones, or why the directory could not be read, ends the list.
#[napi(catch_unwind)]
pub fn take_file_holders(env: Env, number: i64, most: u32) -> Result<Either<Vec<FileHolder>, JsFileFailure>> {
    JsThread::with(env, |thread| {
        let number = number as u64;
        let Some(HolderList { listed, taken, directory }) = thread.event_loop.outside_hold::<FileHolders>(number)
        else {
            return Either::A(Vec::new());
        };
        let ended = match listed.as_ref() {
            Ok(holders) => {
                let left = &holders[*taken..];
                let rows: Vec<_> = left.iter().take(most as usize).map(FileHolder::from).collect();
                *taken += rows.len();
                if !rows.is_empty() {
                    return Either::A(rows);
                }
                Either::A(Vec::new())
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Either::A(Vec::new()),
            Err(error) => {
                let error = error.raw_os_error().map_or_else(|| error.kind().into(), io::Error::from_raw_os_error);
                let path = directory.path().to_owned();
                Either::B(describe(FileFailure::System { verb: "read", path, error }))
            }
        };
        thread.event_loop.remove_outside::<FileHolders>(number);
        ended
    })
}

/// Returns the process that holds one name of a directory alone, by its record; `null` if that says nothing of it.
#[napi(catch_unwind, ts_args_type = "directory: number, name: string")]
pub fn file_holder(directory: u32, name: JsName) -> Result<Option<FileHolder>> {
    let units = name.units()?;
    let holder = find(directory)?.holder(&units).filter(|holder| !holder.is_here());
    Ok(holder.map(|holder| FileHolder::from(&(units, holder))))
}

/// The processes that share one name of a directory, as far as the system shows them.
#[napi(catch_unwind, ts_args_type = "directory: number, name: string")]
pub fn file_sharers(directory: u32, name: JsName) -> Result<Vec<u32>> {
    Ok(find(directory)?.sharers(&name.units()?))
}

impl From<&(Vec<u16>, RecordedHolder)> for FileHolder {
    fn from((units, holder): &(Vec<u16>, RecordedHolder)) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis() as u64);
        Self {
            name: JsUnits(units.as_slice().into()),
            pid: holder.process,
            thread_id: holder.thread,
            held_ms: now.saturating_sub(holder.since) as f64,
            since: holder.since as f64,
        }
    }
}
