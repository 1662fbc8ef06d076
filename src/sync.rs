//! The atomics, locks and threads that the core uses: those of the standard library and parking_lot,
//! or loom's when a model runs (`--cfg loom`). Nothing else in the core names either.

use std::time::Duration;

/// A blocked thread wakes by itself this often, to look whether it is to end. No wake-up relies on it: with the
/// feature `long-slices` one that is lost is a hang (`npm run test:long-slices`).
pub(crate) const SLICE: Duration =
    if cfg!(feature = "long-slices") { Duration::from_secs(60) } else { Duration::from_millis(25) };

#[cfg(not(loom))]
mod real {
    pub use parking_lot::{Mutex, MutexGuard, RwLock};
    pub use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

    use std::sync::OnceLock;
    use std::thread;
    use std::time::{Duration, Instant};

    /// The monotonic clock.
    pub fn now() -> Instant {
        Instant::now()
    }

    /// How long ago that was.
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

    /// How long a thread still spins.
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
}

#[cfg(loom)]
mod modelled {
    pub use loom::sync::MutexGuard;
    pub use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

    use std::sync::OnceLock;
    use std::time::{Duration, Instant};

    /// What is no further away comes at once.
    const A_MOMENT: Duration = Duration::from_millis(1);
    const LONG_AGO: Duration = Duration::from_secs(3600);

    /// One fixed instant: in a model time never decides, so that every run of it can be replayed.
    pub fn now() -> Instant {
        static START: OnceLock<Instant> = OnceLock::new();
        *START.get_or_init(Instant::now)
    }

    /// Long ago, whatever that was: how much is long for a wait, [`crate::engine::Patience`] says.
    pub fn since(_: Instant) -> Duration {
        LONG_AGO
    }

    /// A time comes at once, or never.
    pub fn has_come(time: Instant) -> bool {
        time <= now() + A_MOMENT
    }

    /// The same instant.
    pub fn nanoseconds() -> u64 {
        1
    }

    /// Always: a model that is not about spinning sets its times to zero.
    pub fn has_several_processors() -> bool {
        true
    }

    /// How often a thread still looks.
    pub struct Spin {
        looks: u32,
    }

    #[allow(missing_docs)]
    impl Spin {
        pub fn new(_: Duration) -> Self {
            Self { looks: 2 }
        }

        pub fn goes_on(&mut self, _: u64) -> bool {
            self.looks -= 1;
            self.looks > 0
        }
    }

    /// A thread that parks. (loom's own `unpark` also wakes a thread that waits for a mutex, which then fails.)
    pub struct Thread {
        is_unparked: loom::sync::Mutex<bool>,
        unparked: loom::sync::Condvar,
    }

    #[allow(missing_docs)]
    impl Thread {
        pub fn current() -> Self {
            Self { is_unparked: loom::sync::Mutex::new(false), unparked: loom::sync::Condvar::new() }
        }

        pub fn park_until(&self, until: Instant) {
            let mut is_unparked = self.is_unparked.lock().unwrap();
            while !*is_unparked && !has_come(until) {
                is_unparked = self.unparked.wait(is_unparked).unwrap();
            }
            *is_unparked = false;
        }

        pub fn unpark(&self) {
            *self.is_unparked.lock().unwrap() = true;
            self.unparked.notify_one();
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

/// Spins until `is_done`, which gets the time in [`nanoseconds`], returns true, for `limit` at most; true if it did.
pub fn spin_until(limit: Duration, mut is_done: impl FnMut(u64) -> bool) -> bool {
    let mut spin = Spin::new(limit);
    loop {
        let now = nanoseconds();
        if is_done(now) {
            return true;
        }
        if !spin.goes_on(now) {
            return false;
        }
    }
}

#[cfg(loom)]
pub use modelled::*;
#[cfg(not(loom))]
pub use real::*;
