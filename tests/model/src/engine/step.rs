//! The names of all that can happen, one step at a time.

use crate::primitives::{Id, Request};

/// The way in which a waiter waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Way {
    Blocked,
    Async,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// JavaScript asks for something: the first step of the fast path.
    Acquire(Id, usize, Request, Way),
    Try(Id, usize, Request),
    Release(Id, usize),
    /// A change of an RwLock: downgrade, or `tryUpgrade`.
    ChangeMode(Id, usize),
    /// The function that runs once is done; else it fails, which is `Release`.
    Finish(Id, usize),
    /// The next step of a fast path.
    Fast(Id),
    Stall(Id),
    Resume(Id),
    /// The thread's JavaScript ends.
    End(Id),
    /// It is marked dead.
    Mark(Id),
    Age,
    Freeze(Section),
    Run(Section),
}

/// A step that is done under the bucket's lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Section {
    Call(Id, usize),
    /// A woken thread tries.
    Woken(Id, usize),
    /// The slice of a thread that sleeps is over: it tries, and goes away.
    GoesAway(Id, usize),
    /// It is back, and tries.
    Back(Id, usize),
    /// A loop comes for what it was offered.
    Claim(Id, usize),
    /// The thread learns of what it was granted.
    Accept(Id, usize),
    /// A deadline or an abort.
    Quit(Id, usize),
    /// As `Quit`, of a loop that has another wait, for this.
    AsksNext(Id, usize, Request),
    LeaseOver(usize),
    /// The clock ends a promise's wait, whatever its loop does.
    Expire(Id, usize),
    /// An ending thread leaves the queue or passes on its grant, then gives back what its register says.
    Leave(Id, usize),
    /// ... and, marked, frees what it owned.
    Scan(Id, usize),
}

impl Section {
    pub fn word(self) -> usize {
        use Section::*;
        match self {
            GoesAway(_, word) | Back(_, word) => word,
            Call(_, word) | Woken(_, word) | Claim(_, word) | Accept(_, word) | AsksNext(_, word, _) => word,
            Quit(_, word) | LeaseOver(word) | Expire(_, word) | Leave(_, word) | Scan(_, word) => word,
        }
    }

    pub fn thread(self) -> Option<Id> {
        use Section::*;
        match self {
            Call(id, _) | Woken(id, _) | Claim(id, _) | Accept(id, _) | AsksNext(id, ..) => Some(id),
            GoesAway(id, _) | Back(id, _) | Quit(id, _) | Leave(id, _) | Scan(id, _) => Some(id),
            LeaseOver(_) | Expire(..) => None,
        }
    }
}
