//! A doubly linked list through an arena, so that each element can leave in one step.
//! Plain data: everything here happens under the lock of the bucket that owns the arena.

use super::arena::Arena;

/// A waiter's number in its bucket's arena.
pub type WaiterId = u32;

const NONE: WaiterId = WaiterId::MAX;

/// An entry's neighbours.
#[derive(Clone, Copy)]
pub struct Links {
    previous: WaiterId,
    next: WaiterId,
}

impl Links {
    /// The links of an entry that is in no list.
    pub const NONE: Self = Self { previous: NONE, next: NONE };
}

/// An entry that can be in a list.
pub trait Linked {
    /// Its neighbours.
    fn links(&self) -> Links;
    /// Its neighbours, to be changed by the list only.
    fn links_mut(&mut self) -> &mut Links;
}

/// The two ends.
#[derive(Clone, Copy)]
pub struct List {
    head: WaiterId,
    tail: WaiterId,
}

impl List {
    /// Without any entry.
    pub const EMPTY: Self = Self { head: NONE, tail: NONE };

    /// Its first entry.
    pub fn first(self) -> Option<WaiterId> {
        some(self.head)
    }

    /// All its entries in order.
    pub fn iter<T: Linked>(self, arena: &Arena<T>) -> impl Iterator<Item = WaiterId> {
        std::iter::successors(self.first(), |id| some(arena[*id].links().next)).inspect(|_| count_step())
    }

    /// Puts a new entry at the end.
    pub fn push<T: Linked>(&mut self, arena: &mut Arena<T>, entry: T) -> WaiterId {
        let id = arena.insert(entry);
        self.link(arena, id);
        id
    }

    /// Puts an entry that is in no list at the end.
    pub fn link<T: Linked>(&mut self, arena: &mut Arena<T>, id: WaiterId) {
        *arena[id].links_mut() = Links { previous: self.tail, next: NONE };
        match self.tail {
            NONE => self.head = id,
            tail => arena[tail].links_mut().next = id,
        }
        self.tail = id;
    }

    /// Takes an entry out; it stays in the arena.
    pub fn unlink<T: Linked>(&mut self, arena: &mut Arena<T>, id: WaiterId) {
        let Links { previous, next } = std::mem::replace(arena[id].links_mut(), Links::NONE);
        match previous {
            NONE => self.head = next,
            previous => arena[previous].links_mut().next = next,
        }
        match next {
            NONE => self.tail = previous,
            next => arena[next].links_mut().previous = previous,
        }
    }
}

/// For tests of what must not walk along a list again and again.
#[inline(always)]
fn count_step() {
    #[cfg(test)]
    STEPS.set(STEPS.get() + 1);
}

#[cfg(test)]
thread_local! {
    /// The number of entries that were passed in walks along lists.
    pub static STEPS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

fn some(id: WaiterId) -> Option<WaiterId> {
    (id != NONE).then_some(id)
}
