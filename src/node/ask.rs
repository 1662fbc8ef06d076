//! The binding's functions for all primitives have this in common: which primitive, and what is asked of it.

use napi_derive::napi;

use crate::engine::{Hold, HoldOwner, Primitive};
use crate::primitives::{barrier, event, exchanger, latch, mutex, once, rwlock, semaphore};

/// A row for each thing that can be asked: its name, of which primitive, and to hold what. `count` permits or entries are asked for,
/// `of` permits or parties are there in all.
macro_rules! asks {
    ($(#[doc = $about:literal] $name:ident: $primitive:expr, |$count:pat_param, $of:pat_param| $hold:expr;)*) => {
        /// The request that JS makes of a primitive, or the hold that it has.
        #[napi]
        #[derive(Clone, Copy)]
        pub enum Ask {
            $(#[doc = $about] $name,)*
        }

        impl Ask {
            /// Returns the primitive.
            pub fn primitive(self) -> &'static dyn Primitive {
                match self {
                    $(Self::$name => &$primitive,)*
                }
            }

            /// To hold what.
            pub fn hold(self, count: u32, of: u32) -> Hold {
                match (self, count, of) {
                    $((Self::$name, $count, $of) => $hold,)*
                }
            }
        }
    };
}

asks! {
    /// A mutex, by the thread.
    Mutex: mutex::MUTEX, |_, _| Hold::exclusive(HoldOwner::Thread);
    /// A mutex, by a guard.
    MutexGuarded: mutex::MUTEX, |_, _| Hold::exclusive(HoldOwner::Guard);
    /// To write under an RwLock, by the thread.
    Write: rwlock::RWLOCK, |_, _| Hold::exclusive(HoldOwner::Thread);
    /// To write under an RwLock, by a guard.
    WriteGuarded: rwlock::RWLOCK, |_, _| Hold::exclusive(HoldOwner::Guard);
    /// To read under an RwLock, by the thread.
    Read: rwlock::RWLOCK, |_, _| Hold::shared(HoldOwner::Thread);
    /// To read under an RwLock, by a guard.
    ReadGuarded: rwlock::RWLOCK, |_, _| Hold::shared(HoldOwner::Guard);
    /// Permits of a semaphore.
    Permits: semaphore::SEMAPHORE, |count, of| Hold::permits(count, of);
    /// Permits of a fair semaphore.
    FairPermits: semaphore::FAIR_SEMAPHORE, |count, of| Hold::permits(count, of);
    /// To pass an open latch.
    LatchPassage: latch::LATCH, |_, _| Hold::PASSAGE;
    /// Entries of a latch.
    LatchEntry: latch::LATCH, |count, _| Hold::entries(count);
    /// To pass an event that is reset by hand.
    ManualResetEvent: event::MANUAL_RESET_EVENT, |_, _| Hold::PASSAGE;
    /// To pass an event that resets itself.
    AutoResetEvent: event::AUTO_RESET_EVENT, |_, _| Hold::PASSAGE;
    /// To be a party of a barrier.
    BarrierParty: barrier::BARRIER, |_, of| Hold::party(of);
    /// To be a member of a barrier.
    BarrierMember: barrier::BARRIER, |_, _| Hold::MEMBER;
    /// To meet another at an exchanger; `of` is the value.
    Exchange: exchanger::EXCHANGER, |_, value| Hold::exchange(value);
    /// To run once.
    Once: once::ONCE, |_, _| Hold::exclusive(HoldOwner::Thread);
}
