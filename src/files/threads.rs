//! The threads that wait in the kernel: few, and used again.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{io, thread};

use super::system;

/// So many threads wait in the kernel at most; the keeper tries for the rest from time to time. They cannot just wait for one
/// another: whoever holds a lock may wait for the next.
const LARGEST_CROWD: usize = 64;
/// Such a thread calls little.
const STACK: usize = 128 << 10;

/// A thread that has nothing to do ends after this time.
const REST: Duration = Duration::from_secs(1);

/// How many threads wait in the kernel.
static CROWD: AtomicUsize = AtomicUsize::new(0);
/// Those that have nothing to do, by their numbers.
static IDLE: Mutex<Vec<(u64, SyncSender<Job>)>> = Mutex::new(Vec::new());

type Job = Box<dyn FnOnce() + Send>;

/// Has a thread wait in the kernel.
pub fn start(wait: impl FnOnce() + Send + 'static) -> io::Result<()> {
    // Relaxed: it counts threads, and orders nothing.
    if CROWD.fetch_add(1, Ordering::Relaxed) >= LARGEST_CROWD {
        CROWD.fetch_sub(1, Ordering::Relaxed);
        return Err(io::ErrorKind::QuotaExceeded.into());
    }
    let job: Job = Box::new(|| {
        wait();
        CROWD.fetch_sub(1, Ordering::Relaxed);
    });
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
        CROWD.fetch_sub(1, Ordering::Relaxed);
    }
    started.map(drop)
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
    first();
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
        job();
    }
}
