//! What the schedules of this run came to.

use std::sync::atomic::{AtomicU64, Ordering};

/// What has to come about, or nothing was shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum Reached {
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
    Changed,
    Passed,
    CorruptBlocked,
    CorruptPending,
    SlotFreed,
}

use Reached::*;

const ALL: [Reached; 21] = [
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
    Changed,
    Passed,
    CorruptBlocked,
    CorruptPending,
    SlotFreed,
];

static COUNTS: [AtomicU64; ALL.len()] = [const { AtomicU64::new(0) }; ALL.len()];

/// It has come about once more, or so many times.
pub fn reached(what: Reached, times: u64) {
    COUNTS[what as usize].fetch_add(times, Ordering::Relaxed);
}

/// Prints the counts; if `is_enough`, fails where one is 0.
pub fn report(is_enough: bool) {
    let counts = ALL.map(|what| (what, COUNTS[what as usize].load(Ordering::Relaxed)));
    println!("{counts:?}");
    let never: Vec<_> = counts.iter().filter(|(_, count)| *count == 0).map(|(what, _)| what).collect();
    assert!(never.is_empty() || !is_enough, "never reached: {never:?}");
}
