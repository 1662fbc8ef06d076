//! The lock word as the JavaScript fast paths and the bucket-locked sections see it.

use crate::agent::{Id, NOBODY};

/// The owner and the flags A, F and W. G (a guard owns the hold) decides who may unlock, not how the lock goes on,
/// and is not modelled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Word {
    /// The holder, a dead holder that nobody has noticed yet, or nobody.
    pub owner: Id,
    /// A: a holder died inside, and nobody has called `markConsistent()` since.
    pub abandoned: bool,
    /// F: free, but reserved for one party.
    pub fenced: bool,
    /// W: an unlock must look at the queue.
    pub waiters: bool,
}

impl Word {
    /// What the fast path of `lock` compares with: all four bytes zero.
    pub fn is_zero(self) -> bool {
        self == Word::default()
    }

    /// What the fast path of `unlock` compares with: the owner and no flag.
    pub fn is_plainly(self, owner: Id) -> bool {
        self == Word { owner, ..Word::default() }
    }

    /// Free for everybody.
    pub fn is_open(self) -> bool {
        self.owner == NOBODY && !self.fenced
    }

    /// Whether W has to be set while somebody queues: whenever the word is anything but plainly free. On a plainly free
    /// word W stays clear, so that the fast paths go on working while a waiter is on its way.
    pub fn needs_waiters_flag(self) -> bool {
        self.owner != NOBODY || self.abandoned || self.fenced
    }
}
