//! The mutants.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Whoever waits without a turn, to share, waits to hold the file alone.
    DirectAlone,
    /// Whoever waits without a turn, to share, does not look at the gate.
    NoGate,
    /// A gate is closed until nobody holds it.
    GateForEver,
    /// Each waits at the gate for a time of its own.
    GateOpensForEach,
    /// Nobody waits without a turn.
    NoPatience,
    /// Whoever comes to share tries the lock though somebody is next.
    ComesPastTurn,
    /// Whoever is in keeps its turn.
    KeepsTurn,
    /// Whoever is in keeps its gate.
    KeepsGate,
    /// Whoever gives up keeps its turn.
    QuitKeepsTurn,
    /// Whoever gives up keeps its gate.
    QuitKeepsGate,
    /// Whoever has got in without a turn goes on waiting for it.
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
