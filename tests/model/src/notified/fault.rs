//! The mutants.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A notification ends with the thread that did not learn of it.
    EndKeepsNotification,
    /// It is passed on to whoever waits now, also to those who came later.
    PassesOnToLatecomers,
    /// It is passed on only to those who stood in the line when it was given, without a chain.
    PassesOnWithoutChain,
    /// It is passed on along the chain of notifications, however often that was done before.
    PassesOnByChainAlone,
    /// A deadline that comes after the notification ends the wait as timed out.
    TimeoutAfterNotification,
    /// A condition's waiter takes its notification as its own before it holds the lock again.
    LearnsBeforeRelock,
    /// A condition's waiter frees the lock before it stands in the line.
    UnlocksBeforeQueueing,
    /// The value is compared before the line is locked.
    ComparesBeforeLocking,
    /// The last in the line is notified first.
    LastFirst,
}

impl Fault {
    pub const ALL: [Fault; 9] = [
        Fault::EndKeepsNotification,
        Fault::PassesOnToLatecomers,
        Fault::PassesOnWithoutChain,
        Fault::PassesOnByChainAlone,
        Fault::TimeoutAfterNotification,
        Fault::LearnsBeforeRelock,
        Fault::UnlocksBeforeQueueing,
        Fault::ComparesBeforeLocking,
        Fault::LastFirst,
    ];
}
