//! Waits of threads and of tasks, and the cycles among them. A wait keeps holds from ending: a blocked thread all that it has,
//! a task those whose functions are known to await it, and perhaps those in whose context it began.

use std::time::{Duration, Instant};

use rustc_hash::FxHashSet;

use super::names::{LockId, SiteId};
use super::{HoldSerial, State, WaitNumber};
use crate::agents::ThreadId;
use crate::sync;

/// A wait for a lock.
#[derive(Clone, Debug)]
pub struct Wait {
    /// Which thread waits.
    pub thread: ThreadId,
    /// For what.
    pub lock: LockId,
    /// Where that is.
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
    /// The holds in whose context it began.
    pub context: Vec<HoldSerial>,
    /// Those of them whose functions await it.
    pub awaiting: Vec<HoldSerial>,
}

/// One wait of a deadlock.
#[derive(Clone, Debug)]
pub struct WaitStep {
    /// The wait.
    pub number: WaitNumber,
    /// What it waits for.
    pub lock: LockId,
    /// Who waits, and from where on.
    pub waiter: (ThreadId, SiteId),
    /// Who holds it, and from where on.
    pub holder: (ThreadId, SiteId),
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
    /// Whether a thread was told of it, which publishes it.
    pub is_told: bool,
}

impl Deadlock {
    fn key(&self) -> Vec<WaitNumber> {
        let mut numbers: Vec<_> = self.waits.iter().map(|step| step.number).collect();
        numbers.sort_unstable();
        numbers
    }
}

impl State {
    /// A wait is known to be awaited by the functions of these holds. Returns the deadlock that this shows, if nobody was
    /// told of it yet.
    pub fn confirm_wait(&mut self, number: WaitNumber, awaiting: Vec<HoldSerial>) -> Option<Deadlock> {
        self.waits.get_mut(&number)?.awaiting = awaiting;
        self.find_deadlock(number, true)
    }

    /// The deadlock that a wait is in, if no thread was told of it yet.
    pub fn find_deadlock(&mut self, number: WaitNumber, is_certain: bool) -> Option<Deadlock> {
        let (index, _) = self.note_deadlock(number, is_certain)?;
        let deadlock = &mut self.deadlocks[index];
        let was_told = std::mem::replace(&mut deadlock.is_told, true);
        (!was_told).then(|| deadlock.clone())
    }

    /// Notes the deadlock that a wait is in. Returns its place in the list, and whether it is new there.
    fn note_deadlock(&mut self, number: WaitNumber, is_certain: bool) -> Option<(usize, bool)> {
        let mut waits = Vec::new();
        let mut seen = FxHashSet::default();
        if !self.walk(number, number, is_certain, &mut waits, &mut seen) {
            return None;
        }
        let deadlock = Deadlock { is_certain, waits, is_told: false };
        let key = deadlock.key();
        match self.deadlocks.iter().position(|other| other.key() == key) {
            Some(index) if is_certain && !self.deadlocks[index].is_certain => {
                self.deadlocks[index] = deadlock;
                Some((index, true))
            }
            Some(index) => Some((index, false)),
            None => {
                self.deadlocks.push(deadlock);
                Some((self.deadlocks.len() - 1, true))
            }
        }
    }

    /// Each wait that has lasted for so long, in a deadlock that is possible. Returns whether there was one.
    pub(super) fn find_old_deadlocks(&mut self, age: Duration) -> bool {
        let is_old = |wait: &Wait| wait.is_endless && sync::since(wait.since) >= age;
        let old: Vec<_> = self.waits.iter().filter(|(_, wait)| is_old(wait)).map(|(number, _)| *number).collect();
        let mut is_found = false;
        for number in old {
            let found = self.note_deadlock(number, true).or_else(|| self.note_deadlock(number, false));
            is_found |= found.is_some_and(|(_, is_new)| is_new);
        }
        is_found
    }

    /// Depth first along who keeps what from whom, until it comes back to `first`.
    fn walk(
        &self,
        first: WaitNumber,
        number: WaitNumber,
        is_certain: bool,
        steps: &mut Vec<WaitStep>,
        seen: &mut FxHashSet<WaitNumber>,
    ) -> bool {
        let Some(wait) = self.waits.get(&number).filter(|wait| wait.is_endless) else { return false };
        if !seen.insert(number) {
            return false;
        }
        for (thread, hold) in self.holds_at(wait.address) {
            if !wait.is_exclusive && !hold.is_exclusive {
                continue;
            }
            steps.push(WaitStep {
                number,
                lock: wait.lock,
                waiter: (wait.thread, wait.site),
                holder: (thread, hold.site),
                waited: sync::since(wait.since),
            });
            let keeps = |other: &Wait| {
                (other.is_blocking && other.thread == thread)
                    || other.awaiting.contains(&hold.serial)
                    || (!is_certain && other.context.contains(&hold.serial))
            };
            let mut keepers: Vec<_> =
                self.waits.iter().filter(|(_, other)| keeps(other)).map(|(keeper, _)| *keeper).collect();
            keepers.sort_unstable();
            for keeper in keepers {
                if keeper == first || self.walk(first, keeper, is_certain, steps, seen) {
                    return true;
                }
            }
            steps.pop();
        }
        false
    }
}
