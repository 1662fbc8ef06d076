//! Events that are set by hand and stay set until somebody resets them: one word.
//!
//! | bit | meaning |
//! |-----|---------|
//! | 0 | set: whoever comes passes |
//! | 29 | W: somebody waits, so that every change goes through the queue |

use std::sync::Arc;

use super::word;
use crate::agents::{Agent, AgentId};
use crate::engine::{Blockers, Corrupt, Engine, Entry, Facts, Hold, Order, Primitive, Request, State};
use crate::memory::Place;

/// The event is set.
pub const SET: u32 = 1;
/// W: somebody waits.
pub const WAITING: u32 = 1 << 29;

/// The event.
pub struct ManualResetEvent;

/// The one that there need be.
pub static MANUAL_RESET_EVENT: ManualResetEvent = ManualResetEvent;

impl Primitive for ManualResetEvent {
    fn name(&self) -> &'static str {
        "ManualResetEvent"
    }

    fn order(&self) -> Order {
        Order::Strict
    }

    fn freeze(&self, place: Place, facts: &Facts<'_>) -> Result<State, Corrupt> {
        word::freeze(place, WAITING, |word| word & !(SET | WAITING) == 0 && (word & WAITING == 0 || facts.is_queued))
    }

    fn thaw(&self, place: Place, _: State, state: State, is_queued: bool) {
        word::thaw(place, WAITING, state, is_queued);
    }

    fn read(&self, place: Place) -> State {
        word::read(place)
    }

    fn enter(&self, state: State, request: Request, agent: AgentId, _: bool) -> Entry {
        let Request::Hold(hold) = request else { return Entry::Refused };
        self.grant(state, hold, agent).map_or(Entry::Wait, Entry::Granted)
    }

    /// Whoever waits when it is set passes, though it is reset at once.
    fn grant(&self, state: State, _: Hold, _: AgentId) -> Option<State> {
        (word::of(state) & SET != 0).then_some(state)
    }

    /// A passage that its thread never knew of takes nothing from anybody.
    fn release(&self, state: State, _: Hold, _: AgentId) -> Option<State> {
        Some(state)
    }

    fn is_waiting(&self, state: State) -> bool {
        word::of(state) & WAITING != 0
    }

    fn blockers(&self, _: State) -> Blockers {
        Blockers::Anybody
    }
}

impl Engine {
    /// Sets the event, or resets it. On the thread of `here`, as [`Engine::release`].
    pub fn set_event(&self, here: &Arc<Agent>, place: Place, is_set: bool) -> Result<(), Corrupt> {
        self.update(here, &MANUAL_RESET_EVENT, place, |state| {
            let word = word::of(state);
            Some(word::state(if is_set { word | SET } else { word & !SET }))
        })
        .map(|_| ())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn whoever_comes_passes_while_it_is_set() {
        let pass = Request::Hold(Hold::PASSAGE);
        let enter = |word| MANUAL_RESET_EVENT.enter(word::state(word), pass, 70_000, false);
        assert_eq!(enter(0), Entry::Wait);
        assert_eq!(enter(SET), Entry::Granted(word::state(SET)));
    }
}
