//! The mutants.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A client counts its lease from the answer, not from when it asked.
    CountsFromAnswer,
    /// A client goes in with a grant, whatever the time is.
    TakesGrantLate,
    /// A message of a grant counts, whatever the time is.
    TakesMessageLate,
    /// A message of a grant counts for whatever request its client has now.
    AnyGrantWillDo,
    /// An answer for an earlier ticket is taken for this one's.
    AnyAnswerWillDo,
    /// An answer for a ticket that is held counts, whatever its fence is.
    AnyFenceWillDo,
    /// An answer counts though that of a later call was heard before.
    AnswersInAnyOrder,
    /// A release takes away whatever ticket is first.
    ReleasesHead,
    /// The renewal of a ticket that is gone brings it back, with its grant.
    RenewalRevives,
    /// A grant begins the lease anew, though nobody was heard.
    GrantRenews,
    /// A grant has the number of the last one.
    FenceRepeats,
    /// A client that gives up tells nobody.
    QuitSaysNothing,
    /// A ticket that a late message has made is nobody's business.
    StrayTicketStays,
    /// The server forgets to look whose time is over.
    NobodyExpires,
}

impl Fault {
    pub const ALL: [Fault; 14] = [
        Fault::CountsFromAnswer,
        Fault::TakesGrantLate,
        Fault::TakesMessageLate,
        Fault::AnyGrantWillDo,
        Fault::AnyAnswerWillDo,
        Fault::AnyFenceWillDo,
        Fault::AnswersInAnyOrder,
        Fault::ReleasesHead,
        Fault::RenewalRevives,
        Fault::GrantRenews,
        Fault::FenceRepeats,
        Fault::QuitSaysNothing,
        Fault::StrayTicketStays,
        Fault::NobodyExpires,
    ];
}
