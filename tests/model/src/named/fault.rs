//! The mutants.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An entry is forgotten while somebody has found it and has not asked yet.
    ForgetsWhatIsFound,
    /// An entry is forgotten with its mark.
    ForgetsMark,
    /// A release ends whatever hold there is.
    ReleasesAnyHold,
    /// A holder that loses the name does not learn of it.
    ThiefTellsNobody,
    /// The word of a theft ends the request that the thread has by now.
    StolenMeansAnyRequest,
    /// A thief goes to the end of the queue's holders without taking their holds away.
    ThiefJoins,
    /// A grant that an ending thread never knew of ends with it.
    EndKeepsGrant,
    /// A hold of an ending thread goes, and nobody gets in.
    EndLetsNobodyIn,
    /// A hold that an ending thread had alone is not marked.
    EndLeavesNoMark,
    /// A newcomer takes what is there, whoever waits.
    Overtakes,
    /// A request that is taken back after its grant leaves the hold behind.
    QuitAfterGrant,
}

impl Fault {
    pub const ALL: [Fault; 11] = [
        Fault::ForgetsWhatIsFound,
        Fault::ForgetsMark,
        Fault::ReleasesAnyHold,
        Fault::ThiefTellsNobody,
        Fault::StolenMeansAnyRequest,
        Fault::ThiefJoins,
        Fault::EndKeepsGrant,
        Fault::EndLetsNobodyIn,
        Fault::EndLeavesNoMark,
        Fault::Overtakes,
        Fault::QuitAfterGrant,
    ];
}
