//! The mutants.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The answer of a session grants, though its end came right behind.
    AnswerOfEndedGrants,
    /// A wait whose query was cancelled is thought to hold nothing.
    CancelledHoldsNothing,
    /// A wait that is granted when nobody wants it any more keeps its lock.
    LateGrantStays,
    /// A grant at once to a request that was withdrawn stays.
    GrantToNobodyStays,
    /// A session's sure holds are counted from when it has answered, not from when it was asked.
    CountsFromAnswer,
    /// A client believes that it holds until it learns of the session's end.
    WaitsForTheEnd,
    /// The fence is asked for before the lock.
    FenceFirst,
    /// A fence is the number of the last one.
    FenceRepeats,
    /// A hold of a session of waits is released by the home.
    ReleasesElsewhere,
    /// A release that a late cancel hits is thought to be done.
    CancelledReleaseIsDone,
    /// A late cancel hits what unlocks after a wait, and that is not said again.
    CleansOnce,
    /// A process asks for a name anew while a session of its own has it still.
    AsksBeforeReleased,
    /// A try waits, too, for what is not to be had at once.
    TryWaits,
    /// Without a home nobody asks for a wait that is cut off.
    NoHomeNoLook,
    /// A request that is withdrawn does not let the next of its process ask.
    NextIsNotAsked,
    /// A client that gives up tells the server nothing.
    QuitSaysNothing,
    /// A cancel that comes before its wait is not said again.
    CancelsOnce,
    /// Without a home nobody can be cancelled.
    NoHomeNoCancel,
    /// The home keeps what it got for a request that has got a session of its own meanwhile.
    KeepsWhatItTried,
    /// A session that is asked after a wait may be silent for ever.
    SilenceAfterWait,
    /// A session that is blocked may be silent, too, since nobody expects an answer.
    SilenceWhileBlocked,
}

impl Fault {
    pub const ALL: [Fault; 21] = [
        Fault::AnswerOfEndedGrants,
        Fault::CancelledHoldsNothing,
        Fault::LateGrantStays,
        Fault::GrantToNobodyStays,
        Fault::CountsFromAnswer,
        Fault::WaitsForTheEnd,
        Fault::FenceFirst,
        Fault::FenceRepeats,
        Fault::ReleasesElsewhere,
        Fault::CancelledReleaseIsDone,
        Fault::CleansOnce,
        Fault::AsksBeforeReleased,
        Fault::TryWaits,
        Fault::NoHomeNoLook,
        Fault::NextIsNotAsked,
        Fault::QuitSaysNothing,
        Fault::CancelsOnce,
        Fault::NoHomeNoCancel,
        Fault::KeepsWhatItTried,
        Fault::SilenceAfterWait,
        Fault::SilenceWhileBlocked,
    ];
}
