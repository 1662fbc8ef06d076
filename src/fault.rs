//! The faults that `npm run test:mutants` turns on, one at a time: each is asked for at the one place of the code that it
//! breaks, and some test or loom model must fail with it. A test that cannot fail proves nothing.
//!
//! They exist in builds with `--cfg mutant` only, where the environment variable `SABLOCK_FAULT` names the one that is on.

/// Whether this fault is on: never, but in a mutant.
macro_rules! fault {
    ($name:ident) => {
        $crate::fault::is_on($crate::fault::Fault::$name)
    };
}

/// The list: each fault, and the suite and the test that run first because they are known to notice it. Read by
/// `scripts/mutants.js`.
macro_rules! faults {
    ($($(#[$doc:meta])* $name:ident: $suite:ident $test:ident,)*) => {
        /// One mistake.
        #[derive(Clone, Copy, PartialEq, Eq)]
        // The clock is no part of a model.
        #[cfg_attr(loom, allow(dead_code))]
        pub(crate) enum Fault {
            $($(#[$doc])* $name,)*
        }

        #[cfg(mutant)]
        impl Fault {
            fn named(name: &str) -> Self {
                match name {
                    $(stringify!($name) => Self::$name,)*
                    _ => panic!("no such fault: {name}"),
                }
            }
        }
    };
}

faults! {
    // The section.
    /// A release wakes nobody and offers to nobody.
    ReleaseLetsNobodyIn: transitions x,
    /// A waiter that gives up does not pass on the wake-up that it got.
    LeaverLetsNobodyIn: transitions x,
    /// A lease that is over frees the word and says so to nobody.
    LeaseEndLetsNobodyIn: transitions x,
    /// The scan after a thread's end frees its words and says so to nobody.
    ScanLetsNobodyIn: transitions x,
    /// A thread is known to have ended only after its words were looked for.
    EndsAfterTheScan: transitions x,
    /// What a thread's code never knew of is given back, and nobody gets in.
    RevokedHoldIsLost: transitions x,
    /// What a thread's code never knew of is taken from whoever holds it now.
    RevokesAnothersHold: transitions x,
    /// The last waiter to leave takes the memory of an ended owner with it.
    EndForgottenWithLastWaiter: transitions x,
    /// An ended owner's word is freed without the mark of abandonment.
    EndedOwnerIsFreedUnmarked: transitions x,
    /// `lockAsync` frees an ended owner's word, may not take it, and lets nobody in.
    AsyncFreesSilently: transitions x,
    /// A loop that comes for nobody frees an ended owner's word, which the scan then does not find.
    ClaimForNobodyFrees: transitions x,
    /// The word stays as it is while a section decides on it.
    SectionDoesNotFreeze: loom x,
    /// A section gives its bucket back before it writes the word.
    ThawsAfterTheBucket: loom x,
    /// What a holder wrote need not be seen by the next.
    ThawsRelaxed: loom x,
    /// Somebody waits, and the holder's release does not look at the queue.
    HeldWordWithoutW: loom x,
    /// A waiter that another thread settled stays in the queue.
    SettledWaiterStaysQueued: loom x,
    /// A waiter that was settled can still time out, or be taken back.
    SettledWaiterLeaves: loom x,

    // Order.
    /// A woken waiter that finds the word taken goes to the end of the queue.
    LoserGoesToTheEnd: transitions x,
    /// A blocked waiter is never handed the word, however long it has waited.
    AgedWaiterIsOnlyWoken: stats x,
    /// Blocked waiters are not woken at all.
    BlockedWaiterIsNotWoken: loom x,
    /// Those behind a thread that pauses in JS wait for it.
    AwayThreadIsCountedOn: transitions x,
    /// `lockAsync` takes a free word though its own thread waits for it already.
    AsyncOvertakesItself: transitions x,
    /// Only the first loop of those ahead is offered what is free.
    OffersToFirstLoopOnly: loom x,
    /// A newcomer gets what is there though others wait in strict order.
    StrictOrderOvertaken: orders x,
    /// A hand-off lets in one waiter only, though there is room for more.
    BatchStopsAfterOne: orders x,
    /// A loop that gets in for a shared hold lets in nobody beside it.
    SharedHoldEntersAlone: orders x,
    /// Readers pass a writer that came and could not be let in.
    PassesAClaimedWriter: orders x,

    // Event loops: claims, reservations, leases, parking.
    /// A loop that came in vain is not remembered: nothing is ever reserved for it.
    ClaimInVainForgotten: transitions x,
    /// A loop that finds its own thread inside is remembered, and the word is kept from others for it.
    RemembersClaimOnItsOwnHold: parking x,
    /// A loop takes what is reserved for another that came earlier.
    ClaimsWhatIsKeptForAnother: transitions x,
    /// A thread that blocks leaves the reservation with its own loop, which cannot come.
    BlockedThreadKeepsReservation: transitions x,
    /// A reservation stays though its loop has no waiters any more.
    ReservationOutlivesItsLoop: transitions x,
    /// A lease may be as long as a twentieth of any wait.
    LeaseWithoutBound: parking x,
    /// A loop parks for as long as its waiter has waited.
    ParksWithoutBound: parking x,
    /// A loop parks though the holder is an environment of its own thread.
    ParksBesideTheHolder: parking x,
    /// A loop parks though the holder is blocked.
    ParksForABlockedHolder: parking x,
    /// A loop parks though nobody holds what is kept from it.
    ParksThoughNobodyHolds: parking x,
    /// A loop parks again, in one drain.
    ParksTwiceInADrain: parking x,
    /// A release hands nothing to a loop that parks.
    ParkedLoopIsPassedBy: loom x,
    /// A loop that parks and is handed the word sleeps on.
    ParkedLoopSleepsOn: loom x,
    /// The flag that a drain is due is cleared after the inbox was emptied.
    ScheduledIsClearedLate: loom x,
    /// A wait that is over leaves its deadline with the clock.
    GrantedWaitKeepsDeadline: futex x,
    /// Waits with a deadline stay queued when their thread ends.
    DeadlineOutlivesItsThread: futex x,

    // Blocked threads.
    /// A thread that times out forgets that it was handed the word.
    TimeoutForgetsGrant: loom x,
    /// A thread that is interrupted stays in the queue.
    InterruptedThreadStaysQueued: threads x,
    /// A waiter that spins is woken like others, not handed the word.
    SpinningWaiterIsPassedBy: spinning x,
    /// Whoever parked last is taken for one that spins.
    ParkedWaiterTakenForSpinning: spinning x,
    /// A waiter that has left still counts as the one that spins.
    SpinnerStaysNoted: loom x,

    // Deadlocks.
    /// A circle of blocked threads is not reported.
    CycleGoesUnnoticed: loom x,
    /// Both threads of a circle report it.
    BothFindTheCycle: loom x,
    /// A circle is believed after one reading, though its parts were true at different times.
    CycleIsReadOnce: loom x,
    /// A thread that blocked inside a pause of another wait counts as running.
    BlockageLostInNestedWait: deadlocks x,

    // The register of holds.
    /// What an ended thread's register says does not go back.
    RegisterIsNotGivenBack: orders x,
    /// What was granted, and never known of, goes back twice when its thread ends.
    RegisterIsGivenBackTwice: orders x,

    // Notifications.
    /// A thread begins to wait though the value has changed.
    ValueIsNotCompared: loom x,
    /// The end of a thread loses the notification that its code never knew of.
    EndSwallowsNotification: futex x,
    /// The end of a thread notifies those who came after its notification.
    EndNotifiesLatecomers: futex x,
    /// All notifications count as one chain, whoever was in the line at each.
    ChainNeverEnds: futex x,
    /// The end of a thread loses the notification that its code has not accepted.
    KeptNotificationIsLost: futex x,
    /// A condition releases its mutex before its waiter is queued.
    ConditionReleasesFirst: loom x,
    /// A condition wait that cannot lock again keeps its notification for itself.
    ConditionKeepsNotification: conditions x,

    // The clock.
    /// A deadline that is sooner than the others waits for them.
    ShorterDeadlineWaits: deadlines x,
    /// The clock's thread ends though an order has just come in.
    ClockRetiresOnOrders: deadlines x,

    // What is counted and shown.
    /// What fast paths did unseen counts as one hold.
    UnseenHoldsAreOne: stats x,
    /// A hold that may end unseen is taken for one that lasts.
    HoldThatMayEndUnseen: stats x,
    /// A wait that was handed the word still counts as waiting.
    GrantedStillCountsAsWaiting: stats x,
    /// The table of waiters keeps the memory of its most crowded moment.
    ArenaKeepsItsChunks: units x,
}

/// Whether this fault is on.
#[cfg(not(mutant))]
#[inline(always)]
pub(crate) const fn is_on(_: Fault) -> bool {
    false
}

#[cfg(mutant)]
pub(crate) fn is_on(fault: Fault) -> bool {
    // Not loom's: it is no part of what a model explores.
    static ON: std::sync::OnceLock<Option<Fault>> = std::sync::OnceLock::new();
    *ON.get_or_init(|| std::env::var("SABLOCK_FAULT").ok().map(|name| Fault::named(&name))) == Some(fault)
}
