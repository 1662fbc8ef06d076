//! The faults that `npm run test:mutants` turns on, one at a time, in builds with `--cfg mutant`, where `SABLOCK_FAULT` names it: each
//! is asked for at the one place of the code that it breaks, and some test or model must fail with it.

/// Whether this fault is on: never, but in a mutant.
macro_rules! fault {
    ($name:ident) => {
        $crate::fault::is_on($crate::fault::Fault::$name)
    };
}

/// The list: each fault, and the suite and the test that run first because they are known to notice it. Read by
/// `scripts/mutants.js`.
macro_rules! faults {
    ($($(#[$doc:meta])* $name:ident: $suite:ident $test:literal,)*) => {
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
    /// A release wakes nobody and offers to nobody.
    ReleaseLetsNobodyIn: reservations "a_lease_that_is_over_opens_the_word_to_the_others",
    /// A waiter that gives up does not pass on the wake-up that it got.
    LeaverLetsNobodyIn: reservations "an_aborted_wait_passes_on_what_was_reserved_for_it",
    /// A lease that is over frees the word and says so to nobody.
    LeaseEndLetsNobodyIn: reservations "a_lease_that_is_over_is_offered_to_the_next",
    /// The scan after a thread's end frees its words and says so to nobody.
    ScanLetsNobodyIn: parking "a_loop_that_parks_gets_the_word_when_the_thread_of_the_holder_ends",
    /// A thread is known to have ended only after its words were looked for.
    EndsAfterTheScan: parking "a_loop_that_parks_gets_the_word_when_the_thread_of_the_holder_ends",
    /// A hold that a thread's code never knew of is given back, and nobody gets in.
    RevokedHoldIsLost: orders "a_grant_to_a_loop_that_ends_before_it_knows_passes_on",
    /// A hold that a thread's code never knew of is taken from whoever holds it now.
    RevokesAnothersHold: ends "a_hold_that_its_code_has_released_already_is_not_taken_from_the_next",
    /// The last waiter to leave takes the memory of an ended owner with it.
    EndForgottenWithLastWaiter: ends "an_end_that_no_waiter_stayed_to_report_is_reported_by_the_next_to_come",
    /// An ended owner's word is freed without the mark of abandonment.
    EndedOwnerIsFreedUnmarked: ends "an_end_that_no_waiter_stayed_to_report_is_reported_by_the_next_to_come",
    /// `lockAsync` frees an ended owner's word, may not take it, and lets nobody in.
    AsyncFreesSilently: ends "a_loop_that_frees_the_word_of_an_ended_holder_and_may_not_take_it_lets_its_first_wait_in",
    /// A loop that comes for nobody frees an ended owner's word, which the scan then does not find.
    ClaimForNobodyFrees: ends "a_loop_that_comes_for_nobody_leaves_the_word_of_an_ended_holder_to_the_scan",
    /// The word stays as it is while a section decides on it.
    SectionDoesNotFreeze: loom "blocking::lock_against_unlock",
    /// A section gives its bucket back before it writes the word.
    ThawsAfterTheBucket: loom "blocking::lock_against_unlock",
    /// A holder's writes need not be seen by the next.
    ThawsRelaxed: loom "blocking::timeout_against_unlock",
    /// Somebody waits, and the holder's release does not look at the queue.
    HeldWordWithoutW: stats "a_hold_is_distinguished_from_the_next_one_of_the_same_thread",
    /// A waiter that another thread settled stays in the queue.
    SettledWaiterStaysQueued: conditions "a_notification_that_was_accepted_ends_with_its_thread",
    /// A waiter that was settled can still time out, or be taken back.
    SettledWaiterLeaves: futex "a_cancelled_wait_takes_no_notification_and_one_that_was_notified_cannot_be_cancelled",

    /// A woken waiter that finds the word taken goes to the end of the queue.
    LoserGoesToTheEnd: units "engine::queue::tests::a_blocked_waiter_that_lost_keeps_its_place",
    /// A blocked waiter is never handed the word, however long it has waited.
    AgedWaiterIsOnlyWoken: stats "a_wait_of_a_blocked_thread_is_counted_when_it_begins_and_when_it_ends",
    /// Blocked waiters are not woken at all.
    BlockedWaiterIsNotWoken: loom "blocking::lock_against_unlock",
    /// Waiters behind a thread that pauses in JS wait for it.
    AwayThreadIsCountedOn: transitions "nobody_counts_on_a_thread_that_is_away",
    /// A thread that paused in JS once is never counted on again.
    ReturnedThreadStaysAway: transitions "a_thread_that_is_back_from_a_pause_is_counted_on",
    /// `lockAsync` takes a free word though its own thread waits for it already.
    AsyncOvertakesItself: transitions "a_request_of_a_thread_never_overtakes_its_own_earlier_ones",
    /// Only the first loop of those ahead is offered what is free.
    OffersToFirstLoopOnly: reservations "of_two_loops_that_came_in_vain_the_earlier_goes_first",
    /// A newcomer gets what is there though others wait in strict order.
    StrictOrderOvertaken: orders "a_large_request_at_the_head_is_never_overtaken_by_small_ones",
    /// A newcomer takes permits that are gathered for one that has aged.
    NewcomerTakesWhatIsGathered: barging_permits "nobody_passes_one_that_has_aged_and_gathers_permits",
    /// A blocked thread whose slice is over takes permits that are gathered for one ahead.
    SliceEndsBeforeGatherers: barging_permits "a_slice_that_ends_leaves_what_is_gathered_ahead",
    /// A loop that comes takes permits that are gathered for one ahead.
    ClaimsBeforeGatherers: barging_permits "a_loop_leaves_what_is_gathered_ahead",
    /// W is off as soon as anybody waits for permits, whether or not it was offered them.
    WaiterOfPermitsIsNotLookedAt: barging_permits "a_release_looks_at_the_queue_unless_all_who_are_first_in_line_were_told",
    /// Permits that are kept for a loop are not given back when its lease is over.
    KeptPermitsAreLost: barging_permits "permits_that_are_kept_for_a_loop_go_back_when_its_lease_is_over",
    /// Permits are gathered for a loop that nobody has asked whether it comes.
    GathersForALoopUnasked: barging_permits "a_stalled_loop_delays_nobody",
    /// A hand-off lets in one waiter only, though there is room for more.
    BatchStopsAfterOne: orders "whoever_waits_when_a_latch_opens_passes_though_it_closes_at_once",
    /// Readers pass a writer that came and could not be let in.
    PassesAClaimedWriter: shared_holds "readers_do_not_pass_a_writer_that_came_in_vain_while_others_are_in",
    /// A reader whose slice is over gets in beside readers, past a writer that waits ahead.
    SliceEndsBeforeWriters: readers_and_writers "a_reader_whose_slice_is_over_does_not_pass_a_writer_that_waits",
    /// A loop that comes to read gets in beside readers, past a writer that waits ahead.
    ClaimsBeforeWriters: readers_and_writers "a_loop_that_comes_to_read_does_not_pass_a_writer_that_waits",
    /// Readers wait behind the write of a loop that was offered the lock and does not come.
    ReadersWaitForAStalledLoop: readers_and_writers "a_blocked_reader_passes_the_write_of_a_loop_that_was_offered_the_lock_and_does_not_come",
    /// A thread that blocks to read does not look whether it could go in past those who do not come.
    BlockedReaderQueuesBlindly: readers_and_writers "a_blocked_reader_passes_the_write_of_a_loop_that_was_offered_the_lock_and_does_not_come",
    /// A loop that queues to read does not look whether it could go in past those who do not come.
    LoopReaderQueuesBlindly: readers_and_writers "a_loop_that_reads_passes_the_write_of_a_loop_that_was_offered_the_lock_and_does_not_come",
    /// A loop comes in vain, frees an ended writer's lock, and lets nobody in.
    ClaimInVainFreesSilently: readers_and_writers "a_loop_that_comes_to_read_and_finds_an_ended_writer_lets_the_writer_ahead_of_it_in",
    /// A loop that comes for what is kept for it, and now asks for more, lets nobody else have it.
    ClaimInVainOpensSilently: barging_permits "what_was_kept_for_an_aborted_wait_goes_to_others_if_the_next_of_its_loop_asks_for_more",
    /// A reader whose slice is over frees an ended writer's lock, waits on, and lets nobody in.
    SliceEndFreesSilently: readers_and_writers "a_blocked_reader_whose_slice_is_over_and_finds_an_ended_writer_lets_the_writer_ahead_of_it_in",
    /// In a queue that never empties, one waiter only is handed the word because it has aged.
    AgesOnceInAQueue: reservations "each_blocked_waiter_that_has_aged_is_handed_the_word_directly",
    /// A barrier's reset breaks it for those who wait, and does not make it new.
    ResetStaysBroken: loom_primitives "barrier::a_party_between_two_resets",

    /// A waiter that is let in finds the state as it leaves it.
    FindsWhatItLeaves: exchanger "two_that_meet_get_each_others_values_and_leave_nothing",
    /// The exchanged value stays in memory, where zeroes mean that nobody is there.
    ExchangedValueStaysBehind: exchanger "two_that_meet_get_each_others_values_and_leave_nothing",
    /// Two come to an exchanger, and both wait for another.
    PartnersPassEachOther: units "primitives::exchanger::tests::each_finds_what_the_other_brought",

    // Event loops: claims, reservations, leases, parking.
    /// A loop that came in vain is not remembered: nothing is ever reserved for it.
    ClaimInVainForgotten: reservations "a_word_is_reserved_for_a_loop_that_came_in_vain_until_it_comes_again",
    /// A loop that finds its own thread inside is remembered, and the word is kept from others for it.
    RemembersClaimOnItsOwnHold: reservations "a_loop_whose_own_thread_holds_the_word_gets_no_reservation",
    /// A loop takes what is reserved for another that came earlier.
    ClaimsWhatIsKeptForAnother: reservations "of_two_loops_that_came_in_vain_the_earlier_goes_first",
    /// Nothing is kept for a loop that came in vain to read.
    NothingIsKeptForReaders: readers_and_writers "the_lock_is_kept_for_a_loop_that_came_in_vain_to_read",
    /// The lock is kept for the first only of loops that came in vain to read.
    OneLeaseForManyReaders: readers_and_writers "each_of_several_loops_that_came_in_vain_to_read_has_its_turn_before_the_next_writer",
    /// A loop whose reservation one ahead of it took over is as if it had never come.
    DisplacedLoopIsForgotten: reservations "a_loop_whose_reservation_one_ahead_of_it_took_over_is_the_next",
    /// The end of a lease ends a reservation that came later.
    LeaseEndsANewerReservation: reservations "a_lease_that_is_over_ends_no_later_reservation",
    /// A thread that blocks leaves the reservation with its own loop, which cannot come.
    BlockedThreadKeepsReservation: reservations "a_thread_that_blocks_does_not_wait_for_its_own_loop",
    /// A reservation stays though its loop has no waiters any more.
    ReservationOutlivesItsLoop: reservations "a_reservation_ends_with_the_last_wait_of_its_loop",
    /// A reservation of words that were overwritten outlives the last wait of its loop.
    OverwrittenQueueStaysReserved: reservations "a_reservation_ends_with_its_loop_though_the_word_was_overwritten",
    /// A lease may be as long as a twentieth of any wait.
    LeaseWithoutBound: reservations "a_lease_is_bounded_however_long_its_loop_has_waited",
    /// Each loop has the word kept for it for a lease of its own, though a thread is blocked for it.
    LeasesAddUp: reservations "a_free_word_is_kept_for_all_loops_together_for_a_moment_while_a_thread_is_blocked_for_it",
    /// A thread that blocks for a word that is kept for a loop waits for the whole lease.
    BlockerWaitsForTheLease: reservations "a_lease_is_shortened_by_a_thread_that_blocks",
    /// A loop parks for as long as its waiter has waited.
    ParksWithoutBound: parking "a_park_ends_after_its_bound_and_comes_once_in_a_turn",
    /// A loop parks though the holder is an environment of its own thread.
    ParksBesideTheHolder: parking "a_loop_does_not_park_for_another_environment_of_its_thread",
    /// A loop parks though the holder is blocked.
    ParksForABlockedHolder: parking "a_loop_does_not_park_for_a_holder_that_is_blocked",
    /// A loop parks though nobody holds what is kept from it.
    ParksThoughNobodyHolds: parking "a_loop_does_not_park_for_what_is_reserved_for_another",
    /// A loop parks for a wait for which it should not.
    ParksThoughItStaysAwake: parking "a_loop_stays_awake_for_a_wait_that_says_so",
    /// A loop parks again, in one turn.
    ParksTwiceInATurn: parking "a_park_ends_after_its_bound_and_comes_once_in_a_turn",
    /// A release hands nothing to a loop that parks.
    ParkedLoopIsPassedBy: loom "parking::park_against_unlock",
    /// A loop that parks and is handed the word sleeps on.
    ParkedLoopSleepsOn: loom "parking::park_against_unlock",
    /// The flag that a drain is due is cleared after the inbox was emptied.
    ScheduledIsClearedLate: loom "event_loops::notice_against_drain",
    /// An inbox that has grown large gives its room back with what is in it.
    InboxDropsWhatIsMany: units "agents::agent::tests::a_drain_gives_back_the_room_of_many_notices_and_keeps_that_of_some",
    /// A wait that is over leaves its deadline with the clock.
    GrantedWaitKeepsDeadline: ends "a_wait_that_was_let_in_leaves_no_deadline",
    /// A wait that is taken back leaves its deadline with the clock.
    TakenBackWaitKeepsDeadline: ends "a_wait_that_is_taken_back_leaves_no_deadline",
    /// A deadline that comes late ends whatever wait has the number now.
    ExpiryOfAFormerWait: ends "a_deadline_that_comes_after_its_wait_is_over_ends_no_later_wait_of_that_number",
    /// A wait whose time is over stays in the queue.
    DeadlineWaitsForItsLoop: deadlines "a_wait_whose_time_is_over_leaves_the_queue_though_its_loop_does_not_turn",
    /// A grant that a loop has not come for by its deadline stands.
    ExpiredWaitKeepsItsGrant: deadlines "what_was_granted_to_a_loop_that_has_not_come_by_its_deadline_passes_on",
    /// The locks that an event loop has of a set whose time is over are held until the loop turns.
    ExpiredSetKeepsItsLocks: deadlines "a_set_whose_time_is_over_holds_nothing_though_its_loop_does_not_turn",
    /// The search for cycles takes a wait that the clock ends for one that lasts.
    TimedWaitCountsForEver: shared_holds "who_blocks_behind_a_write_of_its_own_loop_that_has_a_time_limit_is_in_no_deadlock",
    /// Waits with a deadline stay queued when their thread ends.
    DeadlineOutlivesItsThread: ends "waits_with_and_without_a_deadline_leave_when_their_thread_ends",

    // Blocked threads.
    /// A thread that times out forgets that it was handed the word.
    TimeoutForgetsGrant: loom "blocking::timeout_against_unlock",
    /// A thread that is interrupted stays in the queue.
    InterruptedThreadStaysQueued: threads "an_interrupted_thread_leaves_the_queue",
    /// A grant during a pause that ends the thread is lost.
    InterruptedGrantIsDropped: futex "a_blocked_thread_that_is_interrupted_passes_on_its_notification",
    /// A thread whose end has begun keeps what it was granted since: its code never has it.
    EndingThreadKeepsGrant: ends "what_a_thread_was_granted_once_its_end_had_begun_passes_on_unmarked",
    /// A thread that waits in strict order never learns that its word was overwritten.
    StrictWaiterIsBlind: orders "a_blocked_waiter_in_strict_order_learns_that_its_word_was_overwritten",
    /// A thread that takes a free word by the core's compare-exchange does not see what its last holder wrote.
    EntersWithoutAcquire: loom "blocking::several_locks_against_unlock",
    /// A waiter that spins is woken like others, not handed the word.
    SpinningWaiterIsPassedBy: spinning "a_waiter_that_spins_is_handed_the_word",
    /// The waiter that parked last is taken for one that spins.
    ParkedWaiterTakenForSpinning: spinning "a_waiter_that_parks_is_woken_and_handed_nothing",
    /// A waiter that has left still counts as the one that spins.
    SpinnerStaysNoted: loom "spinning::spin_of_one_that_gives_up_against_unlock",

    /// A reader that only tries is not told of those who wait and are on their way.
    TriersPassWhoIsOnTheWay: shared_holds "the_second_word_says_that_somebody_waits_though_the_lock_is_free",

    // Deadlocks.
    /// A search for deadlocks comes between the end of a wait by the clock and what goes back with it.
    SearchSeesHalfAnExpiry: deadlocks "no_search_comes_between_the_end_of_a_wait_and_what_goes_back_with_it",
    /// A lock that the clock gives back soon is in the way for ever.
    TimedSetIsForEver: deadlocks "what_the_clock_gives_back_is_in_no_deadlock",
    /// A circle of blocked threads is not reported.
    CycleGoesUnnoticed: deadlocks "a_thread_that_waits_for_another_environment_of_its_own_thread_waits_for_ever",
    /// A grant while the thread looked whether it is to end is taken for a lock that it has locked itself.
    GrantInAPauseIsACycle: deadlocks "what_a_thread_is_granted_during_a_pause_is_no_deadlock",
    /// A thread that blocks to read behind a write of its own loop believes that the loop may give up meanwhile.
    BlockedLoopMayGiveUp: shared_holds "who_reads_and_blocks_to_read_behind_a_write_of_its_own_loop_is_in_a_deadlock_though_that_has_a_signal",
    /// A thread that waits to share a name takes the request of its own loop to share it for one that is in its way.
    SharersAreInTheWay: names "a_thread_that_waits_to_share_what_its_own_loop_waits_to_share_goes_in_with_it",
    /// A circle names threads that only stand in line as holders.
    CycleNamesThoseInLine: shared_holds "a_reader_that_would_wait_behind_a_writer_that_waits_for_it_is_in_a_deadlock",
    /// Both threads of a circle report it.
    BothFindTheCycle: loom "deadlocks::of_two_threads_that_lock_crosswise_exactly_one_finds_the_deadlock",
    /// A circle is believed after one reading, though its parts were true at different times.
    CycleIsReadOnce: loom "deadlocks::a_circle_that_never_stood_is_not_found",
    /// A circle is not believed if another one was closed while it was read again.
    SecondCycleHidesTheFirst: loom "deadlocks::of_two_circles_that_close_at_once_none_stays",
    /// A thread that blocked inside a pause of another wait counts as running.
    BlockageLostInNestedWait: deadlocks "a_thread_that_waited_for_something_else_during_a_pause_is_blocked_as_before",

    // The register of holds.
    /// The register of a thread that has ended does not go back.
    RegisterIsNotGivenBack: orders "register::what_the_register_says_of_a_thread_that_ends_goes_back",
    /// Memory that is another primitive now goes back as what it was before.
    RegisterKeepsFormerPrimitive: orders "register::what_was_another_primitive_before_goes_back_as_what_it_is",
    /// A holder that downgrades is registered as another kind of reader.
    DowngradeCountsAsAnother: orders "register::who_downgrades_is_registered_as_the_reader_that_it_is_and_no_more_when_it_upgrades",
    /// A grant that was never known of goes back twice when its thread ends.
    RegisterIsGivenBackTwice: orders "register::permits_that_a_loop_was_granted_and_never_knew_of_go_back_once",

    /// Holds that ended in memory that was freed are reported of what has its address now.
    EndsOfFormerMemoryAreTold: shared_holds "who_knows_the_memory_since_an_end_only_is_not_told_of_it",

    /// One reader more than the word can count gets in.
    OneReaderTooMany: units "primitives::rwlock::tests::transitions_follow_the_table",
    // Several locks at once.
    /// A set that is out of time keeps what it has until the loop goes on.
    FailedSetKeepsItsLocks: deadlines "a_set_whose_next_lock_was_overwritten_gives_back_what_it_has",
    /// A lock that was free is told of as awaited, because one before it was.
    OldWaitIsNotedAgain: lock_all "a_lock_that_is_free_after_one_that_was_awaited_was_not_awaited",

    // Names.
    /// The holder that loses a name to a thief does not learn of it.
    ThiefTellsNobody: names "whoever_loses_a_name_is_told_and_can_release_nothing_of_the_thief",
    /// The word of a theft is taken for one about whatever request has the number now.
    StolenNumberIsAnyRequest: names "a_late_word_of_a_theft_does_not_mean_the_next_request_of_that_number",
    /// A name that is granted when its request is aborted stays granted until the loop turns.
    AbortedNameStaysGranted: names "a_granted_name_of_which_the_loop_does_not_know_can_be_taken_back",
    /// A release ends the hold of somebody else too.
    AnyHoldOfANameWillDo: names "a_late_word_of_a_theft_does_not_mean_the_next_request_of_that_number",
    /// A hold that an ended thread had alone goes to the next as if all were well.
    EndedHolderOfANameIsNotMarked: names "what_an_ended_thread_held_alone_goes_on_marked_and_what_it_shared_unmarked",
    /// A grant to a thread that ended goes on marked, though it waited for more and its code was not in.
    EndBesideANameMarksIt: names "a_thread_that_ends_before_its_code_is_in_leaves_no_mark",
    /// An agent that has ended is shown as holding and waiting until all of its requests are gone.
    QueryShowsGhosts: names "whose_thread_has_ended_is_shown_no_more",
    /// A name is forgotten with its mark.
    MarkedNameIsForgotten: names "a_name_is_forgotten_when_nobody_holds_it_waits_for_it_or_has_to_know_that_it_is_marked",

    // Notifications.
    /// A thread begins to wait though the value has changed.
    ValueIsNotCompared: futex "a_wait_for_another_value_is_refused_at_once",
    /// The end of a thread loses the notification that its code never knew of.
    EndSwallowsNotification: futex "a_thread_that_ends_passes_on_its_notification",
    /// The end of a thread notifies those who came after its notification.
    EndNotifiesLatecomers: futex "the_end_of_a_thread_notifies_nobody_who_came_after_its_notification",
    /// A notification that passes on uses up none of those that others could have had.
    PassesUseNothingUp: futex "two_ends_pass_on_no_more_than_was_given",
    /// The end of a thread loses the notification that its code has not accepted.
    KeptNotificationIsLost: conditions "a_notification_that_its_code_never_knew_of_passes_on",
    /// A condition releases its mutex before its waiter is queued.
    ConditionReleasesFirst: loom "futex::condition_against_change",
    /// A thread whose end has begun when it locks again keeps the mutex of a condition.
    ConditionKeepsLockWhileEnding: conditions "a_thread_whose_end_has_begun_when_it_locks_again_at_once_leaves_mutex_and_notification_to_others",
    /// A condition wait that cannot lock again keeps its notification for itself.
    ConditionKeepsNotification: conditions "the_notification_of_a_thread_that_ends_before_it_locks_again_passes_on",

    // The clock, and fences.
    /// A deadline that is sooner than the others waits for them.
    ShorterDeadlineWaits: units "engine::clock::tests::a_deadline_that_is_sooner_than_all_others_wakes_the_thread_and_a_later_one_does_not",
    /// The clock's thread ends though an order has just come in.
    ClockRetiresOnCommands: units "engine::clock::tests::the_thread_does_not_end_while_a_command_is_left_for_it",
    /// A fence is the time of the clock, whatever was given out before.
    FenceIsTheClock: units "fence::tests::fences_grow_though_the_clock_stands_still_or_is_set_back",

    // Locks of files.
    /// A sharer that waits without a turn waits to hold the file alone.
    DirectWaitIsAlone: files "in_line::one_who_shares_waits_shared_and_lets_others_in_while_it_waits",
    /// No wait goes without a turn.
    PatienceNeverEnds: files "in_line::a_process_that_is_stopped_while_it_is_next_holds_nobody_up_for_ever",
    /// The first wait without a turn is the only one in a line that begins.
    DirectWaitIsTheOnlyOne: files "in_line::one_who_was_stopped_in_line_is_passed_by_again_after_a_rest",
    /// A thread waits in the kernel though nobody would end its call when its time is over.
    WaitsWithoutAnEnd: files "a_thread_does_not_wait_where_none_can_be_started_that_would_end_its_wait",
    /// The keeper has ended, and counts as running: nobody looks after lines any more.
    KeeperIsBelievedToRun: files "in_line::one_who_was_stopped_in_line_is_passed_by_again_after_a_rest",
    /// A waiter that wants a name alone does not close the gate.
    GateStaysOpen: files "in_line::what_is_available_is_got_though_somebody_was_stopped_in_line",
    /// The gate is closed until nobody holds it.
    GateIsClosedForEver: files "in_line::those_who_share_are_in_together_beside_one_who_was_stopped_in_line",
    /// A line for which there was no thread stays the keeper's when there is one.
    KeeperKeepsTheLine: files "withdrawn_waits_leave_their_threads_to_others",
    /// Lines that have threads keep them, however many have none.
    CrowdStays: files "names_take_turns_with_the_threads_when_there_are_too_many",
    /// A caller that withdrew a wait hears that nothing of it is left while the kernel may still grant it.
    WithdrawnBeforeItsThreadLeft: units "files::interrupt::tests::whoever_withdraws_a_wait_learns_when_nothing_of_it_is_left",
    /// A caller that withdrew a wait is kept waiting until its call in the kernel has ended, if ever.
    DeafCallIsWaitedFor: units "files::keeper::tests::nobody_is_kept_waiting_for_a_call_that_does_not_end",
    /// A wait that was withdrawn stays in the kernel.
    WithdrawnWaitStays: files "withdrawn_waits_leave_their_threads_to_others",
    /// A name that is available is tried for only if nobody is next.
    AvailableNeedsTurn: files "in_line::what_is_available_is_got_though_somebody_was_stopped_in_line",
    /// The end of an exclusive holder takes the last fence with it.
    FenceIsNotKept: units "files::hold::tests::fences_go_on_from_the_record_however_the_holders_ended",
    /// One of several names that are asked for together is marked if its process is killed before it says that others are missing.
    PartBeginsInside: units "files::hold::tests::a_part_of_several_that_ends_before_all_are_there_leaves_no_mark",
    /// A grant to a thread that is to end goes back marked.
    InterruptedFileGrantIsMarked: files "what_a_thread_gets_when_it_is_to_end_goes_back_unmarked",
    /// An end that looks like one before is not reported to the next who holds the file alone.
    ReportedStaysKnown: units "files::hold::tests::an_end_that_looks_like_the_last_is_reported_to_the_next_who_holds_it_alone",
    /// A holder whose file was removed writes, at its end, the record of whoever holds the new one.
    EndWritesOthersRecord: units "files::hold::tests::whatever_becomes_of_a_hold_whose_file_was_removed_the_record_is_left_to_the_next_holder",
    /// The names of files that nobody uses stay in memory.
    NamesOfFilesStay: units "files::waiter::tests::a_name_that_nobody_uses_is_forgotten",
    /// A process of another namespace is looked for among those of this one.
    NamespaceDoesNotCount: units "files::record::tests::a_process_of_another_namespace_may_live",

    // Stores.
    /// The time of a lease is not looked at: what was lost is reported, or not seen.
    LeaseIsNotLookedAt: units "desk::tests::a_lease_that_is_over_is_seen_by_whoever_looks_though_nobody_tells",
    /// A request that is over stays at its desk.
    RequestsStay: units "desk::tests::what_is_over_is_known_no_more",
    /// The answer to a wait comes after its thread was told that it is there.
    AnswerComesLate: units "clients::outer::tests::an_answer_is_there_when_its_wait_is_settled",
    /// A request that comes when its time is over is not taken back.
    AskedAfterItsTime: units "clients::outer::tests::what_is_asked_for_after_its_time_is_withdrawn",
    /// A grant of an outsider that its busy loop has not come for in time stays its own.
    LateOuterGrantStays: units "clients::outer::tests::the_clock_withdraws_a_request_or_releases_its_grant_though_its_loop_does_not_turn",

    /// Holds that fast paths made unseen count as one.
    UnseenHoldsAreOne: stats "a_hold_is_distinguished_from_the_next_one_of_the_same_thread",
    /// A hold that may end unseen is taken for one that lasts.
    HoldThatMayEndUnseen: stats "a_hold_is_distinguished_from_the_next_one_of_the_same_thread",
    /// A wait that was handed the word still counts as waiting.
    GrantedStillCountsAsWaiting: stats "a_wait_of_a_blocked_thread_is_counted_when_it_begins_and_when_it_ends",
    /// Each of many waits for a word that was overwritten looks at all others.
    OverwrittenWaitsEndOneByOne: units "engine::event_loop::tests::to_end_the_waits_for_an_overwritten_word_takes_a_step_for_each",
    /// Tables keep the room of their most crowded moment.
    TablesKeepTheirRoom: units "engine::contents::tests::memory_follows_the_number_of_queues",
    /// The table of waiters keeps the memory of its most crowded moment.
    ArenaKeepsItsChunks: units "engine::arena::tests::memory_follows_the_number_of_entries",

    /// A hold that was away in the wait of a condition counts as held meanwhile.
    AwayCountsAsHeld: units "doctor::state::tests::a_hold_that_was_away_began_when_it_came_back_though_the_watchdog_did_not_look_meanwhile",
    /// Two orders that a common outer lock keeps apart are a cycle.
    GatesAreIgnored: units "doctor::order::tests::a_lock_that_is_held_at_both_edges_is_a_gate",
    /// The locks that were held at the first sighting of an order are taken for those that are always held.
    OnlyTheFirstSightingCounts: units "doctor::order::tests::a_lock_that_is_held_at_both_edges_is_a_gate",
    /// A wait that ends by itself makes a certain deadlock.
    TimedWaitCountsAsEndless: units "doctor::deadlock::tests::a_wait_that_ends_by_itself_is_in_no_deadlock",
    /// A reader that holds is in the way of another reader.
    SharedHoldIsInTheWay: units "doctor::deadlock::tests::a_reader_does_not_wait_for_a_reader",
    /// A reader never waits for the readers before a writer that came first: readers that nest are in no deadlock.
    NoReaderIsBehindAWriter: units "doctor::deadlock::tests::a_reader_waits_for_the_readers_before_a_writer_that_came_first",
    /// A permit is never given back if one of several holders is stuck.
    OnePermitInTheWayIsEnough: units "doctor::deadlock::tests::a_wait_for_a_permit_ends_while_one_of_the_holders_goes_on",
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
