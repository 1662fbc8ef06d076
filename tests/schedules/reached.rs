//! The events that the schedules of this run came to.

use std::sync::atomic::{AtomicU64, Ordering};

/// Makes the list of what has to come about, or nothing was shown.
macro_rules! reached {
    ($($name:ident,)*) => {
        /// One kind of event.
        #[derive(Clone, Copy, Debug)]
        pub enum Reached {
            $($name,)*
        }

        const ALL: &[Reached] = &[$(Reached::$name,)*];
    };
}

reached! {
    HeldAfterAWait,
    HandedOver,
    TimedOut,
    ExpiredByTheClock,
    TakenBack,
    Deadlock,
    Interrupted,
    EndedInside,
    EndedWhilePending,
    EndedBeforeItKnew,
    EndReported,
    PermitsGivenBack,
    LeaseEnded,
    Notified,
    SetLocked,
    NameHeld,
    OuterGranted,
    OuterUnwanted,
    OuterHeld,
    OuterHeldByBlocking,
    OuterLost,
    OuterFailed,
    Changed,
    Passed,
    PassedLatch,
    PassedBarrier,
    FoundBroken,
    DoneOnce,
    Exchanged,
    CorruptBlocked,
    CorruptPending,
    SlotFreed,
}

static COUNTS: [AtomicU64; ALL.len()] = [const { AtomicU64::new(0) }; ALL.len()];

/// It has come about once more, or so many times.
pub fn reached(what: Reached, times: u64) {
    COUNTS[what as usize].fetch_add(times, Ordering::Relaxed);
}

/// Prints the counts; if `is_enough`, fails where one is 0.
pub fn report(is_enough: bool) {
    let counts = || ALL.iter().map(|what| (what, COUNTS[*what as usize].load(Ordering::Relaxed)));
    println!("{:?}", counts().collect::<Vec<_>>());
    let never: Vec<_> = counts().filter(|(_, count)| *count == 0).map(|(what, _)| what).collect();
    assert!(never.is_empty() || !is_enough, "never reached: {never:?}");
}
