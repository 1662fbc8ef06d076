//! The mutex: who holds it, and three flags. G (a guard owns the hold) decides who may unlock, not how the lock goes on,
//! and is not modelled.

use super::types::{Id, NOBODY};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Mutex {
    /// The holder, a dead holder that nobody has noticed yet, or nobody.
    pub owner: Id,
    /// A: a holder died inside, and nobody has called `markConsistent()` since.
    pub abandoned: bool,
    /// F: free, but reserved for one loop group.
    pub reserved: bool,
    /// W: an unlock must look at the queue.
    pub waiters: bool,
}

impl Mutex {
    /// The fast path of `lock`: all four bytes zero.
    pub fn fast_lock(self, who: Id) -> Option<Self> {
        (self == Mutex::default()).then_some(Mutex { owner: who, ..self })
    }

    /// The fast path of `unlock`: the owner and no flag.
    pub fn fast_unlock(self, who: Id) -> Option<Self> {
        (self == Mutex { owner: who, ..Mutex::default() }).then_some(Mutex::default())
    }

    /// Free for everybody.
    pub fn is_open(self) -> bool {
        self.owner == NOBODY && !self.reserved
    }

    pub fn grant(self, who: Id) -> Option<Self> {
        self.is_open().then_some(Mutex { owner: who, ..self })
    }

    pub fn release(self) -> Self {
        Mutex { owner: NOBODY, ..self }
    }

    /// The holder's thread has ended inside.
    pub fn ended(self) -> Self {
        Mutex { owner: NOBODY, abandoned: true, ..self }
    }

    /// As if a dead holder had never been noticed: the word itself then says that somebody has to be warned.
    pub fn left_to(self, dead: Id) -> Self {
        Mutex { owner: dead, ..self }
    }

    pub fn reserve(self, reserved: bool) -> Self {
        Mutex { reserved, ..self }
    }

    pub fn consistent(self) -> Self {
        Mutex { abandoned: false, ..self }
    }

    /// The end of a section. W is set while somebody queues, unless the word is plainly free: then it stays clear, so
    /// that the fast paths go on working while the waiter that was woken comes.
    pub fn closed(self, anybody_queued: bool) -> Self {
        let plainly_free = self.owner == NOBODY && !self.abandoned && !self.reserved;
        Mutex { waiters: anybody_queued && !plainly_free, ..self }
    }
}
