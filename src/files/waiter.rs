//! Waits of this process: whoever waits in the kernel for those who want a name, and how a thread blocks for one.

use std::collections::VecDeque;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::file::{FileFailure, LockMode};
use super::hold::{Asker, FileHold};
use super::interrupt::{Interrupt, Left};
use super::keeper;
use super::line::{Driver, FileOutcome, Step};
use super::name::FileRole;
use super::names::{Drive, NamedFile};
use super::{system, threads};
use crate::sync::SLICE;

const FIRST_TRY: Duration = Duration::from_millis(1);
const SELDOMEST_TRY: Duration = Duration::from_millis(50);
/// When a line has queued so long for a thread, others lose theirs,
const LONGEST_WITHOUT: Duration = Duration::from_millis(20);
/// one after the other.
const BETWEEN_CHANGES: Duration = Duration::from_millis(5);

type Driven = (Arc<NamedFile>, LockMode, Arc<Interrupt>);

/// The lines that threads drive, those first that have one for the longest time. Whoever just tries finds a busy name locked each time:
/// all lines have to wait in the kernel, and when there are too many they take turns with its threads.
static DRIVEN: Mutex<VecDeque<Driven>> = Mutex::new(VecDeque::new());
/// When a line lost its thread to another last.
static CHANGED: Mutex<Option<Instant>> = Mutex::new(None);

fn driven() -> MutexGuard<'static, VecDeque<Driven>> {
    DRIVEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A wait that has begun.
#[derive(Debug)]
pub struct FileWait {
    name: Arc<NamedFile>,
    mode: LockMode,
    id: u64,
}

impl FileWait {
    /// Takes it back; false if it is over already, and its outcome on the way. `left` is kept for as long as the
    /// kernel may still grant it, so that others find it locked for a moment.
    pub fn withdraw(&self, left: Option<&Arc<Left>>) -> bool {
        self.name.withdraw(self.mode, self.id, left)
    }
}

/// The end of a blocking wait without the lock.
#[derive(Debug)]
pub enum NotLocked {
    /// The time was over.
    TimedOut,
    /// The pause between two slices returned that the thread is to end.
    Interrupted,
    /// The wait could not be.
    Failed(FileFailure),
}

impl NamedFile {
    /// Waits for the lock. `reply` gets the outcome once, on another thread; never after the wait was withdrawn.
    pub fn wait(
        self: &Arc<Self>,
        mode: LockMode,
        asker: Asker,
        reply: impl FnOnce(FileOutcome) + Send + 'static,
    ) -> FileWait {
        let interrupt = Arc::<Interrupt>::default();
        let driver = Driver::Thread { interrupt: Arc::clone(&interrupt), until: None };
        let (id, drive) = self.push(mode, asker, Box::new(reply), driver);
        if drive != Drive::Not {
            self.start_driver(mode, interrupt);
        }
        FileWait { name: Arc::clone(self), mode, id }
    }

    fn start_driver(self: &Arc<Self>, mode: LockMode, interrupt: Arc<Interrupt>) {
        if !self.drive_on_a_thread(mode, interrupt) {
            poll(self, mode, FIRST_TRY);
        }
    }

    /// False if there is no thread for the line, which is the keeper's then.
    fn drive_on_a_thread(self: &Arc<Self>, mode: LockMode, interrupt: Arc<Interrupt>) -> bool {
        let (name, thread) = (Arc::clone(self), Arc::clone(&interrupt));
        let started = threads::start(move || drive_in_crowd(name, mode, thread));
        if started.is_err() {
            self.leave_to_keeper(mode, &interrupt);
        }
        started.is_ok()
    }

    /// The keeper's line gets the thread that is free next, if it is the keeper's still.
    fn queue_for_thread(self: &Arc<Self>, mode: LockMode) -> bool {
        let name = Arc::downgrade(self);
        threads::queue(move || {
            if let Some(name) = name.upgrade()
                && let Some(interrupt) = name.leave_to_thread(mode)
            {
                drive_in_crowd(name, mode, interrupt);
            }
        })
    }

    /// Waits for the lock and blocks the thread, until `deadline` if there is one. `pause` is called between two slices of
    /// the wait; when it returns false, the thread is to end.
    pub fn wait_blocking(
        self: &Arc<Self>,
        mode: LockMode,
        asker: Asker,
        deadline: Option<Instant>,
        pause: &mut dyn FnMut() -> bool,
    ) -> Result<FileHold, NotLocked> {
        let (sender, outcome) = sync_channel(1);
        let mut slice_end = Instant::now() + SLICE;
        let until = deadline.map_or(slice_end, |deadline| deadline.min(slice_end));
        // The receiver lives until the outcome has come or the wait was withdrawn.
        let reply = move |outcome| drop(sender.send(outcome));
        let wait = if system::can_interrupt() && system::gets_interruptions() {
            let interrupt = Arc::<Interrupt>::default();
            let driver = Driver::Thread { interrupt: Arc::clone(&interrupt), until: Some(until) };
            let (id, mine) = self.push(mode, asker, Box::new(reply), driver);
            let wait = FileWait { name: Arc::clone(self), mode, id };
            if mine != Drive::Not {
                // Most waits are short. In the first slice this thread waits itself: nobody else has to wake it.
                let mut result = None;
                if mine == Drive::Begins || fault!(WaitsWithoutAnEnd) {
                    drive(self, mode, &interrupt, || {
                        result = outcome.try_recv().ok();
                        result.is_some() || Instant::now() >= until
                    });
                }
                if let Some(next) = self.stop_driving(mode, &interrupt) {
                    self.start_driver(mode, next);
                }
                if let Some(result) = result {
                    return result.map_err(NotLocked::Failed);
                }
            }
            wait
        } else {
            self.wait(mode, asker, reply)
        };
        loop {
            let until = deadline.map_or(slice_end, |deadline| deadline.min(slice_end));
            match outcome.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(outcome) => return outcome.map_err(NotLocked::Failed),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => unreachable!("the sender is dropped after it has sent"),
            }
            let now = Instant::now();
            if deadline.is_some_and(|deadline| now >= deadline) {
                let (sender, has_left) = sync_channel(1);
                let left = Left::new(move || {
                    let _ = sender.send(());
                });
                if wait.withdraw(Some(&left)) {
                    drop(left);
                    let _ = has_left.recv();
                    return Err(NotLocked::TimedOut);
                }
                return outcome.recv().expect("it is on the way").map_err(NotLocked::Failed);
            }
            if now >= slice_end {
                if !pause() {
                    if !wait.withdraw(None)
                        && let Ok(Ok(hold)) = outcome.recv()
                    {
                        if fault!(InterruptedFileGrantIsMarked) {
                            hold.end();
                        } else {
                            hold.release();
                        }
                    }
                    return Err(NotLocked::Interrupted);
                }
                slice_end = Instant::now() + SLICE;
            }
        }
    }
}

/// As a thread of the crowd.
fn drive_in_crowd(name: Arc<NamedFile>, mode: LockMode, interrupt: Arc<Interrupt>) {
    driven().push_back((Arc::clone(&name), mode, Arc::clone(&interrupt)));
    drive(&name, mode, &interrupt, || false);
    driven().retain(|(.., other)| !Arc::ptr_eq(other, &interrupt));
}

/// Waits for the turn, then for the lock, until nobody wants it any more, or it is over.
fn drive(name: &Arc<NamedFile>, mode: LockMode, interrupt: &Arc<Interrupt>, mut is_over: impl FnMut() -> bool) {
    while !is_over() {
        let done = match name.next_step(mode, interrupt) {
            Step::End => return,
            Step::Turn => name.files.lock(FileRole::Turn, LockMode::Exclusive, interrupt).map(|turn| {
                if let Some(turn) = turn {
                    name.take_turn(mode, turn);
                }
            }),
            Step::Lock => name.files.lock(FileRole::Lock, mode, interrupt).map(|lock| {
                if let Some(lock) = lock {
                    name.grant(mode, lock);
                }
            }),
        };
        if let Err(failure) = done {
            name.fail(mode, failure);
        }
    }
    drop(interrupt.rest());
}

/// The keeper tries from time to time for a line that has no thread, until there is one for it.
fn poll(name: &Arc<NamedFile>, mode: LockMode, first: Duration) {
    if let Err(error) = poll_later(Arc::clone(name), mode, first, None) {
        let mut error = Some(error);
        while !name.end_polling(mode) {
            name.fail(mode, FileFailure::NoThread(error.take().unwrap_or(std::io::ErrorKind::OutOfMemory.into())));
        }
    }
}

/// `since`: from when on it has queued for a thread.
fn poll_later(
    name: Arc<NamedFile>,
    mode: LockMode,
    after: Duration,
    since: Option<Instant>,
) -> Result<(), std::io::Error> {
    let task = move || {
        if name.end_polling(mode) {
            return;
        }
        let is_served = try_in_line(&name, mode);
        if name.end_polling(mode) {
            return;
        }
        let mut since = since;
        if !fault!(KeeperKeepsTheLine) {
            if since.is_none() && name.queue_for_thread(mode) {
                since = Some(Instant::now());
            }
            match since {
                Some(since) if since.elapsed() >= LONGEST_WITHOUT => make_room(),
                Some(_) => {}
                None => {
                    if let Some(interrupt) = name.leave_to_thread(mode)
                        && name.drive_on_a_thread(mode, interrupt)
                    {
                        return;
                    }
                }
            }
        }
        let next = if is_served { FIRST_TRY } else { (2 * after).min(SELDOMEST_TRY) };
        let _ = poll_later(name, mode, next, since);
    };
    keeper::add(Instant::now() + after, Box::new(task)).map(drop)
}

/// The line that has a thread for the longest time loses it to the first that queues for one.
fn make_room() {
    let mut changed = CHANGED.lock().unwrap_or_else(PoisonError::into_inner);
    let is_early = changed.is_some_and(|last| last.elapsed() < BETWEEN_CHANGES);
    if is_early || !system::can_interrupt() || fault!(CrowdStays) {
        return;
    }
    loop {
        let Some((name, mode, interrupt)) = driven().pop_front() else { return };
        if name.leave_to_keeper(mode, &interrupt) {
            if !interrupt.interrupt() {
                keeper::insist(&[interrupt]);
            }
            *changed = Some(Instant::now());
            // It was locked a moment ago.
            poll(&name, mode, SELDOMEST_TRY);
            return;
        }
    }
}

/// Tries for the turn, and with it for the lock. Whether somebody got it, or an error.
fn try_in_line(name: &Arc<NamedFile>, mode: LockMode) -> bool {
    if !name.is_next(mode) {
        match name.files.try_lock(FileRole::Turn, LockMode::Exclusive) {
            Ok(Some(turn)) => {
                if !name.take_turn(mode, turn) {
                    return false;
                }
            }
            Ok(None) => return false,
            Err(failure) => {
                name.fail(mode, failure);
                return true;
            }
        }
    }
    match name.files.try_lock(FileRole::Lock, mode) {
        Ok(Some(lock)) => name.grant(mode, lock),
        Ok(None) => return false,
        Err(failure) => name.fail(mode, failure),
    }
    true
}

#[cfg(test)]
mod tests {
    use super::super::directory::Directory;
    use super::super::names::NAMES;
    use super::*;
    use crate::files::testing::Scratch;

    #[test]
    fn a_name_that_nobody_uses_is_forgotten() {
        let scratch = Scratch::new();
        let directory = Arc::new(Directory::open(Some(scratch.path())).unwrap());
        let known = || NAMES.lock().keys().filter(|(path, _)| path == directory.path()).count();
        let (name, again) = (NamedFile::get(&directory, &[97]), NamedFile::get(&directory, &[97]));
        assert!(Arc::ptr_eq(&name, &again));
        drop(again);
        assert_eq!(known(), 1);
        drop(name);
        assert_eq!(known(), 0);
    }
}
