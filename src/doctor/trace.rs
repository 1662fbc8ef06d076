//! Slices for a trace: waits, contended holds, and which unlock ended which wait.

use std::time::Instant;

use super::contention::Unlock;
use super::names::{LockId, SiteId};
use crate::agents::ThreadId;

/// No more slices are kept.
const MOST_SLICES: usize = 200_000;

/// What a slice shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SliceKind {
    /// Somebody waits.
    TrackedWait,
    /// Somebody holds what others wait for.
    Hold,
}

/// A time in a thread.
#[derive(Clone, Copy, Debug)]
pub struct Slice {
    /// What it shows.
    pub kind: SliceKind,
    /// Whose.
    pub thread: ThreadId,
    /// Of which lock.
    pub lock: LockId,
    /// From where on.
    pub site: SiteId,
    /// Its begin.
    pub begin: Instant,
    /// Its end.
    pub end: Instant,
    /// The thread and time of the unlock that ended a wait.
    pub freed: Option<(ThreadId, Instant)>,
}

/// All slices.
#[derive(Default)]
pub struct Trace {
    /// In order of their ends.
    pub slices: Vec<Slice>,
}

impl Trace {
    /// A wait is over.
    pub fn waited(
        &mut self,
        thread: ThreadId,
        lock: LockId,
        site: SiteId,
        begin: Instant,
        end: Instant,
        unlock: Option<Unlock>,
    ) {
        let freed = unlock.map(|unlock| (unlock.place.0, unlock.at));
        self.push(Slice { kind: SliceKind::TrackedWait, thread, lock, site, begin, end, freed });
    }

    /// A hold with waiters ends.
    pub fn held(&mut self, thread: ThreadId, lock: LockId, site: SiteId, begin: Instant, end: Instant) {
        self.push(Slice { kind: SliceKind::Hold, thread, lock, site, begin, end, freed: None });
    }

    fn push(&mut self, slice: Slice) {
        if self.slices.len() < MOST_SLICES {
            self.slices.push(slice);
        }
    }
}
