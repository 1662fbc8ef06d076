//! The table of names: which lock a name stands for.
//!
//! A name has an [`Entry`] while it is held, waited for, or marked abandoned: two words, on which a primitive works as on any
//! others. Each request for a name keeps its entry (see [`super::requests`]).
//!
//! Locks are taken in this order: a table of names, then a bucket; one of each at a time, but for whoever asks for all.

use std::hash::{BuildHasher, RandomState};
use std::ptr::NonNull;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::agents::is_sparse;
use crate::engine::Engine;
use crate::fence::Fences;
use crate::memory::Place;
use crate::sync::{AtomicU32, Mutex, MutexGuard, Ordering, spread};

/// A power of two.
const TABLES: usize = spread(16);

/// A name in UTF-16, after the number of the space that it belongs to. Most are short.
pub struct Name(Units);

type Units = SmallVec<[u16; 16]>;

/// Is part of the numbers of spaces of stores, so that reports can tell them from those of the machine.
const OF_STORES: u32 = 1 << 30;

/// Whether the names of the space of this number are those of a store.
pub fn is_of_store(space: u32) -> bool {
    space & OF_STORES != 0
}

/// The number of units that the number of the space takes.
const PREFIX: usize = 2;

impl Name {
    /// The name of these units, in the space of this number.
    pub fn new(space: u32, name: &[u16]) -> Self {
        let mut key = Units::with_capacity(PREFIX + name.len());
        key.push((space >> 16) as u16);
        key.push(space as u16);
        key.extend_from_slice(name);
        Self(key)
    }
}

/// The lock that a name stands for.
pub(super) struct Entry {
    words: [AtomicU32; 2],
    serial: usize,
    hash: u64,
    key: Units,
}

impl Entry {
    pub(super) fn place(&self) -> Place {
        // SAFETY: two aligned words, accessed as atomics only. Whoever uses the place has a request that keeps the entry.
        unsafe { Place::name(NonNull::from(&self.words).cast(), self.serial) }
    }

    /// Whether nobody would miss it. Nobody but the caller uses it.
    fn is_clean(&self) -> bool {
        // Relaxed: whoever changed it has left it under the lock of its table, which the caller holds.
        self.words.iter().all(|word| word.load(Ordering::Relaxed) == 0)
    }

    pub(super) fn key(&self) -> Name {
        Name(self.key.clone())
    }

    pub(super) fn space(&self) -> u32 {
        u32::from(self.key[0]) << 16 | u32::from(self.key[1])
    }

    pub(super) fn name(&self) -> &[u16] {
        &self.key[PREFIX..]
    }
}

/// The entries of some names, by hash; those with the same one beside each other. Of each entry there is one reference here,
/// and one in each request; all come and go under the lock.
pub(super) type Table = FxHashMap<u64, SmallVec<[Arc<Entry>; 1]>>;

/// All names of an engine.
pub struct Names<'e> {
    pub(super) engine: &'e Engine,
    pub(super) tables: Box<[Mutex<Table>]>,
    hasher: RandomState,
    /// The keys of the spaces, in the order of their numbers, which begin at 1.
    spaces: Mutex<Vec<String>>,
    fences: Fences,
}

impl<'e> Names<'e> {
    /// No names, whose waiters are queued in this engine.
    pub fn new(engine: &'e Engine) -> Self {
        Self {
            engine,
            tables: (0..TABLES).map(|_| Mutex::new(Table::default())).collect(),
            // Random: names may come from users, who could make them collide.
            hasher: RandomState::new(),
            spaces: Mutex::new(Vec::new()),
            fences: Fences::new(),
        }
    }

    /// In which their waiters are queued.
    pub fn engine(&self) -> &'e Engine {
        self.engine
    }

    /// The number of the space of this key; the same for all threads.
    pub fn space(&self, key: &str) -> u32 {
        let mut spaces = self.spaces.lock();
        let index = spaces.iter().position(|other| other == key).unwrap_or_else(|| {
            spaces.push(key.into());
            spaces.len() - 1
        });
        index as u32 + 1 + if key.starts_with("store:") { OF_STORES } else { 0 }
    }

    /// The next fence, larger than all before, at this time in microseconds of the wall clock.
    pub fn fence(&self, now: u64) -> u64 {
        self.fences.next(now)
    }

    fn table(&self, hash: u64) -> MutexGuard<'_, Table> {
        // The table itself uses the low bits and the highest ones.
        self.tables[(hash >> 40) as usize & (TABLES - 1)].lock()
    }

    /// The result of `look` at the name's entry, which stays meanwhile; `None` if there is none.
    pub(super) fn look<T>(&self, Name(key): &Name, look: impl FnOnce(&Entry) -> T) -> Option<T> {
        let hash = self.hasher.hash_one(&key[..]);
        let table = self.table(hash);
        table.get(&hash)?.iter().find(|entry| entry.key == *key).map(|entry| look(entry))
    }

    pub(super) fn enter(&self, Name(key): Name) -> Arc<Entry> {
        let hash = self.hasher.hash_one(&key[..]);
        let mut table = self.table(hash);
        let entries = table.entry(hash).or_default();
        if let Some(entry) = entries.iter().find(|entry| entry.key == key) {
            return Arc::clone(entry);
        }
        // Words begin free; fewer than 2^52 of them are ever made.
        let serial = self.engine.serial() as usize;
        let entry = Arc::new(Entry { words: Default::default(), serial, hash, key });
        entries.push(Arc::clone(&entry));
        entry
    }

    pub(super) fn leave(&self, entry: Arc<Entry>) {
        let mut table = self.table(entry.hash);
        // This reference, and that of the table.
        if Arc::strong_count(&entry) == 2 && (entry.is_clean() || fault!(MarkedNameIsForgotten)) {
            let entries = table.get_mut(&entry.hash).expect("an entry stays in its table while it is used");
            entries.retain(|other| !Arc::ptr_eq(other, &entry));
            if entries.is_empty() {
                table.remove(&entry.hash);
            }
            if is_sparse(table.len(), table.capacity()) {
                let room = 2 * table.len();
                table.shrink_to(room);
            }
        }
        // Before the lock is released, so that the next to leave sees it gone.
        drop(entry);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::engine::Patience;
    use crate::engine::clock::Clock;

    fn engine() -> Engine {
        Engine::new(1, 70_000, Patience::default(), Box::new(Clock::new(|| unreachable!("no time is kept"))))
    }

    #[test]
    fn a_name_of_a_store_is_not_the_same_name_of_the_machine() {
        let engine = engine();
        let names = Names::new(&engine);
        let spaces = [0, 1, 1 | OF_STORES];
        let entries = spaces.map(|space| names.enter(Name::new(space, &[97])));
        assert_eq!(entries.each_ref().map(|entry| entry.space()), spaces);
        assert!(!Arc::ptr_eq(&entries[1], &entries[2]));
    }

    #[test]
    fn names_are_spread_over_all_tables() {
        let engine = engine();
        let names = Names::new(&engine);
        for unit in 0..1_000 {
            drop(names.enter(Name::new(0, &[unit])));
        }
        assert!(names.tables.iter().all(|table| !table.lock().is_empty()));
    }

    #[test]
    fn tables_give_most_of_their_room_back_and_keep_some_for_as_many_again() {
        let engine = engine();
        let names = Names::new(&engine);
        // 4,000 for each table; then some 560.
        let mut entries: Vec<_> = (0..65_000).map(|unit| names.enter(Name::new(0, &[unit]))).collect();
        entries.drain(9_000..).for_each(|entry| names.leave(entry));
        for table in &names.tables {
            let table = table.lock();
            let (len, room) = (table.len(), table.capacity());
            assert!((2 * len..=2_048).contains(&room), "room for {room}, of which {len} are used");
        }
    }

    #[test]
    fn a_name_of_which_either_word_says_something_is_not_forgotten() {
        let engine = engine();
        let names = Names::new(&engine);
        for index in [0, 1] {
            let entry = names.enter(Name::new(0, &[index as u16]));
            entry.words[index].store(1, Ordering::Relaxed);
            names.leave(entry);
            assert_eq!(names.known(), index + 1);
        }
    }
}
