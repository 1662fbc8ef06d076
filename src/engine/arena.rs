//! Waits by number, in chunks, so that memory follows their number: a slab alone keeps its high-water mark for as long as
//! one entry is left.

use std::ops::{Index, IndexMut};

use slab::Slab;

/// Entries of a chunk.
const CHUNK: usize = 256;
/// An arena that has emptied keeps no chunk with more room than this.
const SPARE: usize = 64;

/// A table whose entries have numbers that are used again.
pub struct Arena<T> {
    chunks: Slab<Slab<T>>,
    /// The chunks that are not full.
    open: Vec<usize>,
    len: usize,
}

impl<T> Default for Arena<T> {
    fn default() -> Self {
        Self { chunks: Slab::new(), open: Vec::new(), len: 0 }
    }
}

impl<T> Arena<T> {
    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.len
    }

    /// The number that the next entry will get.
    pub fn vacant_id(&mut self) -> u32 {
        let chunk = match self.open.last() {
            Some(chunk) => *chunk,
            None => {
                let chunk = self.chunks.insert(Slab::new());
                self.open.push(chunk);
                chunk
            }
        };
        u32::try_from(chunk * CHUNK + self.chunks[chunk].vacant_key()).expect("fewer than 2^32 waits")
    }

    /// Puts an entry in.
    pub fn insert(&mut self, entry: T) -> u32 {
        let id = self.vacant_id();
        let chunk = &mut self.chunks[id as usize / CHUNK];
        chunk.insert(entry);
        if chunk.len() == CHUNK {
            self.open.pop();
        }
        self.len += 1;
        id
    }

    /// Takes an entry out, if there is one of this number.
    pub fn try_remove(&mut self, id: u32) -> Option<T> {
        let number = id as usize / CHUNK;
        let chunk = self.chunks.get_mut(number)?;
        let was_full = chunk.len() == CHUNK;
        let entry = chunk.try_remove(id as usize % CHUNK)?;
        let is_empty = chunk.is_empty();
        self.len -= 1;
        if was_full {
            self.open.push(number);
        }
        if self.len == 0 {
            if self.chunks.len() > 1 || self.chunks[number].capacity() > SPARE {
                *self = Self::default();
            }
        } else if is_empty && self.open.len() > 1 && !fault!(ArenaKeepsItsChunks) {
            // One empty chunk is kept, so that a number of waits that wavers about a chunk's size allocates nothing.
            self.chunks.remove(number);
            self.open.retain(|open| *open != number);
        }
        Some(entry)
    }

    /// Takes an entry out.
    pub fn remove(&mut self, id: u32) -> T {
        self.try_remove(id).expect("an entry of this number")
    }

    /// The entry of this number.
    pub fn get(&self, id: u32) -> Option<&T> {
        self.chunks.get(id as usize / CHUNK)?.get(id as usize % CHUNK)
    }

    /// All entries with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.chunks.iter().flat_map(|(number, chunk)| {
            chunk.iter().map(move |(index, entry)| ((number * CHUNK + index) as u32, entry))
        })
    }
}

impl<T> IntoIterator for Arena<T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        let entries: Vec<T> = self.chunks.into_iter().flat_map(|(_, chunk)| chunk).map(|(_, entry)| entry).collect();
        entries.into_iter()
    }
}

impl<T> Index<u32> for Arena<T> {
    type Output = T;

    fn index(&self, id: u32) -> &T {
        &self.chunks[id as usize / CHUNK][id as usize % CHUNK]
    }
}

impl<T> IndexMut<u32> for Arena<T> {
    fn index_mut(&mut self, id: u32) -> &mut T {
        &mut self.chunks[id as usize / CHUNK][id as usize % CHUNK]
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    impl<T> Arena<T> {
        fn room(&self) -> usize {
            self.chunks.iter().map(|(_, chunk)| chunk.capacity()).sum()
        }
    }

    #[test]
    fn numbers_are_known_in_advance_and_used_again() {
        let mut arena = Arena::default();
        for entry in 0..1_000 {
            let id = arena.vacant_id();
            assert_eq!(arena.insert(entry), id);
            assert_eq!(arena[id], entry);
        }
        assert_eq!((arena.remove(7), arena.try_remove(7), arena.get(7)), (7, None, None));
        assert_eq!(arena.insert(1_000), 7);
        assert_eq!(arena.iter().count(), 1_000);
    }

    #[test]
    fn each_entry_has_a_number_of_its_own_whatever_comes_and_goes_across_chunks() {
        let (mut arena, mut expected, mut next) = (Arena::default(), BTreeMap::new(), 0_usize);
        let mut seed = 1_u64;
        let mut random = |below: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as usize % below
        };
        for len in [10, 5 * CHUNK, 2 * CHUNK, 3 * CHUNK, 1, CHUNK + 1, 0, CHUNK, 0] {
            while expected.len() != len {
                // Mostly towards that number.
                if expected.is_empty() || (random(4) > 0) == (expected.len() < len) {
                    let id = arena.insert(next);
                    assert_eq!(expected.insert(id, next), None, "another's number");
                    next += 1;
                } else {
                    let id = *expected.keys().nth(random(expected.len())).unwrap();
                    assert_eq!(Some(arena.remove(id)), expected.remove(&id));
                }
            }
            assert!(arena.iter().map(|(id, entry)| (id, *entry)).eq(expected.clone()), "{len}");
        }
    }

    #[test]
    fn memory_follows_the_number_of_entries() {
        let mut arena = Arena::default();
        for _ in 0..100_000 {
            arena.insert(());
        }
        for id in 0..99_999 {
            arena.remove(id);
        }
        assert_eq!(arena.len(), 1);
        assert!(arena.room() <= 4 * CHUNK, "room for {}", arena.room());
        arena.remove(99_999);
        assert!(arena.is_empty() && arena.room() <= SPARE);
    }
}
