//! The mutants. Each fault is asked for at the one place of the protocol that it breaks; the checks must notice each.
//! A check that cannot fail proves nothing.

/// One mistake in the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A waiter that leaves (abort, timeout, death) does not pass its wake-up on.
    LeaverKeepsBaton,
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
    /// A lease that is over frees the word for everybody and tells nobody.
    LeaseEndsSilently,
    /// A lease is never longer than the first one.
    LeaseNeverGrows,
    /// A thread that blocks drops its own loop's reservation and tells nobody.
    OwnReservationDropped,
    /// A thread that blocks leaves the reservation with its own loop, which cannot come.
    OwnReservationKept,
    /// A reserved word is not for parties ahead of the one it is reserved for either.
    ReservationNotTakenOver,
    /// A loop that finds the word reserved for one ahead of it is not remembered as having come.
    ClaimOfReservedForgotten,
    /// A woken waiter that loses parks without W.
    LoserForgetsW,
    /// `hand_on` counts on waiters that are away.
    BatonToAway,
    /// A thread that comes back from being away parks without looking at the word.
    BackWithoutLooking,
    /// The last waiter to leave takes the memory of an abandonment with it.
    AbandonmentDropped,
    /// Of a grant that is passed on, the warning that came with it is lost.
    WarningDiesWithGrant,
    /// `lockAsync` takes a free word although its own thread already waits.
    AsyncOvertakes,
    /// A loop that came in vain is not remembered: nothing is ever reserved.
    ClaimsForgotten,
    /// Blocked waiters that have waited long are woken like all others, never given the lock.
    NeverGives,
    /// Who looks on gets the word before whoever has waited long.
    LingererFirst,
    /// A free word is offered to the foremost party alone.
    OffersFirstOnly,
    /// A lock is given without an offer to the parties ahead.
    GivesWithoutOffers,
    /// A word is reserved without an offer to the parties ahead.
    ReservesWithoutOffers,
    /// `lockAsync(0)` frees a dead owner's word, may not take it, and tells nobody.
    TryFreesSilently,
    /// A claim frees a dead owner's word before it finds that its party is gone, and tells nobody.
    StaleClaimFrees,
    /// `markConsistent()` clears A by itself, without the bucket: a section's closing store undoes it.
    ConsistentWithoutBucket,
    /// The death scan frees the word and tells nobody.
    ScanWakesNobody,
    /// A section reads the word without freezing it.
    SectionDoesNotFreeze,
}

impl Fault {
    /// All of them.
    pub const ALL: [Fault; 31] = [
        Fault::LeaverKeepsBaton,
        Fault::LoserRequeues,
        Fault::LooksBeforeLocking,
        Fault::MarksAfterScan,
        Fault::UnlockWakesNobody,
        Fault::GrantLeavesQueued,
        Fault::ScheduledClearedLate,
        Fault::LeaseNeverEnds,
        Fault::LeaseEndsSilently,
        Fault::LeaseNeverGrows,
        Fault::OwnReservationDropped,
        Fault::OwnReservationKept,
        Fault::ReservationNotTakenOver,
        Fault::ClaimOfReservedForgotten,
        Fault::LoserForgetsW,
        Fault::BatonToAway,
        Fault::BackWithoutLooking,
        Fault::AbandonmentDropped,
        Fault::WarningDiesWithGrant,
        Fault::AsyncOvertakes,
        Fault::ClaimsForgotten,
        Fault::NeverGives,
        Fault::LingererFirst,
        Fault::OffersFirstOnly,
        Fault::GivesWithoutOffers,
        Fault::ReservesWithoutOffers,
        Fault::TryFreesSilently,
        Fault::StaleClaimFrees,
        Fault::ConsistentWithoutBucket,
        Fault::ScanWakesNobody,
        Fault::SectionDoesNotFreeze,
    ];
}
