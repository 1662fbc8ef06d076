//! A lock outside of the process, as those who wait for it see it: an outsider settles the wait.
//!
//! It has no words: its place, which is never read, is where its one waiter is queued. What was granted is kept by whoever made the
//! request.

use crate::agents::AgentId;
use crate::engine::{About, Corrupt, Decision, Facts, Hold, Order, Primitive, Request, Space, State};
use crate::memory::Place;

/// A wait that an outsider settles.
pub struct Outer;

/// There is only one: it has no state.
pub static OUTER: Outer = Outer;

static ABOUT: About = About { name: "HeldLock", order: Order::Notified, space: Space::Outer, registered: None };

impl Primitive for Outer {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    /// The lock of the bucket is all that there is to freeze.
    fn freeze(&self, _: Place, _: &Facts<'_>) -> Result<State, Corrupt> {
        Ok(State(0))
    }

    fn thaw(&self, _: Place, _: State, _: State, _: bool) {}

    fn read(&self, _: Place) -> State {
        State(0)
    }

    fn enter(&self, _: State, _: Request, _: AgentId, _: bool) -> Decision {
        Decision::Wait
    }

    fn grant(&self, _: State, _: Hold, _: AgentId) -> Option<State> {
        None
    }

    fn release(&self, _: State, _: Hold, _: AgentId) -> Option<State> {
        None
    }

    fn is_waiting(&self, _: State) -> bool {
        true
    }
}
