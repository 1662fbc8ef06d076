//! Holders that the words do not tell: in a slot of the register (see [`super::register`]), or listed (see [`super::listed`]).

use std::time::Instant;

use smallvec::SmallVec;

use super::primitive::ListedHold;
use crate::agents::AgentId;

/// A hold.
pub(crate) struct Holder {
    /// The agent that holds it.
    pub(crate) agent: AgentId,
    /// The hold, which tells it from all others of the agent.
    pub(crate) hold: ListedHold,
    /// Since when.
    pub(crate) since: Instant,
    /// Whether its code is in; else it has what the engine has to give, and waits for more.
    pub(crate) is_in: bool,
    /// The agent whose thread ended inside, which its code has to report once it is in; until then.
    pub(crate) report: Option<AgentId>,
}

/// The holders of one.
pub(crate) type Holders = SmallVec<[Holder; 1]>;

/// An agent's holds, whichever way they are known.
pub(crate) struct Held {
    /// The agent that holds it.
    pub(crate) agent: AgentId,
    /// The number of holds, or of what is counted.
    pub(crate) count: u32,
    /// Whether nobody else can hold it meanwhile.
    pub(crate) is_alone: bool,
}
