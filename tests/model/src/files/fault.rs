//! The mutants.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A sharer that waits without a turn waits to hold the file alone.
    DirectAlone,
    /// A sharer that waits without a turn does not look at the gate.
    NoGate,
    /// A gate is closed until nobody holds it.
    GateForEver,
    /// Each waits at the gate for a time of its own.
    GateOpensForEach,
    /// No process waits without a turn.
    NoPatience,
    /// A newcomer that wants to share tries the lock though somebody is next.
    ComesPastTurn,
    /// A process that is in keeps its turn.
    KeepsTurn,
    /// A process that is in keeps its gate.
    KeepsGate,
    /// A process that gives up keeps its turn.
    QuitKeepsTurn,
    /// A process that gives up keeps its gate.
    QuitKeepsGate,
    /// A process that has got in without a turn goes on waiting for it.
    DirectKeepsLine,
}

impl Fault {
    pub const ALL: [Fault; 11] = [
        Fault::DirectAlone,
        Fault::NoGate,
        Fault::GateForEver,
        Fault::GateOpensForEach,
        Fault::NoPatience,
        Fault::ComesPastTurn,
        Fault::KeepsTurn,
        Fault::KeepsGate,
        Fault::QuitKeepsTurn,
        Fault::QuitKeepsGate,
        Fault::DirectKeepsLine,
    ];
}
