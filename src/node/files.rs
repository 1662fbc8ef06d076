//! The binding's part of locks of files, among processes. A directory, a hold and a wait are known by numbers; those of holds
//! and waits belong to their thread.

use std::io;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use napi::Env;
use napi::bindgen_prelude::*;
use napi_derive::napi;

use super::beside::JsBeside;
use super::directories::{JsFileFailure, describe, directory as find};
use super::named::{JsName, JsUnits, NameMode};
use super::process::limit;
use super::record::Field;
use super::status::{GRANTED, GRANTED_ABANDONED, INTERRUPTED, PENDING, RELEASED, TIMED_OUT};
use super::thread::JsThread;
use super::thread_files::HolderList;
use crate::engine::Caller;
use crate::files::reader;
use crate::files::{Asker, FileFailure, FileHold, LockMode, NamedFile, NotLocked, Past, Released};

/// It failed; `takeFileFailure()` says why.
#[napi]
pub const FILE_FAILED: i32 = 11;
/// A directory was read; `takeFileHolders()` returns who holds its names.
#[napi]
pub const FILES_LISTED: i32 = 14;
/// Nothing is left of a wait that was cancelled.
#[napi]
pub const FILE_LEFT: i32 = 15;
/// Released, but the file of the lock was removed while it was held.
#[napi]
pub const FILE_REMOVED: i32 = 16;

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
    JsThread::with(env, |thread| thread.files.failure.take().map(describe))
}

fn fail(thread: &mut JsThread, failure: FileFailure) -> i32 {
    thread.files.failure = Some(failure);
    FILE_FAILED
}

/// From a hold to a status: `NUMBER` is the hold's.
fn granted(thread: &mut JsThread, hold: FileHold) -> i32 {
    let (past, fence) = (hold.past(), hold.fence());
    let number = thread.files.insert(hold);
    thread.record.set(Field::Number, f64::from(number));
    let holder = if let Past::Ended(holder) = past { holder } else { None };
    thread.record.set(Field::EndedThread, holder.map_or(-1.0, |holder| f64::from(holder.thread)));
    thread.record.set(Field::EndedProcess, holder.map_or(-1.0, |holder| f64::from(holder.process)));
    thread.record.set(Field::HasEnded, f64::from(u8::from(matches!(past, Past::Ended(_)))));
    if let Some(fence) = fence {
        thread.record.set(Field::FenceHigh, f64::from((fence >> 32) as u32));
        thread.record.set(Field::FenceLow, f64::from(fence as u32));
    }
    if past == Past::Clean { GRANTED } else { GRANTED_ABANDONED }
}

/// Locks a file if that can be at once, and nobody is next for it; or, `ifAvailable`, unless somebody holds it, and, shared, unless
/// somebody waits to hold it alone. `GRANTED`, `GRANTED_ABANDONED`, `TIMED_OUT` or `FILE_FAILED`. If the lock is
/// abandoned, `HAS_ENDED` says whether that is reported for the first time, `ENDED_PROCESS` and `ENDED_THREAD` by whom, or -1. If it is
/// granted and a fence was wanted, that is in `FENCE_HIGH` and `FENCE_LOW`. `isPart`: it is asked for together with others, and
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
            Ok(Some(hold)) => granted(thread, hold),
            Ok(None) => TIMED_OUT,
            Err(failure) => fail(thread, failure),
        }
    })
}

/// Waits for the lock of a file: `PENDING`, and `NUMBER` is the wait's.
#[napi(
    catch_unwind,
    ts_args_type = "directory: number, name: string, mode: NameMode, wantsFence: boolean, isPart: boolean"
)]
pub fn lock_file_async(
    env: Env,
    directory: u32,
    name: JsName,
    mode: NameMode,
    wants_fence: bool,
    is_part: bool,
) -> Result<i32> {
    let name = NamedFile::get(&find(directory)?, &name.units()?);
    JsThread::with(env, |thread| {
        let number = thread.files.number();
        let (inbox, agent) = (Arc::clone(&thread.files.inbox), Arc::clone(thread.event_loop.agent()));
        let asker = Asker { thread: thread.number(), wants_fence, is_part };
        let wait = name.wait(mode.into(), asker, move |outcome| {
            if inbox.put(number, outcome) {
                agent.wake();
            }
        });
        thread.files.await_file(number, wait);
        thread.record.set(Field::Number, f64::from(number));
        PENDING
    })
}

/// When this time is over, in milliseconds, the wait for a file is over as if it had been cancelled, and what is beside it goes back
/// (as for `expiresWithNames`): whatever this thread does then. `PENDING`, or `FILE_FAILED` if no time can be kept.
#[napi(catch_unwind)]
pub fn expire_file(env: Env, number: u32, timeout: f64, beside: JsBeside) -> Result<i32> {
    let Some(at) = limit(timeout).deadline() else { return Ok(PENDING) };
    JsThread::with(env, |thread| {
        let agent = Arc::clone(thread.event_loop.agent());
        let beside = thread.beside(beside);
        match thread.files.end_at(at, number, &agent, beside) {
            Ok(()) => PENDING,
            Err(failure) => fail(thread, failure),
        }
    })
}

/// The next wait for a file of this thread that is over, by its status; -1 if there is none. `TOKEN` is the wait's number;
/// what else there is, is as for `tryLockFile`. `FILES_LISTED` if a directory was read; `TOKEN` is the number of its list.
/// `FILE_LEFT` for a wait whose time was over, or of which `cancelFile` returned false.
#[napi(catch_unwind)]
pub fn next_file(env: Env) -> Result<i32> {
    JsThread::with(env, |thread| {
        let mut inbox = thread.files.inbox.lock();
        if let Some((number, listed)) = inbox.lists.pop() {
            drop(inbox);
            thread.record.set(Field::Token, f64::from(number));
            if let Some(list) = thread.files.lists.get_mut(&number) {
                list.listed = Some(listed);
            }
            return FILES_LISTED;
        }
        if let Some(number) = inbox.left.pop() {
            thread.record.set(Field::Token, f64::from(number));
            return FILE_LEFT;
        }
        let Some((number, outcome)) = inbox.next() else { return -1 };
        drop(inbox);
        thread.record.set(Field::Token, f64::from(number));
        match outcome {
            Ok(hold) => granted(thread, hold),
            Err(failure) => fail(thread, failure),
        }
    })
    .or(Ok(-1))
}

/// Takes a wait for a file back; what may have been granted to it is given back as soon as it comes. True if there is no such
/// thing; else `nextFile` returns `FILE_LEFT` when it is done.
#[napi(catch_unwind)]
pub fn cancel_file(env: Env, number: u32) -> Result<bool> {
    JsThread::with(env, |thread| {
        let agent = Arc::clone(thread.event_loop.agent());
        thread.files.cancel(number, &agent)
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
    let deadline = limit(timeout).deadline();
    let (thread, mut call) = JsThread::with(env, |thread| (thread.number(), thread.blocking_call(env)))?;
    // Nothing of the thread's state is borrowed here: a debugger may run this package during the pause.
    let asker = Asker { thread, wants_fence, is_part };
    let locked = name.wait_blocking(mode.into(), asker, deadline, &mut || call.pause());
    let goes_on = locked.is_err() || call.goes_on();
    JsThread::with(env, |thread| match locked {
        Ok(hold) if goes_on => granted(thread, hold),
        Ok(hold) => {
            // The end of the thread has begun: its code will never have it.
            hold.release();
            INTERRUPTED
        }
        Err(NotLocked::TimedOut) => TIMED_OUT,
        Err(NotLocked::Interrupted) => INTERRUPTED,
        Err(NotLocked::Failed(failure)) => fail(thread, failure),
    })
}

/// Unlocks what this thread holds: `RELEASED`, `FILE_REMOVED`, or `FILE_FAILED` if its record could not be written.
#[napi(catch_unwind)]
pub fn release_file(env: Env, number: u32) -> Result<i32> {
    JsThread::with(env, |thread| {
        match thread.files.holds.remove(&number).and_then(|hold| hold.take()).map(FileHold::release) {
            None | Some(Released::Whole) => RELEASED,
            Some(Released::Removed) => FILE_REMOVED,
            Some(Released::Unwritten(failure)) => fail(thread, failure),
        }
    })
}

/// What this thread holds does not suffice yet: until `isIn`, its end leaves no mark. `GRANTED`; or `FILE_FAILED`, and no code may
/// run with it.
#[napi(catch_unwind)]
pub fn note_file_in(env: Env, number: u32, is_in: bool) -> Result<i32> {
    JsThread::with(env, |thread| {
        match thread.files.holds.get(&number).and_then(|hold| hold.with(|hold| hold.note_in(is_in))) {
            Some(Err(failure)) => fail(thread, failure),
            _ => GRANTED,
        }
    })
}

/// The descriptors that keep a lock which this thread holds, and cleaners of old files out of its directory.
#[napi(catch_unwind)]
pub fn file_descriptors(env: Env, number: u32) -> Result<Vec<i32>> {
    JsThread::with(env, |thread| {
        let hold = thread.files.holds.get(&number);
        hold.and_then(|hold| hold.with(|hold| hold.descriptors().collect())).unwrap_or_default()
    })
}

/// Takes the mark of abandonment off a lock that this thread holds alone.
#[napi(catch_unwind)]
pub fn mark_file_consistent(env: Env, number: u32) -> Result<()> {
    JsThread::with(env, |thread| {
        if let Some(hold) = thread.files.holds.get(&number) {
            hold.with(FileHold::mark_consistent);
        }
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

/// Reads a directory on another thread; `NUMBER` is the number of the list. `nextFile` returns `FILES_LISTED` for it, once.
#[napi(catch_unwind)]
pub fn list_file_holders(env: Env, directory: u32) -> Result<()> {
    let directory = find(directory)?;
    let (inbox, agent) = JsThread::with(env, |thread| {
        let number = thread.files.number();
        let list = HolderList { directory: Arc::clone(&directory), listed: None, taken: 0 };
        thread.files.lists.insert(number, list);
        thread.record.set(Field::Number, f64::from(number));
        ((Arc::clone(&thread.files.inbox), number), Arc::clone(thread.event_loop.agent()))
    })?;
    reader::list(&directory, move |listed| {
        let (inbox, number) = inbox;
        let mut inbox = inbox.lock();
        if !inbox.is_ended {
            inbox.lists.push((number, listed));
            drop(inbox);
            agent.wake();
        }
    });
    Ok(())
}

/// The next `most` of those who hold names of a directory alone, in other processes, by their records. An empty array, after the
/// last ones, or why the directory could not be read, ends the list.
#[napi(catch_unwind)]
pub fn take_file_holders(env: Env, number: u32, most: u32) -> Result<Either<Vec<FileHolder>, JsFileFailure>> {
    JsThread::with(env, |thread| {
        let Some(HolderList { listed: Some(listed), taken, directory }) = thread.files.lists.get_mut(&number) else {
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
        thread.files.lists.remove(&number);
        ended
    })
}

/// Who holds one name of a directory alone, in another process, by its record; `null` if that says nothing of it.
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

impl From<&(Vec<u16>, crate::files::RecordedHolder)> for FileHolder {
    fn from((units, holder): &(Vec<u16>, crate::files::RecordedHolder)) -> Self {
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
