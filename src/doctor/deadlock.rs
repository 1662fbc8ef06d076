//! Waits of threads and of tasks, and the cycles among them. A wait keeps holds from ending: a blocked thread all that it has,
//! a task those whose functions are known to await it.

use std::time::Duration;

use rustc_hash::{FxHashMap, FxHashSet};

use super::holds::{HeldBy, HoldSerial};
use super::state::{Knowledge, note};
use super::waits::{Deadlock, TrackedWait, WaitNumber, WaitStep, Watched};
use crate::agents::ThreadId;
use crate::sync;

/// The threads that have permits of each semaphore that somebody waits for.
pub type PermitHolders = FxHashMap<usize, Vec<ThreadId>>;

impl Knowledge {
    /// The functions of these holds await a wait. Returns the deadlock that it is in as JSON, from it on, if one is known.
    pub fn note_awaiting(
        &mut self,
        number: WaitNumber,
        awaiting: Vec<HoldSerial>,
        permits: &PermitHolders,
    ) -> Option<String> {
        let likely = self.options.likely;
        let wait = self.waits.get_mut(&number)?;
        wait.awaiting = awaiting;
        let index = if wait.is_blocking {
            self.note_deadlock(number, permits, None)?
        } else {
            let age = likely.filter(|age| sync::since(wait.since) >= *age)?;
            wait.asked = Some(self.last_wait);
            self.note_deadlock(number, permits, Some(age))?
        };
        let was_reported = std::mem::replace(&mut self.deadlocks[index].is_reported, true);
        let mut deadlock = self.deadlocks[index].clone();
        // A known one begins with the wait that it was found from.
        let first = deadlock.waits.iter().position(|step| step.number == number)?;
        deadlock.waits.rotate_left(first);
        let is_newest = deadlock.newest_awaited(&self.waits) == Some(number);
        Some(self.deadlock_json(&deadlock, was_reported, is_newest))
    }

    /// Notes the deadlock that a wait is in: a likely one of waits of this age, or a certain one of blocked threads. Returns its place
    /// in the list.
    fn note_deadlock(&mut self, number: WaitNumber, permits: &PermitHolders, age: Option<Duration>) -> Option<usize> {
        let scene = Scene::new(self, permits, age);
        let circle = scene.circle(number, &scene.never_ending())?;
        Some(self.note_circle(circle, age.is_none()).0)
    }

    /// Notes a deadlock. Returns its place in the list, and whether it is a new one.
    fn note_circle(&mut self, waits: Vec<WaitStep>, is_certain: bool) -> (usize, bool) {
        let deadlock = Deadlock { is_certain, waits, is_reported: false };
        let key = deadlock.key();
        if let Some(index) = self.deadlocks.iter().position(|other| other.key() == key) {
            self.deadlocks[index].is_certain |= is_certain;
            return (index, false);
        }
        note(&mut self.deadlocks, deadlock);
        (self.deadlocks.len() - 1, true)
    }

    /// Looks for deadlocks among waits that have lasted for long. Returns whether there was a new one.
    pub(super) fn find_old_deadlocks(&mut self, permits: &PermitHolders) -> bool {
        let Some(age) = self.options.likely else { return false };
        if !self.waits.values().any(|wait| wait.is_endless && sync::since(wait.since) >= age) {
            return false;
        }
        let scene = Scene::new(self, permits, Some(age));
        let stuck = scene.never_ending();
        let circles: Vec<_> = stuck.iter().filter_map(|number| scene.circle(*number, &stuck)).collect();
        let mut is_news = false;
        for circle in circles {
            is_news |= self.note_circle(circle, false).1;
        }
        is_news
    }
}

/// All waits and holds, at one instant.
struct Scene<'a> {
    state: &'a Knowledge,
    permits: &'a PermitHolders,
    /// For how long all must have lasted; `None`: only threads that are blocked count, which need no time.
    age: Option<Duration>,
    holds: FxHashMap<usize, Vec<HeldBy>>,
    /// The waits that block each thread, and those that the function of each hold awaits.
    blocked: FxHashMap<ThreadId, Vec<WaitNumber>>,
    awaited: FxHashMap<HoldSerial, Vec<WaitNumber>>,
}

impl<'a> Scene<'a> {
    fn new(state: &'a Knowledge, permits: &'a PermitHolders, age: Option<Duration>) -> Self {
        let mut scene = Self {
            state,
            permits,
            age,
            holds: FxHashMap::default(),
            blocked: FxHashMap::default(),
            awaited: FxHashMap::default(),
        };
        for held in state.holds() {
            scene.holds.entry(held.1.address).or_default().push(held);
        }
        for (number, wait) in &state.waits {
            if wait.is_blocking {
                scene.blocked.entry(wait.thread).or_default().push(*number);
            }
            for serial in &wait.awaiting {
                scene.awaited.entry(*serial).or_default().push(*number);
            }
        }
        scene
    }

    /// Whether it blocks a thread, or has lasted for long and is still awaited by whom it was said to be. While a thread is blocked,
    /// that keeps all its holds: no other wait has to count.
    fn counts(&self, wait: &TrackedWait) -> bool {
        let Some(age) = self.age else { return wait.is_blocking };
        (wait.is_blocking || self.is_asked(wait)) && sync::since(wait.since) >= age
    }

    /// Whether it was asked who awaits the wait, and its thread was not blocked since: the code that blocks may have given up waits of
    /// its thread, and who awaits them cannot be asked until it goes on.
    fn is_asked(&self, wait: &TrackedWait) -> bool {
        let blocked = self.state.last_blocked.get(&wait.thread);
        wait.asked.is_some_and(|asked| blocked.is_none_or(|blocked| *blocked <= asked))
    }

    /// The holds that keep a wait from ending: a reader waits behind a writer that came before it, for what that waits for.
    fn in_the_way(&self, wait: &TrackedWait) -> impl Iterator<Item = &HeldBy> {
        let is_exclusive = wait.is_exclusive || self.is_behind_writer(wait);
        let holds = self.holds.get(&wait.address).into_iter().flatten();
        holds.filter(move |(_, hold)| is_exclusive || hold.is_exclusive || fault!(SharedHoldIsInTheWay))
    }

    fn is_behind_writer(&self, wait: &TrackedWait) -> bool {
        let mut others = self.state.waits.values().filter(|other| other.address == wait.address);
        others.any(|other| other.is_exclusive && other.is_endless && other.since <= wait.since)
            && !fault!(NoReaderIsBehindAWriter)
    }

    /// Whether nobody has permits but those who tell of it, nor had any lately: one that was given back may be on its way to the
    /// wait.
    fn are_permits_known(&self, address: usize) -> bool {
        let Some(threads) = self.permits.get(&address) else { return false };
        let known = self.holds.get(&address).map_or(&[][..], Vec::as_slice);
        let is_known = |thread| known.iter().any(|(holder, _)| holder == thread);
        let is_old = |age| {
            let watched = self.state.watched.get(&address);
            watched.is_some_and(|Watched { holder, since, .. }| {
                2 * sync::since(*since) >= age && holder.iter().all(|(thread, _)| threads.contains(thread))
            })
        };
        threads.iter().all(is_known) && self.age.is_none_or(is_old)
    }

    /// The waits before whose end a hold cannot end: its thread is blocked, or its function awaits them.
    fn keepers(&self, (thread, hold): &HeldBy) -> impl Iterator<Item = &WaitNumber> {
        let blocked = self.blocked.get(thread).into_iter().flatten();
        blocked.chain(self.awaited.get(&hold.serial).into_iter().flatten())
    }

    /// The waits of which none can end unless another one does first.
    fn never_ending(&self) -> FxHashSet<WaitNumber> {
        let waits = &self.state.waits;
        let endless =
            waits.iter().filter(|(_, wait)| (wait.is_endless || fault!(TimedWaitCountsAsEndless)) && self.counts(wait));
        let mut left: FxHashSet<WaitNumber> = endless.map(|(number, _)| *number).collect();
        loop {
            let is_kept = |held: &HeldBy| self.keepers(held).any(|keeper| left.contains(keeper));
            let is_stuck = |number: &WaitNumber| {
                let wait = &waits[number];
                let mut holds = self.in_the_way(wait).peekable();
                if self.state.is_permit(wait.lock) && !fault!(OnePermitInTheWayIsEnough) {
                    self.are_permits_known(wait.address) && holds.peek().is_some() && holds.all(is_kept)
                } else {
                    holds.any(is_kept)
                }
            };
            let next: FxHashSet<_> = left.iter().copied().filter(is_stuck).collect();
            if next.len() == left.len() {
                return left;
            }
            left = next;
        }
    }

    /// The circle that a wait is in.
    fn circle(&self, number: WaitNumber, stuck: &FxHashSet<WaitNumber>) -> Option<Vec<WaitStep>> {
        let mut steps = Vec::new();
        let is_found =
            stuck.contains(&number) && self.walk(number, number, stuck, &mut steps, &mut FxHashSet::default());
        is_found.then_some(steps)
    }

    /// Depth first along who keeps what from whom, until it comes back to `first`.
    fn walk(
        &self,
        first: WaitNumber,
        number: WaitNumber,
        stuck: &FxHashSet<WaitNumber>,
        steps: &mut Vec<WaitStep>,
        seen: &mut FxHashSet<WaitNumber>,
    ) -> bool {
        if !seen.insert(number) {
            return false;
        }
        let wait = &self.state.waits[&number];
        let mut in_the_way: Vec<_> = self.in_the_way(wait).collect();
        // Others first: of permits its own may be one of several in the way.
        in_the_way.sort_by_key(|held| self.keepers(held).any(|keeper| *keeper == number));
        for held in in_the_way {
            steps.push(WaitStep {
                number,
                lock: wait.lock,
                waiter: (wait.thread, wait.site),
                holder: (held.0, held.1.site),
                waited: sync::since(wait.since),
            });
            let mut keepers: Vec<_> = self.keepers(held).copied().filter(|keeper| stuck.contains(keeper)).collect();
            keepers.sort_unstable();
            for keeper in keepers {
                if keeper == first || self.walk(first, keeper, stuck, steps, seen) {
                    return true;
                }
            }
            steps.pop();
        }
        false
    }
}

#[cfg(test)]
mod tests;
