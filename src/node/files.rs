//! The binding's part of locks of files, among processes. A directory, a hold and a wait are known by numbers; those of holds
//! and waits belong to their thread.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use napi::Env;
use napi::bindgen_prelude::*;
use napi_derive::napi;
use rustc_hash::{FxHashMap, FxHashSet};

use super::limit;
use super::named::{JsName, JsUnits, NameMode};
use super::record::Field;
use super::status::{GRANTED, GRANTED_ABANDONED, INTERRUPTED, PENDING, TIMED_OUT};
use super::thread::JsThread;
use crate::engine::{Caller, Limit};
use crate::files::{Blocked, Directory, Failure, Hold, Mode, Name, Outcome, Past, Reason, Refusal, Wait};

/// It failed; `takeFileFailure()` says why.
#[napi]
pub const FILE_FAILED: i32 = 11;
/// In what `releaseFile` returns: the file of the lock was removed while it was held.
#[napi]
pub const FILE_REMOVED: u32 = 1;
/// In what `releaseFile` returns: the record could not be written; `takeFileFailure()` says why.
#[napi]
pub const RECORD_UNWRITTEN: u32 = 2;

/// The locks of files that a thread holds or waits for.
#[derive(Default)]
pub struct ThreadFiles {
    holds: FxHashMap<u32, Hold>,
    waits: FxHashMap<u32, Wait>,
    inbox: Arc<Inbox>,
    next: u32,
    failure: Option<Failure>,
}

/// The waits of a thread that are over.
#[derive(Default)]
struct Inbox(Mutex<Outcomes>);

#[derive(Default)]
struct Outcomes {
    outcomes: VecDeque<(u32, Outcome)>,
    /// Waits that were cancelled when their outcome was on the way.
    cancelled: FxHashSet<u32>,
    is_ended: bool,
}

impl Inbox {
    fn lock(&self) -> MutexGuard<'_, Outcomes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A wait is over. True if its thread is to be woken.
    fn put(&self, number: u32, outcome: Outcome) -> bool {
        let mut inbox = self.lock();
        if inbox.is_ended || inbox.cancelled.remove(&number) {
            drop(inbox);
            give_back(outcome);
            return false;
        }
        inbox.outcomes.push_back((number, outcome));
        true
    }
}

/// Nobody's code has run with it.
fn give_back(outcome: Outcome) {
    if let Ok(hold) = outcome {
        hold.release();
    }
}

impl ThreadFiles {
    fn number(&mut self) -> u32 {
        loop {
            self.next = self.next.wrapping_add(1);
            if !self.holds.contains_key(&self.next) && !self.waits.contains_key(&self.next) {
                return self.next;
            }
        }
    }

    /// Takes in a hold. Returns its number.
    fn insert(&mut self, hold: Hold) -> u32 {
        let number = self.number();
        self.holds.insert(number, hold);
        number
    }

    /// Takes a wait back.
    fn cancel(&mut self, number: u32) {
        let Some(wait) = self.waits.remove(&number) else { return };
        if wait.withdraw() {
            return;
        }
        let mut inbox = self.inbox.lock();
        match inbox.outcomes.iter().position(|(other, _)| *other == number) {
            Some(index) => {
                let given_back = inbox.outcomes.remove(index);
                drop(inbox);
                given_back.into_iter().for_each(|(_, outcome)| give_back(outcome));
            }
            None => {
                inbox.cancelled.insert(number);
            }
        }
    }

    /// The thread has ended: what its code never knew of goes back unmarked, what it holds goes to others as abandoned.
    pub fn end(mut self) {
        for (_, wait) in self.waits.drain() {
            wait.withdraw();
        }
        let mut inbox = self.inbox.lock();
        inbox.is_ended = true;
        let outcomes = std::mem::take(&mut inbox.outcomes);
        drop(inbox);
        outcomes.into_iter().for_each(|(_, outcome)| give_back(outcome));
    }
}

impl From<NameMode> for Mode {
    fn from(mode: NameMode) -> Self {
        match mode {
            NameMode::Exclusive => Self::Exclusive,
            NameMode::Shared => Self::Shared,
        }
    }
}

static DIRECTORIES: Mutex<Vec<Arc<Directory>>> = Mutex::new(Vec::new());

fn directories() -> MutexGuard<'static, Vec<Arc<Directory>>> {
    DIRECTORIES.lock().unwrap_or_else(PoisonError::into_inner)
}

fn directory(number: u32) -> Result<Arc<Directory>> {
    let found = directories().get(number as usize).cloned();
    found.ok_or_else(|| Error::new(Status::InvalidArg, "expected a number from openDirectory()"))
}

/// A directory that can be used.
#[napi(object, object_from_js = false)]
pub struct OpenedDirectory {
    /// Its number, the same in all threads.
    pub number: u32,
    /// Equal for two paths that lead to the same directory.
    pub key: String,
    /// Its path, without links.
    pub path: String,
}

/// Why a directory or a file cannot be used.
#[napi(object, object_from_js = false)]
pub struct FileFailure {
    /// Which.
    pub path: String,
    /// `owner`, `writable`, `link`, `not-a-directory`, `no-parent`, `file-system`, `system` or `no-thread`.
    pub reason: String,
    /// What failed, or the name of the file system.
    pub what: String,
    /// The owner of the directory, or its permissions.
    pub found: u32,
    /// This user.
    pub user: u32,
    /// What the system says.
    pub message: String,
    /// The system's number of that; 0 if there is none.
    pub errno: i32,
}

fn describe(failure: Failure) -> FileFailure {
    let empty = |path: &Path, reason: &str| FileFailure {
        path: path.to_string_lossy().into_owned(),
        reason: reason.to_owned(),
        what: String::new(),
        found: 0,
        user: 0,
        message: String::new(),
        errno: 0,
    };
    let system = |path: &Path, reason, what: &str, error: std::io::Error| FileFailure {
        what: what.to_owned(),
        errno: error.raw_os_error().unwrap_or(0),
        message: error.to_string(),
        ..empty(path, reason)
    };
    match failure {
        Failure::NoThread(error) => system(Path::new(""), "no-thread", "", error),
        Failure::System { verb, path, error } => system(&path, "system", verb, error),
        Failure::Refused(Refusal { path, reason }) => match reason {
            Reason::Owner { owner, user } => FileFailure { found: owner, user, ..empty(&path, "owner") },
            Reason::Writable(mode) => FileFailure { found: mode, ..empty(&path, "writable") },
            Reason::Link => empty(&path, "link"),
            Reason::NotADirectory => empty(&path, "not-a-directory"),
            Reason::NoParent => empty(&path, "no-parent"),
            Reason::FileSystem(name) => FileFailure { what: name.to_owned(), ..empty(&path, "file-system") },
            Reason::System(error) => system(&path, "system", "use", error),
        },
    }
}

/// Opens the directory at this path, or the user's own.
#[napi(catch_unwind, ts_return_type = "OpenedDirectory | FileFailure")]
pub fn open_directory(path: Option<String>) -> Either<OpenedDirectory, FileFailure> {
    match Directory::open(path.as_deref().map(Path::new)) {
        Err(refusal) => Either::B(describe(Failure::Refused(refusal))),
        Ok(opened) => {
            let key = format!("{}:{}", opened.identity.0, opened.identity.1);
            let path = opened.path().to_string_lossy().into_owned();
            let mut all = directories();
            let is_it = |other: &Arc<Directory>| other.identity == opened.identity && other.path() == opened.path();
            let number = all.iter().position(is_it).unwrap_or_else(|| {
                all.push(Arc::new(opened));
                all.len() - 1
            });
            Either::A(OpenedDirectory { number: number as u32, key, path })
        }
    }
}

/// Why the last call of this thread has failed.
#[napi(catch_unwind)]
pub fn take_file_failure(env: Env) -> Result<Option<FileFailure>> {
    JsThread::with(env, |thread| thread.files.failure.take().map(describe))
}

fn fail(thread: &mut JsThread, failure: Failure) -> i32 {
    thread.files.failure = Some(failure);
    FILE_FAILED
}

/// From a hold to a status: `NUMBER` is the hold's.
fn granted(thread: &mut JsThread, hold: Hold) -> i32 {
    let past = hold.past();
    let number = thread.files.insert(hold);
    thread.record.set(Field::Number, f64::from(number));
    let holder = if let Past::Ended(holder) = past { holder } else { None };
    thread.record.set(Field::EndedThread, holder.map_or(-1.0, |holder| f64::from(holder.thread)));
    thread.record.set(Field::EndedProcess, holder.map_or(-1.0, |holder| f64::from(holder.process)));
    thread.record.set(Field::HasEnded, f64::from(u8::from(matches!(past, Past::Ended(_)))));
    if past == Past::Clean { GRANTED } else { GRANTED_ABANDONED }
}

/// Locks a file if that can be at once. `GRANTED`, `GRANTED_ABANDONED`, `TIMED_OUT` or `FILE_FAILED`. If the lock is
/// abandoned, `HAS_ENDED` says whether nobody was told so far, `ENDED_PROCESS` and `ENDED_THREAD` by whom, or -1.
#[napi(catch_unwind, ts_args_type = "directory: number, name: string, mode: NameMode")]
pub fn try_lock_file(env: Env, directory: u32, name: JsName, mode: NameMode) -> Result<i32> {
    let name = Name::get(&self::directory(directory)?, &name.units()?);
    JsThread::with(env, |thread| match name.try_lock(mode.into(), thread.number()) {
        Ok(Some(hold)) => granted(thread, hold),
        Ok(None) => TIMED_OUT,
        Err(failure) => fail(thread, failure),
    })
}

/// Waits for the lock of a file: `PENDING`, and `NUMBER` is the wait's.
#[napi(catch_unwind, ts_args_type = "directory: number, name: string, mode: NameMode")]
pub fn lock_file_async(env: Env, directory: u32, name: JsName, mode: NameMode) -> Result<i32> {
    let name = Name::get(&self::directory(directory)?, &name.units()?);
    JsThread::with(env, |thread| {
        let number = thread.files.number();
        let (inbox, agent) = (Arc::clone(&thread.files.inbox), Arc::clone(thread.event_loop.agent()));
        let wait = name.wait(mode.into(), thread.number(), move |outcome| {
            if inbox.put(number, outcome) {
                agent.wake();
            }
        });
        thread.files.waits.insert(number, wait);
        thread.record.set(Field::Number, f64::from(number));
        PENDING
    })
}

/// The next wait for a file of this thread that is over, by its status; -1 if there is none. `TOKEN` is the wait's number;
/// what else there is, is as for `tryLockFile`.
#[napi(catch_unwind)]
pub fn next_file(env: Env) -> Result<i32> {
    JsThread::with(env, |thread| {
        let mut inbox = thread.files.inbox.lock();
        let Some((number, outcome)) = inbox.outcomes.pop_front() else { return -1 };
        drop(inbox);
        thread.files.waits.remove(&number);
        thread.record.set(Field::Token, f64::from(number));
        match outcome {
            Ok(hold) => granted(thread, hold),
            Err(failure) => fail(thread, failure),
        }
    })
    .or(Ok(-1))
}

/// Takes a wait for a file back. If its outcome is on the way, the lock is given back as soon as it comes.
#[napi(catch_unwind)]
pub fn cancel_file(env: Env, number: u32) -> Result<()> {
    JsThread::with(env, |thread| thread.files.cancel(number))
}

/// Blocks this thread until it has the lock of a file. As `tryLockFile`, or `INTERRUPTED`.
#[napi(catch_unwind, ts_args_type = "directory: number, name: string, mode: NameMode, timeout: number")]
pub fn lock_file(env: Env, directory: u32, name: JsName, mode: NameMode, timeout: f64) -> Result<i32> {
    let name = Name::get(&self::directory(directory)?, &name.units()?);
    let deadline = match limit(timeout) {
        Limit::Once => Some(Instant::now()),
        Limit::Until(at) => Some(at),
        Limit::Endless => None,
    };
    let (thread_id, mut call) = JsThread::with(env, |thread| (thread.number(), thread.blocking_call(env)))?;
    // Nothing of the thread's state is borrowed here: a debugger may run this package during the pause.
    let locked = name.wait_blocking(mode.into(), thread_id, deadline, &mut || call.pause());
    JsThread::with(env, |thread| match locked {
        Ok(hold) => granted(thread, hold),
        Err(Blocked::TimedOut) => TIMED_OUT,
        Err(Blocked::Interrupted) => INTERRUPTED,
        Err(Blocked::Failed(failure)) => fail(thread, failure),
    })
}

/// Unlocks what this thread holds. Returns what it found, as bits: `FILE_REMOVED`, `RECORD_UNWRITTEN`.
#[napi(catch_unwind)]
pub fn release_file(env: Env, number: u32) -> Result<u32> {
    JsThread::with(env, |thread| {
        let Some(hold) = thread.files.holds.remove(&number) else { return 0 };
        let released = hold.release();
        let unwritten = if released.unwritten.is_some() { RECORD_UNWRITTEN } else { 0 };
        thread.files.failure = released.unwritten;
        unwritten | if released.is_removed { FILE_REMOVED } else { 0 }
    })
}

/// Takes the mark of abandonment off a lock that this thread holds alone.
#[napi(catch_unwind)]
pub fn mark_file_consistent(env: Env, number: u32) -> Result<()> {
    JsThread::with(env, |thread| {
        if let Some(hold) = thread.files.holds.get_mut(&number) {
            hold.mark_consistent();
        }
    })
}

/// Somebody who holds a name.
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
}

/// Those who hold names of a directory alone, in other processes, by their records.
#[napi(catch_unwind)]
pub fn file_holders(directory: u32) -> Result<Either<Vec<FileHolder>, FileFailure>> {
    let directory = self::directory(directory)?;
    let holders = match directory.holders() {
        Ok(holders) => holders,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(error) => {
            let path = directory.path().to_owned();
            return Ok(Either::B(describe(Failure::System { verb: "read", path, error })));
        }
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis() as u64);
    let elsewhere = holders.into_iter().filter(|(_, holder)| !holder.is_here());
    let row = |(units, holder): (Vec<u16>, crate::files::Holder)| FileHolder {
        name: JsUnits(units.into()),
        pid: holder.process,
        thread_id: holder.thread,
        held_ms: now.saturating_sub(holder.since) as f64,
    };
    Ok(Either::A(elsewhere.map(row).collect()))
}
