//! The lot: the queues of all words of the process, and the lines of all locations, keyed by address.
//!
//! A *section* is a stretch of code under the lock of a word's bucket. It begins by setting W, which freezes the word
//! (neither of the JS fast paths can succeed on it), decides on the frozen value, and ends with a plain store.
//! Wake-ups are collected and carried out after the bucket's lock is released.

pub(crate) mod line;
pub(crate) mod list;
mod overview;
pub mod queue;
mod section;
mod tally;
mod wakes;

use std::time::Duration;

use rustc_hash::FxHashMap;
use slab::Slab;

use crate::agent::{AgentId, Roster, SPARE, ThreadId, Timers};
use crate::shared_word::SharedWord;
use crate::spin::HoldLengths;
use crate::sync::{AtomicBool, AtomicU64, Mutex, MutexGuard, Ordering};
use line::Lines;
use queue::{Node, NodeId, Queue};

pub(crate) use section::{Claim, Section};
pub(crate) use tally::Leaving;
pub use tally::Tally;
pub(crate) use wakes::Wakes;

/// How long waiters are left to luck; the numbers behind fairness.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// A blocked waiter that has waited this long is handed the word directly; 1 ms, as in the starvation mode of Go's mutex.
    pub grant_after: Duration,
    /// At most one such hand-over for each word in this time, so that a queue of old waiters does not become a convoy.
    pub grant_every: Duration,
    /// The first lease of a reservation; it doubles each time the loop misses it. Zero: no reservations.
    pub lease: Duration,
    /// No lease is longer.
    pub longest_lease: Duration,
    /// How long a thread that finds the word held looks on before it queues: about what a system call costs.
    pub spin: Duration,
    /// How long it then looks on, queued, before it sleeps: about what it costs two threads to sleep and to wake (Karlin,
    /// Li, Manasse and Owicki, SOSP 1991: to wait as long as that costs at most twice the best).
    pub linger: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            grant_after: Duration::from_millis(1),
            grant_every: Duration::from_micros(500),
            lease: Duration::from_millis(1),
            longest_lease: Duration::from_millis(256),
            spin: Duration::from_micros(3),
            linger: Duration::from_micros(25),
        }
    }
}

impl Patience {
    /// The parts of the design taken away one at a time, for the bench, so that the next person sees what each is for.
    #[must_use]
    pub fn ablated(name: &str) -> Option<Self> {
        let whole = Self::default();
        match name {
            // Always hand the word to the first that sleeps: fair, and a convoy.
            "strict" => Some(Self { grant_after: Duration::ZERO, grant_every: Duration::ZERO, ..whole }),
            // Never hand it over, never reserve it: wake, offer, and let them race.
            "offers" => Some(Self { grant_after: Duration::MAX, lease: Duration::ZERO, ..whole }),
            "no-spin" => Some(Self { spin: Duration::ZERO, linger: Duration::ZERO, ..whole }),
            _ => None,
        }
    }
}

/// All queues and all agents of a process.
pub struct Lot {
    buckets: Box<[Bucket]>,
    lines: Box<[LinesBucket]>,
    /// The agents.
    pub agents: Roster,
    pub(crate) timers: Box<dyn Timers>,
    pub(crate) patience: Patience,
    /// Generations of leases and serials of waits.
    serials: AtomicU64,
    /// Held while a cycle of blocked threads is looked for, so that one thread only is told.
    pub(crate) detecting: Mutex<()>,
}

/// The queues of the words that share a hash.
#[repr(align(128))]
pub(crate) struct Bucket {
    pub(crate) contents: Mutex<Contents>,
    /// Somebody spins for a word of this bucket.
    pub(crate) spinning: AtomicBool,
    /// What spins for words of this bucket have seen of its holds.
    pub(crate) holds: HoldLengths,
}

/// The lines of the locations that share a hash: a lock of their own, so that waiting never delays locking.
#[repr(align(128))]
#[derive(Default)]
struct LinesBucket(Mutex<Lines>);

/// What a bucket's lock guards.
#[derive(Default)]
pub(crate) struct Contents {
    pub(crate) queues: FxHashMap<usize, Queue>,
    pub(crate) nodes: Slab<Node>,
    pub(crate) tally: Tally,
    /// How many holds were told apart (see [`Lot::hold`]).
    holds: u64,
}

impl Contents {
    /// After a crowd has left.
    fn give_back_memory(&mut self) {
        if self.nodes.is_empty() && self.nodes.capacity() > SPARE {
            self.nodes = Slab::new();
        }
        if self.queues.is_empty() && self.queues.capacity() > SPARE {
            self.queues = FxHashMap::default();
        }
    }
}

/// The word holds what no sablock wrote.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Corrupt;

/// One waiter as `inspect` shows it.
#[derive(Debug)]
pub struct WaiterView {
    /// Its thread.
    pub thread: ThreadId,
    /// Whether the thread is blocked; else a promise is pending.
    pub is_blocking: bool,
    /// How long it has waited.
    pub waited: Duration,
}

/// A hold of a word that somebody waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HoldView {
    /// Tells it from every other hold of this word.
    pub serial: u64,
    /// The holder's thread.
    pub thread: ThreadId,
}

/// A word and its queue as `inspect` shows them.
#[derive(Debug)]
pub struct WordView {
    /// The word's value.
    pub word: crate::word::Word,
    /// The thread of the holder, dead or alive; `None` if the word is free, or foreign.
    pub owner: Option<ThreadId>,
    /// Whether the holder's thread has ended.
    pub owner_is_dead: bool,
    /// Who waits, in order.
    pub waiters: Vec<WaiterView>,
}

impl Lot {
    /// A lot with `buckets` buckets (a power of two), whose agents' ids begin at `first_agent`.
    pub fn new(buckets: usize, first_agent: AgentId, patience: Patience, timers: Box<dyn Timers>) -> Self {
        assert!(buckets.is_power_of_two());
        let bucket = || Bucket {
            contents: Mutex::new(Contents::default()),
            spinning: AtomicBool::new(false),
            holds: HoldLengths::default(),
        };
        Self {
            buckets: (0..buckets).map(|_| bucket()).collect(),
            lines: (0..buckets).map(|_| LinesBucket::default()).collect(),
            agents: Roster::new(first_agent),
            timers,
            patience,
            serials: AtomicU64::new(1),
            detecting: Mutex::new(()),
        }
    }

    pub(crate) fn bucket(&self, address: usize) -> &Bucket {
        &self.buckets[self.bucket_index(address)]
    }

    /// The lines of those who wait for a notification at `address`, and at others with the same hash.
    pub(crate) fn lines(&self, address: usize) -> MutexGuard<'_, Lines> {
        self.lines[self.bucket_index(address)].0.lock()
    }

    fn bucket_index(&self, address: usize) -> usize {
        // Words lie 4 bytes apart; the multiplier (2^64 divided by the golden ratio: Knuth, TAOCP 6.4) spreads neighbours.
        let hash = ((address as u64) >> 2).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (hash >> 32) as usize & (self.buckets.len() - 1)
    }

    pub(crate) fn serial(&self) -> u64 {
        // Relaxed: only uniqueness matters.
        self.serials.fetch_add(1, Ordering::Relaxed)
    }

    /// Begins a section on `word`.
    pub(crate) fn open(&self, word: SharedWord) -> Result<Section<'_>, Corrupt> {
        let contents = self.bucket(word.address()).contents.lock();
        Section::begin(self, contents, word)
    }

    /// Begins a section on the word at `address`, if anybody is queued there; only then its memory is known to live.
    pub(crate) fn open_queued(&self, address: usize) -> Option<Result<Section<'_>, Corrupt>> {
        let contents = self.bucket(address).contents.lock();
        let word = contents.queues.get(&address)?.word;
        Some(Section::begin(self, contents, word))
    }

    /// Reads the word at `address`, if anybody is queued there.
    pub(crate) fn read_queued(&self, address: usize) -> Option<crate::word::Word> {
        let contents = self.bucket(address).contents.lock();
        let word = contents.queues.get(&address)?.word;
        Some(crate::word::Word(word.atomic().load(Ordering::Acquire)))
    }

    /// The addresses of the words with waiters that `agent` holds.
    fn queued_words_of(&self, agent: AgentId) -> Vec<usize> {
        let held = |queue: &&Queue| crate::word::Word(queue.word.atomic().load(Ordering::Relaxed)).owner() == agent;
        let words_in = |bucket: &Bucket| -> Vec<usize> {
            let contents: MutexGuard<'_, Contents> = bucket.contents.lock();
            contents.queues.values().filter(held).map(|queue| queue.word.address()).collect()
        };
        self.buckets.iter().flat_map(words_in).collect()
    }

    /// The end of an agent whose waits are all gone: whoever waits for what it holds gets it, marked abandoned.
    /// Words without waiters keep its id, which tells the next comer the same.
    pub fn bury(&self, agent: AgentId) {
        // First dead, then the scan: whoever queues after the scan has seen its word finds a dead holder.
        self.agents.leave(agent);
        for address in self.queued_words_of(agent) {
            let Some(Ok(mut section)) = self.open_queued(address) else { continue };
            if section.free_dead_owner() {
                section.hand_on();
            }
            section.close().carry_out(self);
        }
    }

    /// The lease `generation` on the word at `address` is over: if it still stands, the word goes to the others.
    pub fn end_lease(&self, address: usize, generation: u64) {
        if let Some(Ok(mut section)) = self.open_queued(address) {
            section.end_lease(generation);
            section.close().carry_out(self);
        }
    }

    /// Takes a waiter out of the queue of a word that somebody else has overwritten, and leaves the word alone.
    /// `is_gone` is asked first, under the lock: the waiter may have been served in the meantime.
    pub(crate) fn forget(&self, word: SharedWord, id: NodeId, is_gone: impl FnOnce() -> bool) {
        let mut contents = self.bucket(word.address()).contents.lock();
        if is_gone() {
            return;
        }
        let Contents { queues, nodes, tally, .. } = &mut *contents;
        let queue = queues.get_mut(&word.address()).expect("a waiter has a queue");
        let node = queue.remove(nodes, id);
        tally.leave(&node, Leaving::Ending);
        let agent = node.agent;
        if queue.party(agent).is_none() {
            queue.reservation.take_if(|reservation| reservation.agent == agent);
        }
        if queue.is_empty() {
            queues.remove(&word.address());
        }
    }

    /// The hold of `word` at this moment, if somebody waits who has seen it begin, or has come since: W is set, so that nothing
    /// but a section can have ended it in between.
    pub fn hold(&self, word: SharedWord) -> Option<HoldView> {
        let contents = self.bucket(word.address()).contents.lock();
        let queue = contents.queues.get(&word.address())?;
        let value = crate::word::Word(word.atomic().load(Ordering::Acquire));
        let owner = self.agents.get(value.owner()).filter(|_| value.is_waiting())?;
        Some(HoldView { serial: queue.hold, thread: owner.thread })
    }

    /// The counts of all buckets.
    pub fn tally(&self) -> Tally {
        let mut sum = Tally::default();
        for bucket in &self.buckets {
            sum.add(bucket.contents.lock().tally.read());
        }
        sum
    }

    /// A snapshot for people; changes nothing.
    pub fn inspect(&self, word: SharedWord) -> WordView {
        let contents = self.bucket(word.address()).contents.lock();
        let value = crate::word::Word(word.atomic().load(Ordering::Acquire));
        let now = crate::sync::now();
        let view = |node: &Node| WaiterView {
            thread: self.agents.thread(node.agent).unwrap_or_default(),
            is_blocking: node.is_blocking(),
            waited: now.saturating_duration_since(node.since),
        };
        let waiters = match contents.queues.get(&word.address()) {
            Some(queue) => queue.waiters(&contents.nodes).into_iter().map(view).collect(),
            None => Vec::new(),
        };
        let owner = value.owner();
        WordView {
            word: value,
            owner: self.agents.thread(owner),
            owner_is_dead: owner != 0 && self.agents.standing(owner) == crate::agent::Standing::Dead,
            waiters,
        }
    }
}
