//! Waits, and what can be wrong with them: each other's holds, or a holder that does not change.

use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use super::holds::HoldSerial;
use super::names::{LockId, SiteId, ThreadSite};
use crate::agents::ThreadId;

/// A number that tells a wait from every other of the process; grows with time.
pub type WaitNumber = u64;

/// A wait for a lock.
#[derive(Clone, Debug)]
pub struct TrackedWait {
    /// Which thread waits.
    pub thread: ThreadId,
    /// For what.
    pub lock: LockId,
    /// The address of the lock.
    pub address: usize,
    /// From where on.
    pub site: SiteId,
    /// Since when.
    pub since: Instant,
    /// Whether nothing but the lock can end it.
    pub is_endless: bool,
    /// Whether the thread is blocked; else a promise is pending.
    pub is_blocking: bool,
    /// Whether it waits to hold alone.
    pub is_exclusive: bool,
    /// Whether it is for a lock, so that the time is delay.
    pub is_counted: bool,
    /// The holds whose functions are known to await it.
    pub awaiting: Vec<HoldSerial>,
    /// The wait that had begun last when that was asked; it is asked of old ones only.
    pub asked: Option<WaitNumber>,
    /// The holder outside of this process.
    pub outside: Option<Outside>,
}

/// One wait of a deadlock.
#[derive(Clone, Debug)]
pub struct WaitStep {
    /// The wait.
    pub number: WaitNumber,
    /// The lock that it waits for.
    pub lock: LockId,
    /// The waiter, and the place where its wait began.
    pub waiter: ThreadSite,
    /// The holder, and the place where its hold began.
    pub holder: ThreadSite,
    /// For how long it has waited when the deadlock was found.
    pub waited: Duration,
}

/// Waits of which each is for what the next one keeps.
#[derive(Clone, Debug)]
pub struct Deadlock {
    /// Whether it is known that none of them can end by itself.
    pub is_certain: bool,
    /// The waits.
    pub waits: Vec<WaitStep>,
    /// Whether a thread has it to publish.
    pub is_reported: bool,
}

impl Deadlock {
    /// As reports call it.
    pub fn certainty(&self) -> &'static str {
        if self.is_certain { "certain" } else { "likely" }
    }

    /// The waits, in order.
    pub fn key(&self) -> Vec<WaitNumber> {
        let mut numbers: Vec<_> = self.waits.iter().map(|step| step.number).collect();
        numbers.sort_unstable();
        numbers
    }

    /// The wait that began last, of those that a promise awaits: whoever blocks its thread can be told nothing.
    pub fn newest_awaited(&self, waits: &FxHashMap<WaitNumber, TrackedWait>) -> Option<WaitNumber> {
        let is_awaited = |number: &WaitNumber| waits.get(number).is_some_and(|wait| !wait.is_blocking);
        self.waits.iter().map(|step| step.number).filter(is_awaited).max()
    }
}

/// The holder of a lock with waiters, as it was seen.
pub struct Watched<T> {
    /// The facts that tell it from another.
    pub holder: T,
    /// Since when.
    pub since: Instant,
    /// Whether it was reported.
    pub is_reported: bool,
}

/// A lock that is stuck, as it was when that was seen.
#[derive(Clone, Debug)]
pub struct Stuck {
    /// Which.
    pub lock: LockId,
    /// Its holders.
    pub holders: Vec<ThreadSite>,
    /// The holder outside of this process, in the place of `holders`.
    pub outside: Option<Outside>,
    /// Its waiters.
    pub waiters: Vec<ThreadSite>,
}

/// The holder outside of this process, as far as it is known.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Outside {
    /// As the store calls it.
    pub client: Option<String>,
    /// Its process.
    pub pid: Option<u32>,
    /// When it has locked it.
    pub since: Option<Instant>,
}

impl Outside {
    /// Whether it is the same holder; the time may be read anew for each.
    pub fn is(&self, other: &Self) -> bool {
        (self.client.as_ref(), self.pid) == (other.client.as_ref(), other.pid)
    }
}
