//! The place where one blocked wait sleeps. Why it is woken stands in its waiter, under the bucket's lock; here is only that it
//! was.

use std::time::{Duration, Instant};

use crate::sync::{self, AtomicBool, AtomicU64, Ordering, Thread};

/// A thread that was not seen for so long does not run: its processor runs another.
const ABSENT: Duration = Duration::from_micros(2);

/// One blocked wait.
pub struct Parker {
    thread: Thread,
    is_unparked: AtomicBool,
    /// When the thread was last seen spinning, in [`sync::nanoseconds`]; 0: it does not.
    seen: AtomicU64,
}

impl Parker {
    /// For the current thread.
    pub fn current() -> Self {
        Self { thread: Thread::current(), is_unparked: AtomicBool::new(false), seen: AtomicU64::new(0) }
    }

    /// Spins until unparked, for `time` at most.
    pub fn spin(&self, time: Duration) {
        // Relaxed, here and below: a hint that guards no data.
        sync::spin_until(time, |now| {
            self.seen.store(now, Ordering::Relaxed);
            self.is_unparked.load(Ordering::Relaxed)
        });
        self.seen.store(0, Ordering::Relaxed);
    }

    /// Whether the thread is spinning at this moment, on a processor of its own.
    pub fn is_spinning(&self) -> bool {
        let seen = self.seen.load(Ordering::Relaxed);
        seen != 0 && sync::nanoseconds() < seen + ABSENT.as_nanos() as u64
    }

    /// Whether it was unparked since it was last asked.
    pub fn take(&self) -> bool {
        // Acquire: pairs with the release in `unpark`. What the waker did stands under the bucket's lock anyway.
        self.is_unparked.swap(false, Ordering::Acquire)
    }

    /// Sleeps until unparked, or until `until`; may return early for no reason. True if it was unparked.
    pub fn park_until(&self, until: Instant) -> bool {
        if self.take() {
            return true;
        }
        self.thread.park_until(until);
        self.take()
    }

    /// Sleeps until unparked, or until `until`.
    pub fn sleep_until(&self, until: Instant) {
        while !self.park_until(until) && !sync::has_come(until) {}
    }

    /// Ends the sleep, now or when the thread parks next. Outside the bucket's lock, which the thread will take.
    pub fn unpark(&self) {
        // Release: pairs with the acquire in `take`. A swap: loom lets a store go behind a swap that did not see it.
        self.is_unparked.swap(true, Ordering::Release);
        self.thread.unpark();
    }
}
