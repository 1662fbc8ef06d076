//! Waits of this process: whoever waits in the kernel for those who want a name, and how a thread blocks for one.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::file::{FileFailure, LockMode};
use super::hold::Asker;
use super::interrupt::{Interrupt, Left};
use super::keeper;
use super::line::{Driver, FileOutcome, Step, Wanted};
use super::name::FileRole;
use super::names::{Drive, NamedFile};
use super::{system, threads};

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

/// A wait of this process.
#[derive(Debug)]
pub struct FileWait {
    name: Arc<NamedFile>,
    mode: LockMode,
    id: u64,
}

impl FileWait {
    /// One that has not begun.
    pub fn new(name: &Arc<NamedFile>, mode: LockMode) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        // Relaxed: only that no two are the same counts.
        Self { name: Arc::clone(name), mode, id: NEXT.fetch_add(1, Ordering::Relaxed) }
    }

    /// It begins. `reply` gets the outcome once, on another thread; never after the wait was withdrawn.
    pub fn begin(&self, asker: Asker, reply: impl FnOnce(FileOutcome) + Send + 'static) {
        let Self { name, mode, id } = self;
        let interrupt = Arc::<Interrupt>::default();
        let driver = Driver::Thread { interrupt: Arc::clone(&interrupt), until: None };
        if name.push(*mode, Wanted::new(*id, asker, reply), driver) != Drive::Not {
            name.start_driver(*mode, interrupt);
        }
    }

    /// As [`Self::begin`], on a thread that is about to block until the outcome has come. Most waits are short: until this time it
    /// waits itself, so that nobody else has to wake it. Returns then, or when the wait `is_over`.
    pub fn begin_here(
        &self,
        asker: Asker,
        until: Instant,
        is_over: &dyn Fn() -> bool,
        reply: impl FnOnce(FileOutcome) + Send + 'static,
    ) {
        if !system::can_interrupt() || !system::gets_interruptions() {
            return self.begin(asker, reply);
        }
        let Self { name, mode, id } = self;
        let interrupt = Arc::<Interrupt>::default();
        let driver = Driver::Thread { interrupt: Arc::clone(&interrupt), until: Some(until) };
        let mine = name.push(*mode, Wanted::new(*id, asker, reply), driver);
        if mine == Drive::Not {
            return;
        }
        if mine == Drive::Begins || fault!(WaitsWithoutAnEnd) {
            drive(name, *mode, &interrupt, || is_over() || Instant::now() >= until);
        }
        if let Some(next) = name.stop_driving(*mode, &interrupt) {
            name.start_driver(*mode, next);
        }
    }

    /// Takes it back; false if it has not begun, or is over and its outcome on the way. `left` is kept for as long as the
    /// kernel may still grant it, so that others find it locked for a moment.
    pub fn withdraw(&self, left: &Arc<Left>) -> bool {
        self.name.withdraw(self.mode, self.id, left)
    }
}

impl NamedFile {
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
}

/// As a thread of the crowd.
fn drive_in_crowd(name: Arc<NamedFile>, mode: LockMode, interrupt: Arc<Interrupt>) {
    driven().push_back((Arc::clone(&name), mode, Arc::clone(&interrupt)));
    threads::outlive(|| drive(&name, mode, &interrupt, || false));
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
    keeper::add(Instant::now() + after, Box::new(task))
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

    #[test]
    fn a_name_is_forgotten_though_a_reply_to_a_wait_for_it_panics() {
        let scratch = Scratch::new();
        let name = NamedFile::get(&Arc::new(Directory::open(Some(scratch.path())).unwrap()), &[97]);
        let asker = Asker { thread: 0, wants_fence: false, is_part: false };
        FileWait::new(&name, LockMode::Exclusive).begin(asker, |_| std::panic::resume_unwind(Box::new(())));
        let (until, left) = (Instant::now() + Duration::from_secs(20), Arc::downgrade(&name));
        drop(name);
        while left.strong_count() > 0 {
            assert!(Instant::now() < until, "somebody has it still");
            std::thread::yield_now();
        }
    }

    /// The outcome of a wait to hold it alone, which nobody sees to.
    #[cfg(unix)]
    fn wait(name: &NamedFile) -> std::sync::mpsc::Receiver<FileOutcome> {
        let (says, said) = std::sync::mpsc::channel();
        let asker = Asker { thread: 0, wants_fence: false, is_part: false };
        let wanted = Wanted::new(0, asker, move |outcome| says.send(outcome).unwrap_or_default());
        name.state.lock().line(LockMode::Exclusive).wanted.push_back(wanted);
        said
    }

    #[test]
    #[cfg(unix)]
    fn the_keeper_tries_for_a_free_lock_once_it_has_the_turn() {
        let scratch = Scratch::new();
        let name = NamedFile::get(&Arc::new(Directory::open(Some(scratch.path())).unwrap()), &[97]);
        let said = wait(&name);
        let turn = name.files.try_lock(FileRole::Turn, LockMode::Exclusive).unwrap().unwrap();
        assert!(!try_in_line(&name, LockMode::Exclusive));
        assert!(said.try_recv().is_err(), "another is next");
        drop(turn);
        let lock = name.files.try_lock(FileRole::Lock, LockMode::Exclusive).unwrap().unwrap();
        assert!(!try_in_line(&name, LockMode::Exclusive) && name.is_next(LockMode::Exclusive));
        drop(lock);
        assert!(try_in_line(&name, LockMode::Exclusive));
        assert!(said.try_recv().unwrap().is_ok());
    }

    #[test]
    #[cfg(unix)]
    fn a_wait_fails_with_the_file_that_the_system_refuses() {
        for by_keeper in [false, true] {
            for role in [FileRole::Turn, FileRole::Lock] {
                let scratch = Scratch::new();
                let name = NamedFile::get(&Arc::new(Directory::open(Some(scratch.path())).unwrap()), &[97]);
                std::os::unix::fs::symlink("elsewhere", name.files.path(role)).unwrap();
                let said = [wait(&name), wait(&name)];
                if by_keeper {
                    assert!(try_in_line(&name, LockMode::Exclusive));
                    assert!(said[1].try_recv().is_err(), "the second is tried for by itself");
                    assert!(try_in_line(&name, LockMode::Exclusive));
                } else {
                    let thread = name.state.lock().line(LockMode::Exclusive).leave_to_thread();
                    let tries = std::cell::Cell::new(0);
                    drive(&name, LockMode::Exclusive, &thread, || tries.replace(tries.get() + 1) > 10);
                }
                for said in said {
                    let Ok(Err(FileFailure::System { verb: "open", path, .. })) = said.try_recv() else {
                        panic!("{role:?}, by the keeper: {by_keeper}")
                    };
                    assert_eq!(&path, name.files.path(role));
                }
            }
        }
    }
}
