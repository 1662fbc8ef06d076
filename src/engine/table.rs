//! The wait table: the queues of all primitives of the process, keyed by address, in buckets with a lock each.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use rustc_hash::FxHashMap;

use super::contents::{Bucket, Contents};
use super::patience::Patience;
use super::primitive::{Primitive, Space};
use super::stats::Stats;
use super::timers::Timers;
use crate::agents::{AgentId, Agents};
use crate::memory::Place;
use crate::sync::{AtomicU32, AtomicU64, Mutex, MutexGuard, Ordering, spread};

/// A primitive for which an agent has a slot in its register of holds.
pub(crate) type Registered = (&'static dyn Primitive, Place);

/// All queues and all agents of a process.
pub struct Engine {
    words: Box<[Bucket]>,
    notifications: Box<[Bucket]>,
    /// These are made when they are asked for.
    listed: OnceLock<Box<[Bucket]>>,
    outer: OnceLock<Box<[Bucket]>>,
    /// The agents.
    pub agents: Agents,
    pub(crate) timers: Box<dyn Timers>,
    pub(crate) patience: Patience,
    /// Generations of leases and serials of waits.
    serials: AtomicU64,
    /// The places for which each agent has slots, by their addresses.
    pub(crate) registers: Mutex<FxHashMap<AgentId, BTreeMap<usize, Registered>>>,
    /// The number of ended holds in all buckets.
    pub(super) ended: AtomicU32,
    /// Held while a deadlock is looked for, so that one thread only reports it; and while the clock ends a wait, which must not be
    /// seen by halves.
    pub(crate) detecting: Mutex<()>,
}

impl Engine {
    /// An engine with `buckets` buckets (a power of two), whose agents' ids begin at `first_agent`.
    pub fn new(buckets: usize, first_agent: AgentId, patience: Patience, timers: Box<dyn Timers>) -> Self {
        let table = || table_of(buckets);
        Self {
            words: table(),
            notifications: table(),
            listed: OnceLock::new(),
            outer: OnceLock::new(),
            agents: Agents::new(first_agent),
            timers,
            patience,
            serials: AtomicU64::new(1),
            registers: Mutex::new(FxHashMap::default()),
            ended: AtomicU32::new(0),
            detecting: Mutex::new(()),
        }
    }

    fn table(&self, space: Space) -> &[Bucket] {
        match space {
            Space::Words => &self.words,
            Space::Notifications => &self.notifications,
            Space::Listed => self.listed.get_or_init(|| table_of(SMALL)),
            Space::Outer => self.outer.get_or_init(|| table_of(SMALL)),
        }
    }

    pub(crate) fn bucket(&self, space: Space, address: usize) -> &Bucket {
        let buckets = self.table(space);
        &buckets[bucket_index(address, buckets.len())]
    }

    /// Locks the bucket of a primitive.
    pub(crate) fn contents(&self, space: Space, address: usize) -> MutexGuard<'_, Contents> {
        self.bucket(space, address).contents.lock()
    }

    /// Locks the bucket in which somebody is queued at `address` to hold something, if anybody is.
    pub(super) fn contents_at(&self, address: usize) -> MutexGuard<'_, Contents> {
        let contents = self.contents(Space::Words, address);
        if contents.queues.contains_key(&address) || self.listed.get().is_none() {
            return contents;
        }
        drop(contents);
        self.contents(Space::Listed, address)
    }

    /// All buckets of a table.
    pub(crate) fn buckets(&self, space: Space) -> impl Iterator<Item = &Bucket> {
        self.table(space).iter()
    }

    pub(crate) fn serial(&self) -> u64 {
        // Relaxed: only uniqueness matters.
        self.serials.fetch_add(1, Ordering::Relaxed)
    }

    /// The counts of all buckets. From the first call on they read the clock, those of a table that is made for that too.
    pub fn stats(&self) -> Stats {
        let mut sum = Stats::default();
        for bucket in self.buckets(Space::Words).chain(self.buckets(Space::Listed)) {
            sum.add(bucket.contents.lock().stats.read());
        }
        sum
    }

    /// The buckets in which waits may be for more than a notification, of the tables that there are.
    pub(super) fn buckets_of_requests(&self) -> impl Iterator<Item = &Bucket> {
        self.words.iter().chain(self.listed.get().into_iter().flatten()).chain(self.outer.get().into_iter().flatten())
    }
}

/// The number of buckets of the tables that few programs need: a power of two.
const SMALL: usize = spread(64);

fn table_of(buckets: usize) -> Box<[Bucket]> {
    (0..buckets).map(|_| Bucket::default()).collect()
}

/// Which of so many buckets (a power of two) is that of an address.
pub(super) fn bucket_index(address: usize, buckets: usize) -> usize {
    // Words lie 4 bytes apart; the multiplier (2^64 divided by the golden ratio: Knuth, TAOCP 6.4) spreads neighbours.
    let hash = ((address as u64) >> 2).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (hash >> 32) as usize & (buckets - 1)
}
