//! The mutants.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The one that was met reads its value from the words when it comes for it, and not from its grant.
    ReadsLate,
    /// A newcomer looks at the words after it has written its own value there.
    FindsItsOwn,
    /// A wait that is given up leaves its value where the next to come finds it.
    LeaverLeavesValue,
    /// A wait is given up after the meeting.
    QuitAfterMeeting,
    /// A thread that ends leaves its wait behind.
    EndStaysQueued,
    /// A newcomer queues behind whoever waits.
    PassesBy,
}

impl Fault {
    pub const ALL: [Fault; 6] = [
        Fault::ReadsLate,
        Fault::FindsItsOwn,
        Fault::LeaverLeavesValue,
        Fault::QuitAfterMeeting,
        Fault::EndStaysQueued,
        Fault::PassesBy,
    ];
}
