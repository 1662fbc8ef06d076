//! Contention: who waited for which lock, for how long, and whose unlock ended it.

use std::cmp::Reverse;
use std::ops::AddAssign;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use super::names::{ENDED, LockId, NodeId, ThreadSite};
use super::waits::TrackedWait;
use crate::agents::ThreadId;

/// A number of waits, and their time.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub struct Delay {
    /// The number of waits.
    pub waits: u64,
    /// In all.
    pub total: Duration,
}

impl AddAssign for Delay {
    fn add_assign(&mut self, other: Self) {
        self.waits += other.waits;
        self.total += other.total;
    }
}

/// An unlock that had waiters.
#[derive(Clone, Copy, Debug)]
pub struct Unlock {
    /// Whose.
    pub place: ThreadSite,
    /// When.
    pub at: Instant,
}

/// The counts of one class of locks.
#[derive(Clone, Default, Debug)]
pub struct Contended {
    /// The first of them that somebody waited for.
    pub lock: LockId,
    /// All waits.
    pub all: Delay,
    /// The longest.
    pub longest: Duration,
    /// By who waited, and where.
    pub waiters: FxHashMap<ThreadSite, Delay>,
    /// By whose unlock ended the wait.
    pub unlockers: FxHashMap<ThreadSite, Delay>,
}

impl Contended {
    fn of(lock: LockId) -> Self {
        Self { lock, ..Self::default() }
    }

    /// The places of these delays, those with the longest total first.
    pub fn sorted(delays: &FxHashMap<ThreadSite, Delay>) -> Vec<(ThreadSite, Delay)> {
        let mut all: Vec<_> = delays.iter().map(|(place, delay)| (*place, *delay)).collect();
        all.sort_by_key(|(place, delay)| (Reverse(delay.total), *place));
        all
    }
}

/// All waits that are over.
#[derive(Default)]
pub struct Contention {
    nodes: FxHashMap<NodeId, Contended>,
    /// The last unlock of each lock that had waiters.
    unlocks: FxHashMap<usize, Unlock>,
}

/// No more locks are remembered for who freed them last.
const MOST_UNLOCKS: usize = 1 << 16;

impl Contention {
    /// A lock with waiters is about to be freed.
    pub fn unlocking(&mut self, address: usize, unlock: Unlock) {
        if self.unlocks.len() >= MOST_UNLOCKS {
            self.unlocks.clear();
        }
        self.unlocks.insert(address, unlock);
    }

    /// The unlock that has ended a wait, if that is known.
    pub fn ended_by(&self, wait: &TrackedWait, is_granted: bool) -> Option<Unlock> {
        self.unlocks.get(&wait.address).copied().filter(|unlock| is_granted && unlock.at >= wait.since)
    }

    /// Counts a wait that is over.
    pub fn count(&mut self, wait: &TrackedWait, node: NodeId, waited: Duration, unlock: Option<Unlock>) {
        let contended = self.nodes.entry(node).or_insert_with(|| Contended::of(wait.lock));
        let delay = Delay { waits: 1, total: waited };
        contended.all += delay;
        contended.longest = contended.longest.max(waited);
        *contended.waiters.entry((wait.thread, wait.site)).or_default() += delay;
        if let Some(unlock) = unlock {
            *contended.unlockers.entry(unlock.place).or_default() += delay;
        }
    }

    /// Adds the counts of a class to those of another.
    pub fn fold(&mut self, from: NodeId, to: NodeId, lock: LockId) {
        let Some(folded) = self.nodes.remove(&from) else { return };
        let into = self.nodes.entry(to).or_insert_with(|| Contended::of(lock));
        into.all += folded.all;
        into.longest = into.longest.max(folded.longest);
        for (delays, more) in [(&mut into.waiters, folded.waiters), (&mut into.unlockers, folded.unlockers)] {
            more.into_iter().for_each(|(place, delay)| *delays.entry(place).or_default() += delay);
        }
    }

    /// Threads that have ended become one: of each class and place their counts are added up.
    pub fn fold_threads(&mut self, has_ended: impl Fn(ThreadId) -> bool) {
        for contended in self.nodes.values_mut() {
            for delays in [&mut contended.waiters, &mut contended.unlockers] {
                for ((thread, site), delay) in std::mem::take(delays) {
                    let thread = if has_ended(thread) { ENDED } else { thread };
                    *delays.entry((thread, site)).or_default() += delay;
                }
            }
        }
    }

    /// The first lock of each class.
    pub fn locks(&self) -> impl Iterator<Item = LockId> {
        self.nodes.values().map(|contended| contended.lock)
    }

    /// The classes, those with the longest total first.
    pub fn sorted(&self) -> Vec<&Contended> {
        let mut all: Vec<_> = self.nodes.values().collect();
        all.sort_by_key(|contended| (Reverse(contended.all.total), contended.lock));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::super::names::Lock;
    use super::super::state::Knowledge;
    use super::super::testing;
    use super::*;
    use crate::sync;

    const MS: Duration = Duration::from_millis(1);

    fn wait(thread: u32, since: Instant) -> TrackedWait {
        testing::wait(thread, 5, 64, since)
    }

    fn delay(waits: u64, total: u32) -> Delay {
        Delay { waits, total: total * MS }
    }

    #[test]
    fn an_unlock_ends_the_waits_that_were_granted_after_it_and_had_begun_before() {
        let now = Instant::now();
        let mut contention = Contention::default();
        contention.unlocking(64, Unlock { place: (9, 9), at: now });
        for (since, is_granted, is_ended_by_it) in
            [(now - MS, true, true), (now, true, true), (now - MS, false, false), (now + MS, true, false)]
        {
            let unlock = contention.ended_by(&wait(1, since), is_granted);
            contention.count(&wait(1, since), 1, MS, unlock);
            assert_eq!(unlock.is_some(), is_ended_by_it, "granted: {is_granted}");
        }
        let [contended] = contention.sorted()[..] else { panic!("it is one class") };
        assert_eq!(contended.waiters[&(1, 3)], delay(4, 4));
        assert_eq!(Vec::from_iter(&contended.unlockers), [(&(9, 9), &delay(2, 2))]);
    }

    #[test]
    fn a_class_that_becomes_another_brings_all_that_was_counted() {
        for (from, to) in [(1, 2), (2, 1)] {
            let now = Instant::now();
            let mut contention = Contention::default();
            contention.unlocking(64, Unlock { place: (9, 9), at: now });
            for (thread, node, waited) in [(1, 1, 7), (1, 2, 3), (2, 2, 4)] {
                let unlock = contention.ended_by(&wait(thread, now), true);
                contention.count(&wait(thread, now), node, waited * MS, unlock);
            }
            for _ in 0..2 {
                contention.fold(from, to, 6);
            }
            let [contended] = contention.sorted()[..] else { panic!("it is one class") };
            assert_eq!((contended.all, contended.longest), (delay(3, 14), 7 * MS), "{from} becomes {to}");
            assert_eq!(Contended::sorted(&contended.waiters), [((1, 3), delay(2, 10)), ((2, 3), delay(1, 4))]);
            assert_eq!(contended.unlockers[&(9, 9)], delay(3, 14));
        }
    }

    #[test]
    fn threads_that_have_ended_become_one_and_no_wait_is_lost() {
        let now = Instant::now();
        let mut contention = Contention::default();
        for thread in 0..4 {
            contention.unlocking(64, Unlock { place: (thread, 9), at: now });
            let unlock = contention.ended_by(&wait(thread, now), true);
            contention.count(&wait(thread, now), 1, MS, unlock);
        }
        for _ in 0..2 {
            contention.fold_threads(|thread| thread > 1);
            let [contended] = contention.sorted()[..] else { panic!("it is one class") };
            for (delays, site) in [(&contended.waiters, 3), (&contended.unlockers, 9)] {
                let places = [((ENDED, site), delay(2, 2)), ((0, site), delay(1, 1)), ((1, site), delay(1, 1))];
                assert_eq!(Contended::sorted(delays), places);
            }
        }
    }

    #[test]
    fn what_was_counted_for_a_lock_that_is_forgotten_stays_with_its_name_or_becomes_that_of_all_such() {
        let mut state = Knowledge::default();
        state.options.counts = true;
        let mut lock = |name: Option<&str>, address| {
            let name = name.map(str::to_owned);
            state.names.keep(Lock { name, kind: "Mutex".into(), byte_offset: Some(0), address }, 1)
        };
        let locks = [lock(None, 8), lock(None, 16), lock(None, 24), lock(Some("a"), 32), lock(Some("a"), 40)];
        for lock in locks {
            let number = state.begin_wait(testing::wait(1, lock, 64, sync::now()));
            state.end_wait(number, Some((0.0, Duration::from_millis(1))), true);
        }
        state.forget(1, &[locks[0], locks[1], locks[3], locks[4]]);
        let mut counted: Vec<_> = state
            .contention
            .sorted()
            .into_iter()
            .map(|counts| (state.names.get(counts.lock).cloned().unwrap_or_default(), counts.all.waits))
            .map(|(lock, waits)| (lock.kind, lock.name, lock.address, waits))
            .collect();
        counted.sort();
        let mutex = |name: Option<&str>, address, waits| ("Mutex".into(), name.map(str::to_owned), address, waits);
        assert_eq!(counted, [("Locks used before".into(), None, 0, 2), mutex(None, 24, 1), mutex(Some("a"), 32, 2)]);
        let mut lock = |address| {
            state.names.lock(Lock { name: Some("a".into()), kind: "Mutex".into(), byte_offset: Some(0), address })
        };
        let again = [lock(32), lock(40)];
        assert_eq!(again[0], locks[3], "it is named by the report");
        assert_ne!(again[1], locks[4]);
        assert_eq!(state.names.node(again[1]), state.names.node(locks[3]));
    }
}
