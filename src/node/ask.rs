//! What the binding's functions for all primitives have in common: which primitive, and what is asked of it.

use napi_derive::napi;

use crate::engine::{Hold, HoldOwner, Primitive};
use crate::primitives::barrier::BARRIER;
use crate::primitives::event::{AUTO_RESET_EVENT, MANUAL_RESET_EVENT};
use crate::primitives::latch::LATCH;
use crate::primitives::mutex::MUTEX;
use crate::primitives::once::ONCE;
use crate::primitives::rwlock::RWLOCK;
use crate::primitives::semaphore::{FAIR_SEMAPHORE, SEMAPHORE};

/// What JS asks of which primitive, or holds of it.
#[napi]
#[derive(Clone, Copy)]
pub enum Ask {
    /// A mutex, by the thread.
    Mutex,
    /// A mutex, by a guard.
    MutexGuarded,
    /// To write under an RwLock, by the thread.
    Write,
    /// To write under an RwLock, by a guard.
    WriteGuarded,
    /// To read under an RwLock, by the thread.
    Read,
    /// To read under an RwLock, by a guard.
    ReadGuarded,
    /// Permits of a semaphore.
    Permits,
    /// Permits of a fair semaphore.
    FairPermits,
    /// To pass an open latch.
    LatchPassage,
    /// Entries of a latch.
    LatchEntry,
    /// To pass an event that is reset by hand.
    ManualResetEvent,
    /// To pass an event that resets itself.
    AutoResetEvent,
    /// To be a party of a barrier.
    BarrierParty,
    /// To be a member of a barrier.
    BarrierMember,
    /// To run once.
    Once,
}

impl Ask {
    /// Of which primitive.
    pub fn primitive(self) -> &'static dyn Primitive {
        match self {
            Self::Mutex | Self::MutexGuarded => &MUTEX,
            Self::Write | Self::WriteGuarded | Self::Read | Self::ReadGuarded => &RWLOCK,
            Self::Permits => &SEMAPHORE,
            Self::FairPermits => &FAIR_SEMAPHORE,
            Self::LatchPassage | Self::LatchEntry => &LATCH,
            Self::ManualResetEvent => &MANUAL_RESET_EVENT,
            Self::AutoResetEvent => &AUTO_RESET_EVENT,
            Self::BarrierParty | Self::BarrierMember => &BARRIER,
            Self::Once => &ONCE,
        }
    }

    /// To hold what. `count` permits or entries, `of` permits or parties in all.
    pub fn hold(self, count: u32, of: u32) -> Hold {
        match self {
            Self::Mutex | Self::Write | Self::Once => Hold::exclusive(HoldOwner::Thread),
            Self::MutexGuarded | Self::WriteGuarded => Hold::exclusive(HoldOwner::Guard),
            Self::Read => Hold::shared(HoldOwner::Thread),
            Self::ReadGuarded => Hold::shared(HoldOwner::Guard),
            Self::Permits | Self::FairPermits => Hold::permits(count, of),
            Self::LatchEntry => Hold::entries(count),
            Self::LatchPassage | Self::ManualResetEvent | Self::AutoResetEvent => Hold::PASSAGE,
            Self::BarrierParty => Hold::party(of),
            Self::BarrierMember => Hold::MEMBER,
        }
    }
}
