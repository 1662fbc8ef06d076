//! The atomics, locks and threads that the core uses: those of the standard library and parking_lot,
//! or loom's when a model runs (`--cfg loom`). Nothing else in the core names either.

use std::time::Duration;

#[cfg(not(loom))]
mod real {
    pub use parking_lot::{Mutex, MutexGuard, RwLock};
    pub use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

    use std::sync::OnceLock;
    use std::thread::{self, Thread};
    use std::time::Instant;

    /// The monotonic clock.
    pub fn now() -> Instant {
        Instant::now()
    }

    /// The same clock, in nanoseconds since its first use, and never 0.
    pub fn nanoseconds() -> u64 {
        static START: OnceLock<Instant> = OnceLock::new();
        START.get_or_init(now).elapsed().as_nanos() as u64 + 1
    }

    /// Where one thread sleeps until another wakes it.
    pub struct Bed(Thread);

    impl Bed {
        /// The current thread's.
        pub fn new() -> Self {
            Self(thread::current())
        }

        /// Sleeps until woken or until `until`; may return early for no reason. On the bed's own thread.
        pub fn sleep_until(&self, until: Instant) {
            let left = until.saturating_duration_since(now());
            if !left.is_zero() {
                thread::park_timeout(left);
            }
        }

        /// Wakes the thread, now or when it next goes to sleep.
        pub fn wake(&self) {
            self.0.unpark();
        }
    }
}

#[cfg(loom)]
mod modelled {
    pub use loom::sync::MutexGuard;
    pub use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

    use std::sync::OnceLock;
    use std::time::Instant;

    /// One fixed instant: in a model time never decides, so that every run of it can be replayed.
    pub fn now() -> Instant {
        static START: OnceLock<Instant> = OnceLock::new();
        *START.get_or_init(Instant::now)
    }

    /// The same instant.
    pub fn nanoseconds() -> u64 {
        1
    }

    /// A place to sleep. (loom's own `unpark` also wakes a thread that waits for a mutex, which then fails.)
    pub struct Bed {
        is_woken: loom::sync::Mutex<bool>,
        waking: loom::sync::Condvar,
    }

    #[allow(missing_docs)]
    impl Bed {
        pub fn new() -> Self {
            Self { is_woken: loom::sync::Mutex::new(false), waking: loom::sync::Condvar::new() }
        }

        /// In a model a time has come from the start, or never comes.
        pub fn sleep_until(&self, until: Instant) {
            let mut is_woken = self.is_woken.lock().unwrap();
            while !*is_woken && until > now() {
                is_woken = self.waking.wait(is_woken).unwrap();
            }
            *is_woken = false;
        }

        pub fn wake(&self) {
            *self.is_woken.lock().unwrap() = true;
            self.waking.notify_one();
        }
    }

    /// loom's mutex with parking_lot's face.
    #[derive(Default)]
    pub struct Mutex<T>(loom::sync::Mutex<T>);

    #[allow(missing_docs)]
    impl<T> Mutex<T> {
        pub fn new(value: T) -> Self {
            Self(loom::sync::Mutex::new(value))
        }

        pub fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().unwrap()
        }
    }

    /// loom's read-write lock with parking_lot's face.
    pub struct RwLock<T>(loom::sync::RwLock<T>);

    #[allow(missing_docs)]
    impl<T> RwLock<T> {
        pub fn new(value: T) -> Self {
            Self(loom::sync::RwLock::new(value))
        }

        pub fn read(&self) -> loom::sync::RwLockReadGuard<'_, T> {
            self.0.read().unwrap()
        }

        pub fn write(&self) -> loom::sync::RwLockWriteGuard<'_, T> {
            self.0.write().unwrap()
        }
    }
}

impl Default for Bed {
    fn default() -> Self {
        Self::new()
    }
}

/// Spins until `is_done`, which gets the time in [`nanoseconds`], for `limit` at most; true if it came to that.
pub fn look_on(limit: Duration, mut is_done: impl FnMut(u64) -> bool) -> bool {
    let end = nanoseconds() + limit.as_nanos() as u64;
    loop {
        let now = nanoseconds();
        if is_done(now) {
            return true;
        }
        if now >= end {
            return false;
        }
        std::hint::spin_loop();
    }
}

#[cfg(loom)]
pub use modelled::*;
#[cfg(not(loom))]
pub use real::*;
