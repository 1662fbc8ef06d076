//! Any primitive's word, as the engine drives it.

use super::mutex::Mutex;
use super::once::Once;
use super::rwlock::RwLock;
use super::semaphore::Semaphore;
use super::types::{Id, NOBODY, Request};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Word {
    Mutex(Mutex),
    RwLock(RwLock),
    Semaphore(Semaphore),
    Once(Once),
}

impl Word {
    /// Without W: `skips_queue`, only under a fault.
    pub fn fast_acquire(self, request: Request, who: Id) -> Option<Self> {
        Some(match self {
            Word::Mutex(word) => Word::Mutex(word.fast_lock(who)?),
            Word::RwLock(word) => Word::RwLock(word.fast_acquire(request, who)?),
            Word::Semaphore(word) => Word::Semaphore(word.fast_acquire(request)?),
            Word::Once(word) => Word::Once(word.fast_acquire()?),
        })
    }

    pub fn fast_release(self, request: Request, who: Id) -> Option<Self> {
        Some(match self {
            Word::Mutex(word) => Word::Mutex(word.fast_unlock(who)?),
            Word::RwLock(word) => Word::RwLock(word.fast_release(request)?),
            Word::Semaphore(word) => Word::Semaphore(word.fast_release(request)?),
            Word::Once(_) => return None,
        })
    }

    /// `in_slots`: how many readers the slots count, where they do.
    pub fn grant(self, request: Request, who: Id, in_slots: Option<u8>) -> Option<Self> {
        Some(match self {
            Word::Mutex(word) => Word::Mutex(word.grant(who)?),
            Word::RwLock(word) => Word::RwLock(word.grant(request, who, in_slots)?),
            Word::Semaphore(word) => Word::Semaphore(word.grant(request)?),
            Word::Once(word) => Word::Once(word.grant(who)?),
        })
    }

    /// Given back, by its holder or for one that never knew of it.
    pub fn release(self, request: Request) -> Self {
        match self {
            Word::Mutex(word) => Word::Mutex(word.release()),
            Word::RwLock(word) => Word::RwLock(word.release(request)),
            Word::Semaphore(word) => Word::Semaphore(word.release(request)),
            Word::Once(word) => Word::Once(word.release()),
        }
    }

    /// The thread of the owner has ended.
    pub fn ended(self) -> Self {
        match self {
            Word::Mutex(word) => Word::Mutex(word.ended()),
            Word::RwLock(word) => Word::RwLock(word.release(Request::Exclusive)),
            Word::Semaphore(_) => self,
            Word::Once(word) => Word::Once(word.release()),
        }
    }

    /// Kept for a loop that will come for this: of permits, they are taken.
    pub fn reserve(self, request: Request) -> Self {
        match self {
            Word::Mutex(word) => Word::Mutex(word.reserve(true)),
            Word::RwLock(word) => Word::RwLock(RwLock { reserved: Some(request), ..word }),
            Word::Semaphore(word) => word.grant(request).map_or(self, Word::Semaphore),
            Word::Once(_) => self,
        }
    }

    /// Ends the reservation for this.
    pub fn unreserve(self, request: Request) -> Self {
        match self {
            Word::Mutex(word) => Word::Mutex(word.reserve(false)),
            Word::RwLock(word) => Word::RwLock(RwLock { reserved: None, ..word }),
            Word::Semaphore(word) => Word::Semaphore(word.release(request)),
            Word::Once(_) => self,
        }
    }

    /// `strict`: W stays set while anybody waits, also on a free word.
    pub fn closed(self, anybody_queued: bool, strict: bool) -> Self {
        match self {
            Word::Mutex(word) if strict => Word::Mutex(Mutex { waiters: anybody_queued, ..word }),
            Word::Mutex(word) => Word::Mutex(word.closed(anybody_queued)),
            Word::RwLock(word) => Word::RwLock(word.closed(anybody_queued)),
            Word::Semaphore(word) => Word::Semaphore(word.closed(anybody_queued)),
            Word::Once(word) => Word::Once(word.closed(anybody_queued)),
        }
    }

    /// With W, or without.
    pub fn with_waiters(self, waiters: bool) -> Self {
        match self {
            Word::Mutex(word) => Word::Mutex(Mutex { waiters, ..word }),
            Word::RwLock(word) => Word::RwLock(RwLock { waiters, ..word }),
            Word::Semaphore(word) => Word::Semaphore(Semaphore { waiters, ..word }),
            Word::Once(word) => Word::Once(Once { waiters, ..word }),
        }
    }

    pub fn has_waiters(self) -> bool {
        self == self.with_waiters(true)
    }

    /// Whose id stands in the word.
    pub fn owner(self) -> Id {
        match self {
            Word::Mutex(word) => word.owner,
            Word::RwLock(word) => word.writer,
            Word::Semaphore(_) => NOBODY,
            Word::Once(word) => word.runner,
        }
    }

    /// Whether whoever is granted this holds nothing.
    pub fn is_passed(self) -> bool {
        matches!(self, Word::Once(Once { done: true, .. }))
    }
}
