//! The atomics, locks, threads and the clock of a real program.

pub use parking_lot::{Mutex, MutexGuard, RwLock};
pub use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

/// The monotonic clock.
pub fn now() -> Instant {
    Instant::now()
}

/// The time that has passed since then.
pub fn since(then: Instant) -> Duration {
    now().saturating_duration_since(then)
}

/// Whether that time has come.
pub fn has_come(time: Instant) -> bool {
    now() >= time
}

/// The same clock, in nanoseconds since its first use, and never 0.
pub fn nanoseconds() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(now).elapsed().as_nanos() as u64 + 1
}

/// Whether spinning may be of use: not on one processor, where the others cannot go on meanwhile.
pub fn has_several_processors() -> bool {
    static SEVERAL: OnceLock<bool> = OnceLock::new();
    *SEVERAL.get_or_init(|| thread::available_parallelism().is_ok_and(|count| count.get() > 1))
}

/// The time for which a thread still spins.
pub struct Spin {
    until: u64,
}

impl Spin {
    /// For so long.
    pub fn new(time: Duration) -> Self {
        Self { until: nanoseconds() + time.as_nanos() as u64 }
    }

    /// Whether it goes on, given the time in [`nanoseconds`].
    pub fn goes_on(&mut self, now: u64) -> bool {
        std::hint::spin_loop();
        now < self.until
    }
}

/// One thread, which parks here until another unparks it.
pub struct Thread(thread::Thread);

impl Thread {
    /// The current one.
    pub fn current() -> Self {
        Self(thread::current())
    }

    /// Parks until unparked or until `until`; may return early for no reason. Called by the thread itself.
    pub fn park_until(&self, until: Instant) {
        let left = until.saturating_duration_since(now());
        if !left.is_zero() {
            thread::park_timeout(left);
        }
    }

    /// Ends the thread's sleep, now or when it parks next.
    pub fn unpark(&self) {
        self.0.unpark();
    }
}
