//! The threads that wait in the kernel: few, and used again.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{io, thread};

use super::system;

/// The number of threads that wait in the kernel at most; the keeper tries for the rest from time to time. They cannot just wait
/// for one another: whoever holds a lock may wait for the next.
const LARGEST_CROWD: usize = 64;
/// Such a thread calls little.
const STACK: usize = 128 << 10;

/// A thread that has nothing to do ends after this time.
const REST: Duration = Duration::from_secs(1);

/// The threads that wait in the kernel, and the jobs that have to wait for one of them.
static CROWD: Mutex<Crowd> = Mutex::new(Crowd { size: 0, queue: VecDeque::new() });
/// The threads that have nothing to do, by their numbers.
static IDLE: Mutex<Vec<(u64, SyncSender<Job>)>> = Mutex::new(Vec::new());

struct Crowd {
    size: usize,
    queue: VecDeque<Job>,
}

type Job = Box<dyn FnOnce() + Send>;

/// Has a thread wait in the kernel.
pub fn start(wait: impl FnOnce() + Send + 'static) -> io::Result<()> {
    {
        let mut crowd = crowd();
        if crowd.size >= LARGEST_CROWD {
            return Err(io::ErrorKind::QuotaExceeded.into());
        }
        crowd.size += 1;
    }
    let job: Job = Box::new(wait);
    let resting = idle().pop();
    if let Some((_, thread)) = resting {
        // It waits for just this, since nobody else has its sender any more.
        let sent = thread.send(job);
        debug_assert!(sent.is_ok(), "it takes itself out of the list before it ends");
        return Ok(());
    }
    let builder = thread::Builder::new().name("sablock-wait".into()).stack_size(STACK);
    let started = system::without_signals(|| builder.spawn(|| run(job)));
    if started.is_err() {
        crowd().size -= 1;
    }
    started.map(drop)
}

/// The next thread that has done what it had to do does this, in the order in which it was asked for. False if there is room for more.
pub fn queue(wait: impl FnOnce() + Send + 'static) -> bool {
    let mut crowd = crowd();
    let is_full = crowd.size >= LARGEST_CROWD;
    if is_full {
        crowd.queue.push_back(Box::new(wait));
    }
    is_full
}

/// Does something on a thread that others need afterwards: it goes on though that panics, which was printed by then.
pub fn outlive(act: impl FnOnce()) {
    let _ = catch_unwind(AssertUnwindSafe(act));
}

/// Does what it was given, and what has to wait for a thread.
fn work(first: Job) {
    let mut next = Some(first);
    while let Some(job) = next {
        outlive(job);
        let mut crowd = crowd();
        next = crowd.queue.pop_front();
        if next.is_none() {
            crowd.size -= 1;
        }
    }
}

fn crowd() -> MutexGuard<'static, Crowd> {
    CROWD.lock().unwrap_or_else(PoisonError::into_inner)
}

fn idle() -> MutexGuard<'static, Vec<(u64, SyncSender<Job>)>> {
    IDLE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A thread that waits in the kernel, and for the next wait.
fn run(first: Job) {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    // Relaxed: only that no two are the same counts.
    let number = NEXT.fetch_add(1, Ordering::Relaxed) as u64;
    system::let_interruptions_in();
    work(first);
    loop {
        let (sender, jobs) = sync_channel(1);
        idle().push((number, sender));
        let job = jobs.recv_timeout(REST).or_else(|_| {
            let mut idle = idle();
            match idle.iter().position(|(other, _)| *other == number) {
                Some(place) => {
                    idle.remove(place);
                    Err(RecvTimeoutError::Timeout)
                }
                // Somebody has its sender, and something to do for it.
                None => {
                    drop(idle);
                    jobs.recv().map_err(|_| RecvTimeoutError::Disconnected)
                }
            }
        });
        let Ok(job) = job else { return };
        work(job);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::panic::resume_unwind;
    use std::sync::mpsc::channel;
    use std::time::Instant;

    use super::*;

    /// As soon as there is room for it.
    fn start_soon(job: impl FnOnce() + Clone + Send + 'static) {
        let until = Instant::now() + Duration::from_secs(20);
        while start(job.clone()).is_err() {
            assert!(Instant::now() < until, "there is no room for it");
            thread::yield_now();
        }
    }

    #[test]
    fn a_job_that_panics_costs_no_thread() {
        for _ in 0..=LARGEST_CROWD {
            let (ends, ended) = channel::<()>();
            start_soon(move || {
                let _ends = ends;
                // As a panic that nothing is printed of.
                resume_unwind(Box::new(()));
            });
            assert!(ended.recv().is_err());
        }
        let (says, said) = channel();
        start_soon(move || says.send(()).unwrap_or_default());
        assert!(said.recv().is_ok());
    }
}
