//! The names that this process holds or waits for, and who waits for each. A name is in memory only as long as somebody has it.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock, Weak};
use std::time::{Duration, Instant, SystemTime};

use rustc_hash::FxHashMap;

use super::directory::Directory;
use super::file::{FileFailure, Files, LockMode, Locked};
use super::hold::{Asker, FileHold};
use super::interrupt::{Interrupt, Left};
use super::keeper::{self, INSIST};
use super::line::{Direct, Driver, Line, Step, Wanted, left_until, next_second};
use super::name::{FileRole, LockName};
use super::threads;
use crate::sync::Mutex;

/// After this time of waiting for its turn a line waits for the lock directly: it is the cost of a process stopped while next.
const PATIENCE: Duration = Duration::from_millis(100);
/// The time between two looks at the gate of those who share.
const GATE_LOOK: Duration = Duration::from_millis(25);
/// The time between two tries of the keeper for those for whom there is no thread.
const SELDOM: Duration = Duration::from_millis(50);

/// By path: the number of a directory that was removed is soon that of another one.
type NameKey = (PathBuf, Box<[u16]>);

pub(super) static NAMES: LazyLock<Mutex<FxHashMap<NameKey, Weak<NamedFile>>>> = LazyLock::new(Mutex::default);

/// A name in a directory: one for each process.
#[derive(Debug)]
pub struct NamedFile {
    key: NameKey,
    pub(super) files: Arc<Files>,
    pub(super) state: Mutex<Lines>,
}

#[derive(Default, Debug)]
pub(super) struct Lines {
    /// The file that those who share the lock in this process have locked together.
    shared: Weak<Locked>,
    exclusive_line: Line,
    shared_line: Line,
}

/// The duty of a new wait about the driver of its line.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Drive {
    /// Nothing: another drives the line.
    Not,
    /// It drives the line now.
    Begins,
    /// As `Begins`; but no call in the kernel will end because its time is over.
    CannotEnd,
}

impl Lines {
    pub(super) fn line(&mut self, mode: LockMode) -> &mut Line {
        match mode {
            LockMode::Exclusive => &mut self.exclusive_line,
            LockMode::Shared => &mut self.shared_line,
        }
    }
}

impl NamedFile {
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

    /// Locks it if that can be at once, and nobody is next for it, here or in another process.
    pub fn try_lock(&self, mode: LockMode, asker: Asker) -> Result<Option<FileHold>, FileFailure> {
        {
            let state = self.state.lock();
            if !state.exclusive_line.wanted.is_empty() || !state.shared_line.wanted.is_empty() {
                return Ok(None);
            }
        }
        // Shared, so that two who try do not keep each other out; whoever is next has it exclusively.
        let Some(turn) = self.files.try_lock(FileRole::Turn, LockMode::Shared)? else { return Ok(None) };
        let Some(lock) = self.try_file(mode)? else { return Ok(None) };
        drop(turn);
        FileHold::begin(&self.files, mode, lock, asker).map(Some)
    }

    /// Locks it unless somebody holds it; shared, unless somebody waits to hold it alone, too.
    pub fn lock_if_available(&self, mode: LockMode, asker: Asker) -> Result<Option<FileHold>, FileFailure> {
        if mode == LockMode::Shared
            && (!self.state.lock().exclusive_line.wanted.is_empty() || !self.files.is_gate_open()?)
        {
            return Ok(None);
        }
        if fault!(AvailableNeedsTurn) {
            return self.try_lock(mode, asker);
        }
        let Some(lock) = self.try_file(mode)? else { return Ok(None) };
        FileHold::begin(&self.files, mode, lock, asker).map(Some)
    }

    fn try_file(&self, mode: LockMode) -> Result<Option<Arc<Locked>>, FileFailure> {
        if mode == LockMode::Exclusive {
            return Ok(self.files.try_lock(FileRole::Lock, mode)?.map(Arc::new));
        }
        let shared = self.state.lock().shared.upgrade();
        if let Some(shared) = shared
            && self.files.leads_to(FileRole::Lock, &shared)?
        {
            return Ok(Some(shared));
        }
        let lock = self.files.try_lock(FileRole::Lock, mode)?.map(Arc::new);
        if let Some(lock) = &lock {
            self.state.lock().shared = Arc::downgrade(lock);
        }
        Ok(lock)
    }

    /// Takes in a wait. Returns what the caller has to do about `driver`.
    pub(super) fn push(self: &Arc<Self>, mode: LockMode, wanted: Wanted, driver: Driver) -> Drive {
        let mut look_at = wanted.since + PATIENCE;
        let mut state = self.state.lock();
        let line = state.line(mode);
        line.wanted.push_back(wanted);
        let is_first = matches!(line.driver, Driver::None);
        if is_first {
            if let Driver::Thread { until: Some(until), .. } = driver {
                look_at = look_at.min(until);
            }
            line.driver = driver;
        }
        let ends = self.look_later(mode, line, look_at);
        match is_first {
            true if ends => Drive::Begins,
            true => Drive::CannotEnd,
            false => Drive::Not,
        }
    }

    /// Takes a wait back; false if there is none of this id. `left` is kept as long as the kernel may still grant it.
    pub(super) fn withdraw(&self, mode: LockMode, id: u64, left: &Arc<Left>) -> bool {
        let mut state = self.state.lock();
        let line = state.line(mode);
        let Some(index) = line.wanted.iter().position(|wanted| wanted.id == id) else { return false };
        let withdrawn = line.wanted.remove(index);
        let given_up = line.give_up(Some(left));
        drop((state, withdrawn));
        given_up.carry_out();
        true
    }

    /// The next step of `thread`, which drives a line. If it waits, others can end its call from now on.
    pub(super) fn next_step(self: &Arc<Self>, mode: LockMode, thread: &Arc<Interrupt>) -> Step {
        let _left; // It is dropped after the lock.
        let mut state = self.state.lock();
        _left = thread.rest();
        let line = state.line(mode);
        if !line.is_driven_by(thread) {
            return Step::End;
        }
        if line.wanted.is_empty() {
            line.driver = Driver::None;
            return Step::End;
        }
        thread.arm();
        self.close_gate(mode, line);
        if line.turn.is_some() {
            return Step::Lock;
        }
        self.look_later(mode, line, Instant::now() + PATIENCE);
        Step::Turn
    }

    /// Tells those who would share that somebody waits to hold the name alone. One that just looks at the gate is away
    /// at once; if it was stopped there, so be it.
    fn close_gate(&self, mode: LockMode, line: &mut Line) {
        if mode == LockMode::Exclusive && line.gate.is_none() && !fault!(GateStaysOpen) {
            line.gate = self.files.try_lock(FileRole::Gate, LockMode::Shared).ok().flatten();
        }
    }

    /// It is this process's turn. False if nobody here wants it any more.
    pub(super) fn take_turn(&self, mode: LockMode, turn: Locked) -> bool {
        let mut state = self.state.lock();
        let line = state.line(mode);
        let is_wanted = !line.wanted.is_empty();
        if is_wanted {
            line.turn = Some(turn);
        }
        is_wanted
    }

    /// The kernel has locked `lock` in this mode: lets in those who wait. If nobody does, it is freed.
    pub(super) fn grant(&self, mode: LockMode, lock: Locked) {
        let lock = Arc::new(lock);
        let mut state = self.state.lock();
        let line = state.line(mode);
        let many = if mode == LockMode::Shared { line.wanted.len() } else { line.wanted.len().min(1) };
        let mut granted: Vec<Wanted> = line.wanted.drain(..many).collect();
        // Given up before anybody is let in: who is, and lets others know, is not to find them kept out by it.
        let given_up = line.pass_on();
        if mode == LockMode::Shared && many > 0 {
            state.shared = Arc::downgrade(&lock);
        }
        drop(state);
        given_up.carry_out();
        let begin = |lock, asker| FileHold::begin(&self.files, mode, lock, asker);
        // The last one gets what this thread has: nothing is locked any more when they have all released it.
        let Some(last) = granted.pop() else { return };
        for Wanted { asker, reply, .. } in granted {
            reply(begin(Arc::clone(&lock), asker));
        }
        (last.reply)(begin(lock, last.asker));
    }

    /// The first one who waits cannot be served.
    pub(super) fn fail(&self, mode: LockMode, failure: FileFailure) {
        let mut state = self.state.lock();
        let line = state.line(mode);
        let first = line.wanted.pop_front();
        let given_up = line.give_up(None);
        drop(state);
        given_up.carry_out();
        if let Some(Wanted { reply, .. }) = first {
            reply(Err(failure));
        }
    }

    /// `thread` drives the line no longer. Returns the driver that the caller has to start, if anybody waits still.
    pub(super) fn stop_driving(&self, mode: LockMode, thread: &Arc<Interrupt>) -> Option<Arc<Interrupt>> {
        let mut state = self.state.lock();
        let line = state.line(mode);
        if !line.is_driven_by(thread) {
            return None;
        }
        line.driver = Driver::None;
        if line.wanted.is_empty() {
            return None;
        }
        Some(line.leave_to_thread())
    }

    /// A thread is about to drive the line of the keeper: what ends its calls; none if that is done with it.
    pub(super) fn leave_to_thread(&self, mode: LockMode) -> Option<Arc<Interrupt>> {
        let mut state = self.state.lock();
        let line = state.line(mode);
        line.is_left_to_keeper().then(|| line.leave_to_thread())
    }

    /// `thread` does not drive the line: the keeper tries. False if another does already, or nobody waits.
    pub(super) fn leave_to_keeper(&self, mode: LockMode, thread: &Arc<Interrupt>) -> bool {
        self.state.lock().line(mode).leave_to_keeper(thread)
    }

    /// Whether the keeper is done with a line: a thread drives it, or nobody waits any more.
    pub(super) fn end_polling(&self, mode: LockMode) -> bool {
        let mut state = self.state.lock();
        let line = state.line(mode);
        let is_left = line.is_left_to_keeper();
        if is_left {
            self.close_gate(mode, line);
        }
        !is_left
    }

    /// Whether this process is next.
    pub(super) fn is_next(&self, mode: LockMode) -> bool {
        self.state.lock().line(mode).turn.is_some()
    }

    /// Waits for the lock without a turn: whoever is next may have been stopped.
    fn wait_directly(self: &Arc<Self>, mode: LockMode, interrupt: Arc<Interrupt>) -> io::Result<()> {
        let name = Arc::clone(self);
        let file_mode = if fault!(DirectWaitIsAlone) { LockMode::Exclusive } else { mode };
        threads::start(move || {
            // If it fails, the thread that waits for the turn will find out.
            if let Ok(Some(lock)) = name.files.lock(FileRole::Lock, file_mode, &interrupt) {
                name.grant(mode, lock);
            }
            name.end_direct(mode);
            drop(interrupt.rest());
        })
    }

    /// The thread that has waited without a turn is done.
    fn end_direct(self: &Arc<Self>, mode: LockMode) {
        let mut state = self.state.lock();
        let line = state.line(mode);
        if !fault!(DirectWaitIsTheOnlyOne) {
            line.direct = Direct::None;
        }
        if !line.wanted.is_empty() {
            self.look_later(mode, line, Instant::now() + PATIENCE);
        }
    }

    /// Whether the keeper will look after the line; it cannot if no thread can be started.
    fn look_later(self: &Arc<Self>, mode: LockMode, line: &mut Line, at: Instant) -> bool {
        if line.look_at.is_none_or(|other| at < other) {
            let name = Arc::clone(self);
            // Without the keeper, a line that has a thread goes on all the same, in order.
            line.look_at = keeper::add(at, Box::new(move || name.look(mode, at))).is_ok().then_some(at);
        }
        line.look_at.is_some()
    }

    /// The keeper looks after a line at this time.
    fn look(self: &Arc<Self>, mode: LockMode, at: Instant) {
        let now = Instant::now();
        let mut state = self.state.lock();
        let line = state.line(mode);
        if line.look_at != Some(at) {
            return;
        }
        line.look_at = None;
        let Some(first) = line.wanted.front() else { return };
        let patience_ends = first.since + PATIENCE;
        if let Driver::Thread { interrupt, until: Some(until) } = &line.driver {
            let mut again = *until;
            if now >= again {
                // Until it drives no longer: it may be between two steps.
                interrupt.interrupt();
                again = now + INSIST;
            }
            self.look_later(mode, line, again);
        }
        if now < patience_ends || fault!(PatienceNeverEnds) {
            self.look_later(mode, line, patience_ends);
            return;
        }
        self.close_gate(mode, line);
        if line.turn.is_some() {
            return;
        }
        match line.direct {
            Direct::Thread(_) => return,
            Direct::Keeper => {
                self.look_later(mode, line, now + SELDOM);
                drop(state);
                if let Ok(Some(lock)) = self.files.try_lock(FileRole::Lock, mode) {
                    self.grant(mode, lock);
                }
                return;
            }
            Direct::None | Direct::AtGate(_) if mode == LockMode::Exclusive => {}
            Direct::None | Direct::AtGate(_) => {
                let clock = SystemTime::now();
                let until = if let Direct::AtGate(until) = line.direct { until } else { next_second(clock) };
                let left = left_until(until, clock);
                let is_closed = left.is_some() || fault!(GateIsClosedForEver);
                if is_closed && !self.files.is_gate_open().unwrap_or(true) {
                    line.direct = Direct::AtGate(until);
                    self.look_later(mode, line, now + left.unwrap_or_default().min(GATE_LOOK));
                    return;
                }
            }
        }
        let interrupt = Arc::<Interrupt>::default();
        line.direct = Direct::Thread(Arc::clone(&interrupt));
        drop(state);
        if self.wait_directly(mode, interrupt).is_err() {
            let mut state = self.state.lock();
            let line = state.line(mode);
            line.direct = Direct::Keeper;
            self.look_later(mode, line, now);
        }
    }
}

impl Drop for NamedFile {
    fn drop(&mut self) {
        let mut names = NAMES.lock();
        // Another may have taken its place.
        if names.get(&self.key).is_some_and(|name| name.strong_count() == 0) && !fault!(NamesOfFilesStay) {
            names.remove(&self.key);
        }
    }
}

#[cfg(all(test, unix))]
mod tests;
