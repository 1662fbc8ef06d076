//! The report: what is known at one instant, as lists. Locks and call sites are numbers in them, which `names` knows.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::time::Duration;

use super::contention::Contended;
use super::holds::SuspectHold;
use super::names::{Interned, LockId, ThreadSite};
use super::order::Edge;
use super::state::Knowledge;
use super::waits::{Deadlock, Outside, Stuck, TrackedWait};
use crate::agents::ThreadId;
use crate::sync;

/// A wait that has not ended.
pub struct Pending {
    /// For what.
    pub lock: LockId,
    /// The waiter.
    pub waiter: ThreadSite,
    /// For how long.
    pub waited: Duration,
    /// Its holders, as far as they are known.
    pub holders: Vec<ThreadSite>,
    /// The holder outside of this process.
    pub outside: Option<Outside>,
}

/// All of it.
pub struct Report<'a> {
    /// The meaning of the numbers.
    pub names: &'a Interned,
    /// Orders that can deadlock.
    pub lock_order: Vec<Vec<Edge>>,
    /// Locks of one class that were locked inside of each other.
    pub same_class: Vec<Edge>,
    /// Waits for each other, the certain ones first.
    pub deadlocks: Vec<&'a Deadlock>,
    /// The classes that were waited for, the longest first.
    pub contention: Vec<&'a Contended>,
    /// Holds beyond the limit, the longest first.
    pub long_holds: Vec<SuspectHold>,
    /// Holds whose thread has ended.
    pub never_released: &'a [SuspectHold],
    /// Guards that were collected while they held.
    pub leaks: &'a [SuspectHold],
    /// Locks whose holder does not change.
    pub stuck: Vec<&'a Stuck>,
    /// The number of waits now.
    pub pending: usize,
    /// The waits now, the longest first.
    pub waiting: Vec<Pending>,
    /// Threads with locks of which the doctor knows nothing.
    pub threads_without: Vec<ThreadId>,
    /// Files of bundles that the package is part of.
    pub bundles: &'a [String],
}

impl Report<'_> {
    /// The number of things that somebody should look at, long holds apart, which come and go: figures are none, nor what
    /// threads held that others have ended.
    pub fn problems(&self) -> usize {
        self.lock_order.len()
            + self.deadlocks.len()
            + self.never_released.iter().filter(|hold| !hold.is_terminated).count()
            + self.leaks.len()
            + self.stuck.len()
    }
}

impl Knowledge {
    /// The package is part of the bundle in this file.
    pub fn add_bundle(&mut self, file: String) {
        if !self.bundles.contains(&file) {
            self.bundles.push(file);
        }
    }

    /// A report of all that is known now. `living` are the threads with locks.
    pub fn report(&self, living: &[ThreadId]) -> Report<'_> {
        let unknown = living.iter().copied().filter(|thread| !self.tables.contains_key(thread));
        let threads_without: BTreeSet<_> = unknown.collect();
        let mut deadlocks: Vec<_> = self.deadlocks.iter().collect();
        deadlocks.sort_by_key(|deadlock| !deadlock.is_certain);
        let mut waiting: Vec<_> = self.waits.values().map(|wait| self.pending(wait)).collect();
        waiting.sort_by_key(|wait| Reverse(wait.waited));
        Report {
            names: &self.names,
            lock_order: self.order.cycles(),
            same_class: self.order.same_class(),
            deadlocks,
            contention: self.contention.sorted(),
            long_holds: self.all_long_holds(),
            never_released: &self.never_released,
            leaks: &self.leaks,
            stuck: self.stuck.iter().collect(),
            pending: self.waits.len(),
            waiting,
            threads_without: threads_without.into_iter().collect(),
            bundles: &self.bundles,
        }
    }

    fn pending(&self, wait: &TrackedWait) -> Pending {
        let holds = self.holds_at(wait.address);
        // Once it is held here, nobody is asked for its holder elsewhere: what was known of that is old.
        let outside = wait.outside.clone().filter(|_| holds.is_empty());
        let in_the_way = holds.into_iter().filter(|(_, hold)| wait.is_exclusive || hold.is_exclusive);
        Pending {
            lock: wait.lock,
            waiter: (wait.thread, wait.site),
            waited: sync::since(wait.since),
            holders: in_the_way.map(|(thread, hold)| (thread, hold.site)).collect(),
            outside,
        }
    }

    /// The long holds that have ended, and those that last.
    fn all_long_holds(&self) -> Vec<SuspectHold> {
        let mut all = self.long_holds.clone();
        for (thread, hold) in self.holds().filter(|(_, hold)| !self.is_permit(hold.lock)) {
            let held = self.seen_for(&hold);
            if held >= self.options.long_hold {
                all.push(hold.ended(thread, held));
            }
        }
        all.sort_by_key(|hold| (Reverse(hold.held), hold.lock));
        all
    }
}
