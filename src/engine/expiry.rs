//! An expiry takes back what goes with a wait that the clock ends: what its code was to have together with what it waited for.

use super::primitive::{Hold, Primitive};
use crate::agents::AgentId;
use crate::memory::Place;

/// Gives back what goes with a wait when the clock ends it.
pub trait Expiry: Send + Sync {
    /// The time of the wait was over; called by the clock, on its thread.
    fn expired(&self, engine: &dyn TakesBack);

    /// Whether a hold at this address is among that.
    fn gives_back(&self, address: usize) -> bool;
}

/// Gives holds to others: the engine.
pub trait TakesBack {
    /// Takes back what `agent` has beside a wait and its code will not learn of, with the report of an ended holder that was to come
    /// with it. If its code has released it after all, nothing changes. On any thread.
    fn take_back(
        &self,
        agent: AgentId,
        primitive: &'static dyn Primitive,
        place: Place,
        hold: Hold,
        abandoned_by: Option<AgentId>,
    );
}
