//! The names that this process holds or waits for, and who waits for each. A name is in memory only as long as somebody has it.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Weak};
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use super::directory::Directory;
use super::file::{Failure, Files, Locked, Mode};
use super::hold::Hold;
use super::name::{LockName, Part};
use crate::sync::Mutex;

/// What came of a wait.
pub type Outcome = Result<Hold, Failure>;

/// By path: the number of a directory that was removed is soon that of another one.
type Key = (PathBuf, Box<[u16]>);

static NAMES: LazyLock<Mutex<FxHashMap<Key, Weak<Name>>>> = LazyLock::new(Mutex::default);

/// A name in a directory: one for each process.
#[derive(Debug)]
pub struct Name {
    key: Key,
    pub(super) files: Arc<Files>,
    state: Mutex<State>,
}

#[derive(Default, Debug)]
struct State {
    /// The file that those who share the lock in this process have locked together.
    shared: Weak<Locked>,
    exclusive_line: Line,
    shared_line: Line,
}

/// Those of this process who wait in one mode, and the thread that waits in the kernel for them.
#[derive(Default, Debug)]
pub(super) struct Line {
    wanted: VecDeque<Wanted>,
    stage: Stage,
    /// Locked while this process is next.
    turn: Option<Locked>,
    /// Whether another thread waits for the lock without a turn.
    is_direct: bool,
}

/// How far the waiting thread of a line has come.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Stage {
    /// There is none.
    #[default]
    Idle,
    /// It waits for the turn.
    Turn,
    /// It waits for the lock.
    Lock,
}

/// A wait.
struct Wanted {
    id: u64,
    thread: u32,
    since: Instant,
    reply: Box<dyn FnOnce(Outcome) + Send>,
}

impl std::fmt::Debug for Wanted {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "wait {}", self.id)
    }
}

impl State {
    fn line(&mut self, mode: Mode) -> &mut Line {
        match mode {
            Mode::Exclusive => &mut self.exclusive_line,
            Mode::Shared => &mut self.shared_line,
        }
    }
}

impl Name {
    /// A name in a directory.
    pub fn get(directory: &Arc<Directory>, units: &[u16]) -> Arc<Self> {
        let key = (directory.path().to_owned(), Box::from(units));
        let mut names = NAMES.lock();
        if let Some(name) = names.get(&key).and_then(Weak::upgrade) {
            return name;
        }
        let files = Arc::new(Files::new(Arc::clone(directory), LockName::new(units)));
        let name = Arc::new(Self { key: key.clone(), files, state: Mutex::default() });
        names.insert(key, Arc::downgrade(&name));
        name
    }

    /// Locks it if that can be at once, and nobody waits for it, here or in another process.
    pub fn try_lock(&self, mode: Mode, thread: u32) -> Result<Option<Hold>, Failure> {
        {
            let state = self.state.lock();
            if !state.exclusive_line.wanted.is_empty() || !state.shared_line.wanted.is_empty() {
                return Ok(None);
            }
        }
        // Shared, so that two who try do not keep each other out; whoever is next has it exclusively.
        let Some(turn) = self.files.try_lock(Part::Turn, Mode::Shared)? else { return Ok(None) };
        let Some(lock) = self.try_file(mode)? else { return Ok(None) };
        drop(turn);
        Hold::begin(&self.files, mode, lock, thread).map(Some)
    }

    fn try_file(&self, mode: Mode) -> Result<Option<Arc<Locked>>, Failure> {
        if mode == Mode::Exclusive {
            return Ok(self.files.try_lock(Part::Lock, mode)?.map(Arc::new));
        }
        let shared = self.state.lock().shared.upgrade();
        if let Some(shared) = shared
            && self.files.leads_to(Part::Lock, &shared)?
        {
            return Ok(Some(shared));
        }
        let lock = self.files.try_lock(Part::Lock, mode)?.map(Arc::new);
        if let Some(lock) = &lock {
            self.state.lock().shared = Arc::downgrade(lock);
        }
        Ok(lock)
    }

    /// Takes in a wait. Returns its id, and whether a thread has to be started that waits for its line.
    pub(super) fn push(&self, mode: Mode, thread: u32, reply: Box<dyn FnOnce(Outcome) + Send>) -> (u64, bool) {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        // Relaxed: only that no two are the same counts.
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let mut state = self.state.lock();
        let line = state.line(mode);
        line.wanted.push_back(Wanted { id, thread, since: Instant::now(), reply });
        let is_first = line.stage == Stage::Idle;
        if is_first {
            line.stage = Stage::Turn;
        } else if line.stage == Stage::Lock && line.turn.is_none() {
            // The thread of a wait that was withdrawn, and gave up its turn. If another process is next now, so be it.
            line.turn = self.files.try_lock(Part::Turn, Mode::Exclusive).ok().flatten();
        }
        (id, is_first)
    }

    /// Takes a wait back; false if it is over already, and its outcome on the way.
    pub(super) fn withdraw(&self, mode: Mode, id: u64) -> bool {
        let mut state = self.state.lock();
        let line = state.line(mode);
        let Some(index) = line.wanted.iter().position(|wanted| wanted.id == id) else { return false };
        let withdrawn = line.wanted.remove(index);
        let turn = line.unwanted_turn();
        drop((state, withdrawn, turn));
        true
    }

    /// It is this process's turn. False if nobody here wants it any more: then the line's thread is to end.
    pub(super) fn take_turn(&self, mode: Mode, turn: Locked) -> bool {
        let mut state = self.state.lock();
        let line = state.line(mode);
        if line.wanted.is_empty() {
            line.stage = Stage::Idle;
            return false;
        }
        line.stage = Stage::Lock;
        line.turn = Some(turn);
        true
    }

    /// The kernel has locked `lock`, in this mode or exclusively: lets in those who wait. If nobody does, it is freed.
    pub(super) fn grant(&self, mode: Mode, lock: Locked) {
        let lock = Arc::new(lock);
        let mut state = self.state.lock();
        let line = state.line(mode);
        let many = if mode == Mode::Shared { line.wanted.len() } else { line.wanted.len().min(1) };
        let mut granted: Vec<Wanted> = line.wanted.drain(..many).collect();
        // Given up before anybody is let in: who is, and lets others know, is not to find them kept out by it.
        let turn = line.unwanted_turn();
        if mode == Mode::Shared && many > 0 {
            state.shared = Arc::downgrade(&lock);
        }
        drop((state, turn));
        let begin = |lock, thread| Hold::begin(&self.files, mode, lock, thread);
        // The last one gets what this thread has: nothing is locked any more when they have all released it.
        let Some(last) = granted.pop() else { return };
        for Wanted { thread, reply, .. } in granted {
            reply(begin(Arc::clone(&lock), thread));
        }
        (last.reply)(begin(lock, last.thread));
    }

    /// The first one who waits cannot be served.
    pub(super) fn fail(&self, mode: Mode, failure: Failure) {
        let first = self.state.lock().line(mode).wanted.pop_front();
        if let Some(Wanted { reply, .. }) = first {
            reply(Err(failure));
        }
    }

    /// The line's thread has served somebody. False if nobody else waits: then it is to end.
    pub(super) fn goes_on(&self, mode: Mode) -> bool {
        let mut state = self.state.lock();
        let line = state.line(mode);
        let turn = line.turn.take();
        line.stage = if line.wanted.is_empty() { Stage::Idle } else { Stage::Turn };
        let goes_on = line.stage == Stage::Turn;
        drop((state, turn));
        goes_on
    }

    /// Whether this wait is pending, and its process still not next. If so, the caller waits for the lock directly.
    pub(super) fn begin_direct(&self, mode: Mode, id: u64) -> bool {
        let mut state = self.state.lock();
        let line = state.line(mode);
        let begins = !line.is_direct && line.stage == Stage::Turn && line.wanted.iter().any(|wanted| wanted.id == id);
        line.is_direct |= begins;
        begins
    }

    /// Direct waiting is over. Returns the first one who waits still.
    pub(super) fn end_direct(&self, mode: Mode) -> Option<u64> {
        let mut state = self.state.lock();
        let line = state.line(mode);
        line.is_direct = false;
        line.wanted.front().map(|wanted| wanted.id)
    }

    /// Whether anybody waits, and for how long the first one has.
    pub(super) fn waited(&self, mode: Mode) -> Option<Duration> {
        self.state.lock().line(mode).wanted.front().map(|wanted| wanted.since.elapsed())
    }

    /// Whether this process is next.
    pub(super) fn is_next(&self, mode: Mode) -> bool {
        self.state.lock().line(mode).turn.is_some()
    }
}

impl Line {
    /// The turn, if nobody waits any more: others are not to wait for a thread whose wait was withdrawn.
    fn unwanted_turn(&mut self) -> Option<Locked> {
        if self.wanted.is_empty() { self.turn.take() } else { None }
    }
}

impl Drop for Name {
    fn drop(&mut self) {
        let mut names = NAMES.lock();
        // Another may have taken its place.
        if names.get(&self.key).is_some_and(|name| name.strong_count() == 0) {
            names.remove(&self.key);
        }
    }
}
