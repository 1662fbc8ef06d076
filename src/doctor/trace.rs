//! Slices for a trace: waits, contended holds, and which unlock ended which wait.

use std::time::Instant;

use super::contention::Unlock;
use super::names::{LockId, ThreadSite};

/// No more slices are kept.
const MOST_SLICES: usize = 200_000;

/// A time in a thread.
#[derive(Clone, Copy, Debug)]
pub struct Slice {
    /// Its kind: a `wait`, or a `hold` of a lock that others wait for.
    pub kind: &'static str,
    /// The lock.
    pub lock: LockId,
    /// Whose, and from where on.
    pub place: ThreadSite,
    /// Its begin.
    pub begin: Instant,
    /// Its end.
    pub end: Instant,
    /// The unlock that ended a wait.
    pub freed: Option<Unlock>,
}

/// All slices.
#[derive(Default)]
pub struct Trace {
    /// As they were told.
    pub slices: Vec<Slice>,
}

impl Trace {
    /// Takes in what has just ended.
    pub fn push(&mut self, slice: Slice) {
        if self.slices.len() < MOST_SLICES {
            self.slices.push(slice);
        }
    }
}
