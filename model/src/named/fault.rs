//! The mutants.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An entry is forgotten while somebody has found it and has not asked yet.
    ForgetsWhatIsFound,
    /// An entry is forgotten with its mark.
    ForgetsMark,
    /// A release ends whatever hold there is.
    ReleasesAnyHold,
    /// Whoever loses the name does not learn of it.
    ThiefTellsNobody,
    /// The word of a theft ends the request that the thread has by now.
    StolenMeansAnyRequest,
    /// A thief goes to the end of the queue's holders without taking their holds away.
    ThiefJoins,
    /// What an ending thread was granted and never knew of ends with it.
    EndKeepsGrant,
    /// What an ending thread held goes, and nobody gets in.
    EndLetsNobodyIn,
    /// What an ending thread held alone is not marked.
    EndLeavesNoMark,
    /// Who comes takes what is there, whoever waits.
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
