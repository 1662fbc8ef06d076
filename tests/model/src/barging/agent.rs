//! One JavaScript thread: where its code is, what it holds, how far its death has come, and its event loop.

pub use crate::primitives::{Id, NOBODY};

/// A thread that runs protocol code: an agent's, or the timer's.
pub type Thread = Id;

/// The background thread that ends leases.
pub const TIMER: Thread = 0;

/// The place where a thread is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum At {
    /// In JavaScript, or idle in its event loop.
    #[default]
    Js,
    /// Its fast path has failed; the native call has not reached the bucket yet.
    Calling(Verb),
    /// Only under a fault: the word was read before the bucket was locked.
    Decided(Verb, bool),
    /// Blocked natively inside `lock()`.
    Parked,
    /// Inside `lock()`, in the JavaScript no-op between two slices.
    Away,
    /// The native code has the lock for it; its JavaScript does not know yet.
    Returning,
    /// Its drain has cleared `scheduled` and is about to take the inbox. (Under a fault the other way round; the number is
    /// what it took.)
    Draining(u8),
    /// Its drain has taken the inbox: so many claims of the word are left.
    Claiming(u8),
    /// Its event loop sleeps in a drain, for a short time, until the word is handed to it; so many claims are left.
    Asleep(u8),
}

/// A thread's request to the native side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verb {
    Lock,
    TryLock,
    LockAsync,
    /// `lockAsync(0)`: one try that must not overtake.
    TryLockAsync,
    Unlock,
}

impl Verb {
    pub fn is_async(self) -> bool {
        matches!(self, Verb::LockAsync | Verb::TryLockAsync)
    }

    /// Whether it returns at once instead of queueing.
    pub fn is_once(self) -> bool {
        matches!(self, Verb::TryLock | Verb::TryLockAsync)
    }
}

/// The stage at which an agent is with the lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Hold {
    #[default]
    No,
    /// The word says so, its JavaScript has not run since: not accepted.
    Granted,
    /// Its code runs with the lock.
    Inside,
}

/// A thread whose event loop does not turn, perhaps for ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Stall {
    #[default]
    No,
    /// In JavaScript; nobody can know.
    Busy,
    /// Blocked in native code on something else; `hand_off` can see that.
    Elsewhere,
    /// Over, and its loop turns before it stalls again: time that passes for ever without a turn is one stall, not many.
    Over,
}

impl Stall {
    /// A stall that ends; `comes` says whether the loop has a reason to turn.
    pub fn over(self, comes: bool) -> Self {
        if comes { Stall::Over } else { Stall::No }
    }
}

/// From running to gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Life {
    #[default]
    Running,
    Dying(Stage),
    Gone,
}

/// The cleanup of a dying thread, in the order of its steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Its JavaScript has ended (callbacks already queued still run): passes on a grant, leaves the queue.
    Leave,
    /// Says to all that it is dead.
    Mark,
    /// Frees the contended words that it died with.
    Scan,
}

/// One event loop's waiters in the queue of the word (a *loop group*), and its inbox of offered words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Group {
    /// An offer is under way; set and cleared under the bucket's lock.
    pub offered: bool,
    /// It came for the lock and found it taken: the next hand-on reserves for it.
    pub claimed: bool,
    /// The loop sleeps until the word is handed to its first waiter, or its time is over.
    pub parked: bool,
    /// While it slept, the word was freed and went to another.
    pub passed_by: bool,
    /// The number of times that the word is in its inbox.
    pub inbox: u8,
    /// A wake-up of the loop is due or under way.
    pub scheduled: bool,
    /// The threadsafe function was called, and its callback has not run.
    pub called: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Agent {
    pub life: Life,
    /// Whether the others see it as dead.
    pub marked: bool,
    pub at: At,
    pub hold: Hold,
    pub stall: Stall,
    /// The dead holder that this one has to warn about once its code has the lock.
    pub unreported: Id,
    pub group: Group,
}

impl Agent {
    pub fn is_running(&self) -> bool {
        self.life == Life::Running
    }

    /// Whether `hand_off` can see that its event loop cannot turn.
    pub fn is_blocked_natively(&self) -> bool {
        self.is_in_lock() || self.stall == Stall::Elsewhere
    }

    pub fn is_in_lock(&self) -> bool {
        matches!(self.at, At::Parked | At::Away)
    }

    pub fn is_stalled(&self) -> bool {
        matches!(self.stall, Stall::Busy | Stall::Elsewhere)
    }

    /// Whether a word that it holds may be freed soon.
    pub fn can_run(&self) -> bool {
        self.is_running() && !(self.is_in_lock() && self.hold != Hold::Granted) && self.stall != Stall::Elsewhere
    }

    /// Whether its event loop is sure to turn again.
    pub fn turns(&self) -> bool {
        self.is_running() && !self.is_stalled() && !self.is_in_lock()
    }

    /// Whether its queued callbacks may run now: also after its JavaScript has ended, until the cleanup is past them.
    pub fn may_turn(&self) -> bool {
        let alive = matches!(self.life, Life::Running | Life::Dying(Stage::Leave));
        alive && self.at == At::Js && !self.is_stalled()
    }
}
