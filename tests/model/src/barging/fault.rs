//! The mutants. Each fault is asked for at the one place of the protocol that it breaks; the checks must notice each.
//! A check that cannot fail proves nothing.

/// One mistake in the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A waiter that leaves (abort, timeout, death) does not pass its wake-up on.
    LeaverKeepsWakeup,
    /// A woken waiter that loses goes to the end of the queue.
    LoserRequeues,
    /// `lock_slow` decides on a word that it read before it had the bucket.
    LooksBeforeLocking,
    /// A dying agent scans for its words first and says that it is dead afterwards.
    MarksAfterScan,
    /// `unlock_slow` frees the word and leaves it at that.
    UnlockWakesNobody,
    /// A granted waiter stays in the queue.
    GrantLeavesQueued,
    /// The drain takes its inbox first and clears `scheduled` afterwards.
    ScheduledClearedLate,
    /// A reservation is never taken back.
    LeaseNeverEnds,
    /// A lease that is over frees the word for everybody and wakes nobody.
    LeaseEndsSilently,
    /// A loop sleeps for a word that its own thread holds.
    ParksForItsOwn,
    /// The sleep of a loop has no bound.
    ParksWithoutEnd,
    /// The thread that frees the word does not know of the loop that sleeps for it.
    SleeperForgotten,
    /// A loop that sleeps for the word goes before blocked waiters ahead of it.
    SleeperOvertakes,
    /// A loop that sleeps for the word goes before loops ahead of it that came in vain.
    SleeperFirst,
    /// A loop whose time is over does not see that the word was handed to it just before.
    SleeperDropsGrant,
    /// A loop whose time is over goes on without looking at the word, and is not remembered as having come.
    SleepEndsWithoutClaim,
    /// A thread that blocks drops its own loop's reservation and wakes nobody.
    OwnReservationDropped,
    /// A thread that blocks leaves the reservation with its own loop, which cannot come.
    OwnReservationKept,
    /// A reserved word is not for groups ahead of the one it is reserved for either.
    ReservationNotTakenOver,
    /// A loop that finds the word reserved for one ahead of it is not remembered as having come.
    ClaimOfReservedForgotten,
    /// A woken waiter that loses parks without W.
    LoserForgetsW,
    /// `hand_off` counts on waiters that are away.
    WakesAway,
    /// A thread that comes back from being away parks without looking at the word.
    BackWithoutLooking,
    /// The last waiter to leave takes the memory of an abandonment with it.
    AbandonmentDropped,
    /// The warning that came with a grant is lost when that is passed on.
    WarningDiesWithGrant,
    /// `lockAsync` takes a free word although its own thread already waits.
    AsyncOvertakes,
    /// A loop that came in vain is not remembered: nothing is ever reserved.
    ClaimsForgotten,
    /// Blocked waiters that have waited long are woken like all others, never given the lock.
    NeverHandsOver,
    /// A thread that spins gets the word before whoever has waited long.
    SpinnerFirst,
    /// A free word is offered to the foremost group alone.
    OffersFirstOnly,
    /// A lock is given without an offer to the groups ahead.
    HandsOverWithoutOffers,
    /// A word is reserved without an offer to the groups ahead.
    ReservesWithoutOffers,
    /// `lockAsync(0)` frees a dead owner's word, may not take it, and wakes nobody.
    TryFreesSilently,
    /// A claim frees a dead owner's word before it finds that its group is gone, and wakes nobody.
    StaleClaimFrees,
    /// `markConsistent()` clears A by itself, without the bucket: a section's closing store undoes it.
    ConsistentWithoutBucket,
    /// The death scan frees the word and wakes nobody.
    ScanWakesNobody,
    /// A section reads the word without freezing it.
    SectionDoesNotFreeze,
}

impl Fault {
    /// All of them.
    pub const ALL: [Fault; 37] = [
        Fault::LeaverKeepsWakeup,
        Fault::LoserRequeues,
        Fault::LooksBeforeLocking,
        Fault::MarksAfterScan,
        Fault::UnlockWakesNobody,
        Fault::GrantLeavesQueued,
        Fault::ScheduledClearedLate,
        Fault::LeaseNeverEnds,
        Fault::LeaseEndsSilently,
        Fault::ParksForItsOwn,
        Fault::ParksWithoutEnd,
        Fault::SleeperForgotten,
        Fault::SleeperOvertakes,
        Fault::SleeperFirst,
        Fault::SleeperDropsGrant,
        Fault::SleepEndsWithoutClaim,
        Fault::OwnReservationDropped,
        Fault::OwnReservationKept,
        Fault::ReservationNotTakenOver,
        Fault::ClaimOfReservedForgotten,
        Fault::LoserForgetsW,
        Fault::WakesAway,
        Fault::BackWithoutLooking,
        Fault::AbandonmentDropped,
        Fault::WarningDiesWithGrant,
        Fault::AsyncOvertakes,
        Fault::ClaimsForgotten,
        Fault::NeverHandsOver,
        Fault::SpinnerFirst,
        Fault::OffersFirstOnly,
        Fault::HandsOverWithoutOffers,
        Fault::ReservesWithoutOffers,
        Fault::TryFreesSilently,
        Fault::StaleClaimFrees,
        Fault::ConsistentWithoutBucket,
        Fault::ScanWakesNobody,
        Fault::SectionDoesNotFreeze,
    ];
}
