//! Who holds what the words do not tell: in a slot of the register (see [`super::register`]), or listed (see [`super::listed`]).

use std::time::Instant;

use smallvec::SmallVec;

use super::primitive::Hold;
use crate::agents::AgentId;

/// A hold.
pub(crate) struct Holder {
    /// Who holds it.
    pub(crate) agent: AgentId,
    /// How; it tells the hold from all others of the agent.
    pub(crate) hold: Hold,
    /// Since when.
    pub(crate) since: Instant,
    /// Whether its code is in; else it has what the engine has to give, and waits for more.
    pub(crate) is_in: bool,
}

impl Holder {
    pub(super) fn is(&self, agent: AgentId, hold: Hold) -> bool {
        self.agent == agent && self.hold == hold
    }
}

/// Who holds one.
pub(crate) type Holders = SmallVec<[Holder; 1]>;

/// What an agent holds, whichever way it is known.
pub(crate) struct Held {
    /// Who holds it.
    pub(crate) agent: AgentId,
    /// How often, or how much of it.
    pub(crate) count: u32,
    /// Whether nobody else can hold it meanwhile.
    pub(crate) is_alone: bool,
}
