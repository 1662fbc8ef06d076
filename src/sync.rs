//! The atomics, locks and threads that the core uses: those of the standard library and parking_lot,
//! or loom's when a model runs (`--cfg loom`). Nothing else in the core names either.

#[cfg(not(loom))]
mod real {
    pub use parking_lot::{Mutex, MutexGuard, RwLock};
    pub use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
    pub use std::thread::{Thread, current as current_thread};

    use std::time::Instant;

    /// The monotonic clock.
    pub fn now() -> Instant {
        Instant::now()
    }

    /// Sleeps until this thread is unparked or `until` is reached; may return early for no reason.
    pub fn park_until(until: Instant) {
        let left = until.saturating_duration_since(Instant::now());
        if !left.is_zero() {
            std::thread::park_timeout(left);
        }
    }
}

#[cfg(loom)]
mod modelled {
    pub use loom::sync::MutexGuard;
    pub use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
    pub use loom::thread::{Thread, current as current_thread};

    use std::sync::OnceLock;
    use std::time::Instant;

    /// One fixed instant: in a model time never decides, so that every run of it can be replayed.
    pub fn now() -> Instant {
        static START: OnceLock<Instant> = OnceLock::new();
        *START.get_or_init(Instant::now)
    }

    /// Sleeps until unparked; in a model a time has come from the start, or never comes.
    pub fn park_until(until: Instant) {
        if until > now() {
            loom::thread::park();
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

#[cfg(loom)]
pub use modelled::*;
#[cfg(not(loom))]
pub use real::*;
