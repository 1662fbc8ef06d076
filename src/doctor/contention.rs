//! Who waited for which lock, for how long, and whose unlock ended it.

use std::cmp::Reverse;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use super::names::{LockId, NodeId, ThreadSite};
use super::waits::TrackedWait;

/// How many waits, and their time.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub struct Delay {
    /// How many.
    pub waits: u64,
    /// In all.
    pub total: Duration,
}

impl Delay {
    fn join(&mut self, other: &Self) {
        self.waits += other.waits;
        self.total += other.total;
    }

    fn add(&mut self, waited: Duration) {
        self.waits += 1;
        self.total += waited;
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

/// What is known of one class of locks.
#[derive(Clone, Debug)]
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
    /// The places of these delays, those with the longest total first.
    pub fn sorted(delays: &FxHashMap<ThreadSite, Delay>) -> Vec<(ThreadSite, Delay)> {
        let mut all: Vec<_> = delays.iter().map(|(place, delay)| (*place, *delay)).collect();
        all.sort_by_key(|(place, delay)| (Reverse(delay.total), *place));
        all
    }

    fn new(lock: LockId) -> Self {
        Self {
            lock,
            all: Delay::default(),
            longest: Duration::ZERO,
            waiters: FxHashMap::default(),
            unlockers: FxHashMap::default(),
        }
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

    /// A wait is over. Returns the unlock that ended it, if that is known.
    pub fn end(&mut self, wait: &TrackedWait, node: NodeId, waited: Duration, is_granted: bool) -> Option<Unlock> {
        let contended = self.nodes.entry(node).or_insert_with(|| Contended::new(wait.lock));
        contended.all.add(waited);
        contended.longest = contended.longest.max(waited);
        contended.waiters.entry((wait.thread, wait.site)).or_default().add(waited);
        let unlock = *self.unlocks.get(&wait.address).filter(|unlock| is_granted && unlock.at >= wait.since)?;
        contended.unlockers.entry(unlock.place).or_default().add(waited);
        Some(unlock)
    }

    /// What was counted of a class becomes that of another.
    pub fn fold(&mut self, from: NodeId, to: NodeId, lock: LockId) {
        let Some(folded) = self.nodes.remove(&from) else { return };
        let into = self.nodes.entry(to).or_insert_with(|| Contended::new(lock));
        into.all.join(&folded.all);
        into.longest = into.longest.max(folded.longest);
        for (place, delay) in folded.waiters {
            into.waiters.entry(place).or_default().join(&delay);
        }
        for (place, delay) in folded.unlockers {
            into.unlockers.entry(place).or_default().join(&delay);
        }
    }

    /// The classes, those with the longest total first.
    pub fn sorted(&self) -> Vec<&Contended> {
        let mut all: Vec<_> = self.nodes.values().collect();
        all.sort_by_key(|contended| (Reverse(contended.all.total), contended.lock));
        all
    }
}
