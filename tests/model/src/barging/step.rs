//! The names of all that can happen, one step at a time.

use super::agent::{Id, Stall, TIMER, Thread, Verb};
use super::queue::Way;

/// One step of one thread, or of the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// JavaScript calls a verb: the fast path, or the failed fast path before the native call.
    Call(Id, Verb),
    /// Only under a fault: the word is read before the bucket is locked.
    Look(Id),
    /// JavaScript runs with the lock that native code took for it.
    Accept(Id),
    /// Only under a fault: A is cleared outside the bucket.
    Repair(Id),
    Stall(Id, Stall),
    Resume(Id),
    /// JavaScript ends: `terminate()`, `process.exit()`, a throw.
    Die(Id),
    /// The dying agent says so.
    Mark(Id),
    /// With split sections: a section locks the bucket and freezes the word.
    Freeze(Section),
    /// A bucket-locked section, or with split sections the rest of it.
    Run(Section),
    /// The offering thread pushes the word on the next loop's inbox.
    Push(Thread),
    /// ... and calls that loop unless it is scheduled already.
    Ring(Thread),
    /// A loop is called for the sake of another word.
    CallElsewhere(Id),
    /// The called loop begins to drain its inbox; then, takes it.
    Drain(Id),
    /// A blocked waiter has waited for a millisecond.
    Age,
    /// The last give is half a millisecond ago.
    Cool,
    /// A blocked waiter looks on.
    Spin(Id),
    /// It does no longer, or nobody can see it.
    SpinOver,
}

/// A step that is done under the bucket's lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Section {
    /// A verb whose fast path failed.
    Verb(Id),
    /// A woken thread tries to take the lock.
    Woken(Id),
    /// A blocked wait's deadline.
    Deadline(Id),
    /// A slice is over: the thread leaves for JavaScript.
    SliceOver(Id),
    /// It is back.
    Back(Id),
    /// A loop comes for the lock that it was offered.
    Claim(Id),
    /// ... and if it finds it held, sleeps until it is handed over, for a short time.
    ClaimOrPark(Id),
    /// The time is over, or the word was handed over.
    ParkOver(Id),
    /// An asynchronous wait ends by abort or timeout.
    Abort(Id, Way),
    MarkConsistent(Id),
    /// A dying agent passes on its grant, or leaves the queue.
    Leave(Id),
    /// A dying agent, marked, frees what it died with.
    Scan(Id),
    LeaseOver,
}

impl Section {
    pub fn thread(self) -> Thread {
        use Section::*;
        match self {
            Verb(id) | Woken(id) | Deadline(id) | SliceOver(id) | Back(id) | Claim(id) | ClaimOrPark(id)
            | ParkOver(id) => id,
            Abort(id, _) | MarkConsistent(id) | Leave(id) | Scan(id) => id,
            LeaseOver => TIMER,
        }
    }
}
