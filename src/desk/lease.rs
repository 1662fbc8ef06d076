//! For how long a store surely keeps what it granted: to a session, with all that this holds, or to one holder.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::clock::now;

/// The end of a lock while it was held.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Loss {
    /// The store did not answer for so long that it may have given the lock away.
    Unreachable = 1,
    /// The store says that it is not held any more.
    Taken = 2,
    /// Its manager was closed.
    Closed = 3,
    /// The lock worker has ended.
    Worker = 4,
}

impl Loss {
    /// By its number; what is none is a taken lock.
    pub fn from_number(number: u32) -> Self {
        match number {
            1 => Self::Unreachable,
            3 => Self::Closed,
            4 => Self::Worker,
            _ => Self::Taken,
        }
    }
}

/// The moment from which the store may give it to another.
#[derive(Debug)]
pub struct Lease {
    /// In the time of `now()`, as the bits of a float.
    until: AtomicU64,
    /// Its end; 0: there was none.
    loss: AtomicU32,
}

impl Lease {
    /// One that no time ends.
    pub fn endless() -> Arc<Self> {
        Arc::new(Self { until: AtomicU64::new(f64::INFINITY.to_bits()), loss: AtomicU32::new(0) })
    }

    /// One that has ended.
    pub fn over() -> Arc<Self> {
        let lease = Self::endless();
        lease.end(Loss::Taken);
        lease
    }

    /// The store has answered: it keeps it until then.
    pub fn set_end(&self, until: f64) {
        // Relaxed: a number of its own, which publishes nothing else.
        self.until.store(until.to_bits(), Ordering::Relaxed);
    }

    /// It is over; what came first counts.
    pub fn end(&self, loss: Loss) {
        // Relaxed: as above.
        let _ = self.loss.compare_exchange(0, loss as u32, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Its end, if there was one. Whoever looks ends it when its time is over, and it does not begin again.
    pub fn lost(&self) -> Option<Loss> {
        if self.loss.load(Ordering::Relaxed) == 0 {
            let until = f64::from_bits(self.until.load(Ordering::Relaxed));
            if now() < until || fault!(LeaseIsNotLookedAt) {
                return None;
            }
            self.end(Loss::Unreachable);
        }
        Some(Loss::from_number(self.loss.load(Ordering::Relaxed)))
    }
}
