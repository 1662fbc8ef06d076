//! The mutants: each fault is asked for at the one place that it breaks.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Permits that are given back go to the first in the queue alone.
    BatchOfOne,
    /// The engine goes on down the queue past a waiter that cannot be served.
    BatchSkips,
    /// A fast path takes what is there, whoever waits.
    FastOvertakes,
    /// A waiter that leaves hands on only where the word is quite free.
    LeaverLooksForFreeWord,
    /// A waiter that queues behind one that could go in does not look whether it could too.
    QueuesWithoutLooking,
    /// A deadline that comes after the grant ends the wait all the same.
    QuitAfterGrant,
    /// A wait whose time is over stays in the queue until its loop turns.
    DeadlineWaitsForItsLoop,
    /// A grant that a loop has not come for by its deadline stands.
    ExpiredWaitKeepsItsGrant,
    /// A wait that the clock ends leaves, and nobody looks who may get in for that.
    ExpiryLetsNobodyIn,
    /// A grant that a thread never knew of ends with it.
    EndKeepsGrant,
    /// The end of a thread gives back what it held of one word only.
    EndFreesOneWord,
    /// The end of a thread does not read its register.
    EndForgetsRegister,
    /// A fast path leaves no mark of its intent.
    NoIntentMark,
    /// A hold that is in doubt is given back.
    DoubtGivenBack,
    /// The end of a thread looks only at the words of which its slot says that it holds something.
    EndLooksAtHeldOnly,
    /// A reader counts itself before it has looked whether it may.
    CountsBeforeLooking,
    /// A reader that counted itself in vain, and only tried, leaves it at that.
    BackOffSilently,
    /// A writer sums the slots, and marks the word afterwards.
    SumsBeforeMark,
    /// A writer's sum leaves out readers that were granted and are not in their slots yet.
    SumForgetsGrants,
    /// A section ends with a store on a word that fast paths add to.
    StoresOverAdditions,
    /// A loop ahead ends a reservation behind it, and cannot use the word.
    TakesOverInVain,
    /// A reader whose slice is over gets in beside readers, past a writer that waits ahead.
    SliceEndsBeforeWriters,
    /// A loop that comes to read gets in beside readers, past a writer that waits ahead.
    ClaimsBeforeWriters,
    /// Readers wait behind the write of a loop that was offered the word and does not come.
    WaitsForStalledLoop,
    /// Nothing is kept for a loop that came in vain to read.
    KeepsNothingForReaders,
    /// The word is kept for the first only of loops that came in vain to read.
    OneLeaseInABatch,
    /// A loop that comes in vain frees a dead owner's word, and does not look whose turn it is.
    ClaimInVainFreesSilently,
    /// A loop that comes for what is kept for it, and now asks for more, does not look whose turn it is.
    ClaimInVainOpensSilently,
    /// The search for cycles follows owners, and not those ahead in a strict queue.
    SearchFollowsOwnersOnly,
    /// The search for cycles does not know who reads.
    SearchForgetsReaders,
    /// The search for cycles does not see that a reader waits behind a writer, who waits for readers.
    SearchForgetsWriters,
    /// No thread looks for cycles.
    NobodySearches,
    /// A writer that reads on does not let the readers behind it in.
    DowngradeLetsNobodyIn,
    /// A writer that reads on is in no slot.
    DowngradeLeavesSlot,
    /// A reader becomes the writer though others read.
    UpgradesBesideReaders,
    /// The function that runs once is taken for done when the thread that ran it has ended.
    EndOfRunnerIsDone,
    /// After what runs once has failed, nobody is let in to run.
    FailureLetsNobodyRun,
    /// Permits are gathered for a loop that nobody has asked whether it comes.
    GathersUnasked,
    /// Newcomers take what is gathered for one that has aged.
    NewcomersPassGatherers,
    /// W goes as soon as anybody blocks, whether it was woken or not.
    WOfTheWokenOnly,
    /// A waiter that was woken takes its permits, and does not look who else could be served.
    WokenOneIsAlone,
}

impl Fault {
    pub const ALL: [Fault; 41] = [
        Fault::BatchOfOne,
        Fault::BatchSkips,
        Fault::FastOvertakes,
        Fault::LeaverLooksForFreeWord,
        Fault::QueuesWithoutLooking,
        Fault::QuitAfterGrant,
        Fault::DeadlineWaitsForItsLoop,
        Fault::ExpiredWaitKeepsItsGrant,
        Fault::ExpiryLetsNobodyIn,
        Fault::EndKeepsGrant,
        Fault::EndFreesOneWord,
        Fault::EndForgetsRegister,
        Fault::NoIntentMark,
        Fault::DoubtGivenBack,
        Fault::EndLooksAtHeldOnly,
        Fault::CountsBeforeLooking,
        Fault::BackOffSilently,
        Fault::SumsBeforeMark,
        Fault::SumForgetsGrants,
        Fault::StoresOverAdditions,
        Fault::TakesOverInVain,
        Fault::SliceEndsBeforeWriters,
        Fault::ClaimsBeforeWriters,
        Fault::WaitsForStalledLoop,
        Fault::KeepsNothingForReaders,
        Fault::OneLeaseInABatch,
        Fault::ClaimInVainFreesSilently,
        Fault::ClaimInVainOpensSilently,
        Fault::SearchFollowsOwnersOnly,
        Fault::SearchForgetsReaders,
        Fault::SearchForgetsWriters,
        Fault::NobodySearches,
        Fault::DowngradeLetsNobodyIn,
        Fault::DowngradeLeavesSlot,
        Fault::UpgradesBesideReaders,
        Fault::EndOfRunnerIsDone,
        Fault::FailureLetsNobodyRun,
        Fault::GathersUnasked,
        Fault::NewcomersPassGatherers,
        Fault::WOfTheWokenOnly,
        Fault::WokenOneIsAlone,
    ];
}
