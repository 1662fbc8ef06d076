//! Waits: the threads that wait in the kernel, and those of this process who wait for them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};
use std::{io, thread};

use super::file::{Failure, Mode};
use super::hold::Hold;
use super::keeper;
use super::name::Part;
use super::names::{Name, Outcome};
use super::system;

/// So many threads wait in the kernel at most; the keeper tries for the rest from time to time. They cannot just wait for one
/// another: whoever holds a lock may wait for the next.
const LARGEST_CROWD: usize = 64;
/// Such a thread calls little.
const STACK: usize = 128 << 10;
/// A blocked thread looks this often whether it is to end.
const SLICE: Duration = Duration::from_millis(25);

/// How many threads wait in the kernel.
static CROWD: AtomicUsize = AtomicUsize::new(0);

/// A wait that has begun.
#[derive(Debug)]
pub struct Wait {
    name: Arc<Name>,
    mode: Mode,
    id: u64,
}

impl Wait {
    /// Takes it back; false if it is over already, and its outcome on the way.
    pub fn withdraw(&self) -> bool {
        self.name.withdraw(self.mode, self.id)
    }
}

/// How a blocking wait ended without the lock.
#[derive(Debug)]
pub enum Blocked {
    /// The time was over.
    TimedOut,
    /// The pause between two slices returned that the thread is to end.
    Interrupted,
    /// The wait could not be.
    Failed(Failure),
}

impl Name {
    /// Waits for the lock. `reply` gets the outcome once, on another thread; never after the wait was withdrawn.
    pub fn wait(self: &Arc<Self>, mode: Mode, thread: u32, reply: impl FnOnce(Outcome) + Send + 'static) -> Wait {
        let (id, is_first) = self.push(mode, thread, Box::new(reply));
        if is_first {
            let name = Arc::clone(self);
            if start(move || wait_in_line(&name, mode)).is_err() {
                keeper::poll(self, mode);
            }
        }
        keeper::watch(self, mode, id);
        Wait { name: Arc::clone(self), mode, id }
    }

    /// Waits for the lock and blocks the thread, until `deadline` if there is one. `pause` is called between two slices of
    /// the wait; when it returns false, the thread is to end.
    pub fn wait_blocking(
        self: &Arc<Self>,
        mode: Mode,
        thread: u32,
        deadline: Option<Instant>,
        pause: &mut dyn FnMut() -> bool,
    ) -> Result<Hold, Blocked> {
        let (sender, outcome) = sync_channel(1);
        // The receiver lives until the outcome has come or the wait was withdrawn.
        let wait = self.wait(mode, thread, move |outcome| drop(sender.send(outcome)));
        let mut slice_end = Instant::now() + SLICE;
        loop {
            let until = deadline.map_or(slice_end, |deadline| deadline.min(slice_end));
            match outcome.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(outcome) => return outcome.map_err(Blocked::Failed),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => unreachable!("the sender is dropped after it has sent"),
            }
            let now = Instant::now();
            if deadline.is_some_and(|deadline| now >= deadline) {
                if wait.withdraw() {
                    return Err(Blocked::TimedOut);
                }
                return outcome.recv().expect("it is on the way").map_err(Blocked::Failed);
            }
            if now >= slice_end {
                if !pause() {
                    if !wait.withdraw()
                        && let Ok(Ok(hold)) = outcome.recv()
                    {
                        hold.release();
                    }
                    return Err(Blocked::Interrupted);
                }
                slice_end = Instant::now() + SLICE;
            }
        }
    }
}

/// Waits for the turn, then for the lock, until nobody wants it any more.
fn wait_in_line(name: &Name, mode: Mode) {
    loop {
        match name.files.lock(Part::Turn, Mode::Exclusive) {
            Ok(turn) => {
                if !name.take_turn(mode, turn) {
                    return;
                }
                match name.files.lock(Part::Lock, mode) {
                    Ok(lock) => name.grant(mode, lock),
                    Err(failure) => name.fail(mode, failure),
                }
            }
            Err(failure) => name.fail(mode, failure),
        }
        if !name.goes_on(mode) {
            return;
        }
    }
}

/// Waits for the lock without a turn: whoever is next may have been stopped. Exclusively, so that one who wants to share it
/// overtakes nobody who waits for others to leave.
pub(super) fn wait_directly(name: &Arc<Name>, mode: Mode) -> Result<(), io::Error> {
    let name = Arc::clone(name);
    start(move || {
        // If it fails, the thread that waits for the turn will find out.
        if let Ok(lock) = name.files.lock(Part::Lock, Mode::Exclusive) {
            name.grant(mode, lock);
        }
        if let Some(id) = name.end_direct(mode) {
            keeper::watch(&name, mode, id);
        }
    })
}

/// Starts a thread for a wait in the kernel.
fn start(wait: impl FnOnce() + Send + 'static) -> Result<(), io::Error> {
    // Relaxed: it counts threads, and orders nothing.
    if CROWD.fetch_add(1, Ordering::Relaxed) >= LARGEST_CROWD {
        CROWD.fetch_sub(1, Ordering::Relaxed);
        return Err(io::ErrorKind::QuotaExceeded.into());
    }
    let run = || {
        wait();
        CROWD.fetch_sub(1, Ordering::Relaxed);
    };
    let builder = thread::Builder::new().name("sablock-wait".into()).stack_size(STACK);
    let started = system::without_signals(|| builder.spawn(run));
    if started.is_err() {
        CROWD.fetch_sub(1, Ordering::Relaxed);
    }
    started.map(drop)
}
