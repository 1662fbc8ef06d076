//! A blocked thread's place to sleep, and the one cell in which others tell it how it goes on.

use crate::agent::AgentId;
use crate::sync::{self, AtomicU32, AtomicU64, Bed, Ordering};
use std::time::{Duration, Instant};

const ASLEEP: u32 = 0;
const WOKEN: u32 = 1;
const GRANTED: u32 = 2;

/// Who has not been seen for so long does not run: its processor serves another thread.
const ABSENT: Duration = Duration::from_micros(2);

/// How a sleep may go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Call {
    /// Nobody has called.
    None,
    /// The word was free: come and try.
    Woken,
    /// The word is yours, and perhaps a dead holder's end is yours to report.
    Granted(Option<AgentId>),
}

/// One blocked wait. Its call is changed only under the bucket's lock of the word that it waits for.
pub struct Parker {
    bed: Bed,
    call: AtomicU32,
    abandoned_by: AtomicU32,
    /// When the waiter was last seen looking on, in nanoseconds of [`sync::nanoseconds`]; 0: it sleeps.
    seen: AtomicU64,
}

impl Default for Parker {
    fn default() -> Self {
        Self::new()
    }
}

impl Parker {
    /// For the current thread.
    pub fn new() -> Self {
        Self { bed: Bed::new(), call: AtomicU32::new(ASLEEP), abandoned_by: AtomicU32::new(0), seen: AtomicU64::new(0) }
    }

    /// Looks on until called, for `time` at most.
    pub fn linger(&self, time: Duration) {
        // Relaxed, here and below: a hint that guards no data.
        sync::look_on(time, |now| {
            self.seen.store(now, Ordering::Relaxed);
            self.call() != Call::None
        });
        self.seen.store(0, Ordering::Relaxed);
    }

    /// Whether the waiter is looking on at this moment, on a processor of its own.
    pub fn is_lingering(&self) -> bool {
        let seen = self.seen.load(Ordering::Relaxed);
        seen != 0 && sync::nanoseconds() < seen + ABSENT.as_nanos() as u64
    }

    /// Sleeps until called or until `until`; may return early for no reason.
    pub fn park_until(&self, until: Instant) {
        if self.call() == Call::None {
            self.bed.sleep_until(until);
        }
    }

    /// Ends a sleep; after `wake` or `grant`, outside the bucket's lock.
    pub fn unpark(&self) {
        self.bed.wake();
    }

    /// The call so far. Acquire: pairs with the release in `grant`, for `abandoned_by`.
    pub fn call(&self) -> Call {
        match self.call.load(Ordering::Acquire) {
            WOKEN => Call::Woken,
            // Relaxed: written before the release of GRANTED that was acquired just now.
            GRANTED => {
                let dead = self.abandoned_by.load(Ordering::Relaxed);
                Call::Granted((dead != 0).then_some(dead))
            }
            _ => Call::None,
        }
    }

    /// Tells the waiter to come and try.
    pub fn wake(&self) {
        self.call.store(WOKEN, Ordering::Release);
    }

    /// The waiter came, lost, and waits on.
    pub fn rest(&self) {
        self.call.store(ASLEEP, Ordering::Release);
    }

    /// Tells the waiter that it holds the word.
    pub fn grant(&self, abandoned_by: Option<AgentId>) {
        self.abandoned_by.store(abandoned_by.unwrap_or(0), Ordering::Relaxed);
        self.call.store(GRANTED, Ordering::Release);
    }
}
