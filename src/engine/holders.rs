//! Who holds a name.

use std::time::Instant;

use smallvec::SmallVec;

use super::primitive::Hold;
use crate::agents::AgentId;

/// A hold of a name.
pub(crate) struct Holder {
    /// Who holds it.
    pub(crate) agent: AgentId,
    /// How, and by which request.
    pub(crate) hold: Hold,
    /// Since when.
    pub(super) since: Instant,
    /// Whether its code is in; else it has what the engine has to give, and waits for more.
    pub(super) is_in: bool,
}

impl Holder {
    pub(super) fn is(&self, agent: AgentId, hold: Hold) -> bool {
        self.agent == agent && self.hold == hold
    }
}

/// Who holds a name.
pub(crate) type Holders = SmallVec<[Holder; 1]>;
