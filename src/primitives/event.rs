//! Events: one word. One that is reset by hand stays set, and all pass, until somebody resets it; one that resets itself lets
//! one pass for each time that it is set.
//!
//! | bit | meaning |
//! |-----|---------|
//! | 0 | set: whoever comes passes |
//! | 29 | W: somebody waits, so that every change goes through the queue |

use super::word;
use crate::agents::AgentId;
use crate::engine::{About, Change, Corrupt, Facts, Hold, Order, Primitive, Space, State};
use crate::memory::Place;

/// The event is set.
pub const SET: u32 = 1;
/// W: somebody waits.
pub const WAITING: u32 = 1 << 29;

/// The effect on an event of passing through it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reset {
    ByHand,
    ByPassage,
}

/// An event.
pub struct Event {
    about: &'static About,
    reset: Reset,
}

/// The one that is reset by hand.
pub static MANUAL_RESET_EVENT: Event = Event { about: &MANUAL, reset: Reset::ByHand };

/// The one that resets itself.
pub static AUTO_RESET_EVENT: Event = Event { about: &AUTO, reset: Reset::ByPassage };

static MANUAL: About = about("ManualResetEvent");
static AUTO: About = about("AutoResetEvent");

const fn about(name: &'static str) -> About {
    About { name, order: Order::Strict, space: Space::Words, registered: None }
}

impl Primitive for Event {
    fn about(&self) -> &'static About {
        self.about
    }

    fn freeze(&self, place: Place, facts: &Facts<'_>) -> Result<State, Corrupt> {
        word::freeze(place, WAITING, |word| word & !(SET | WAITING) == 0 && (word & WAITING == 0 || facts.is_queued))
    }

    fn thaw(&self, place: Place, _: State, state: State, is_queued: bool) {
        word::thaw(place, WAITING, state, is_queued);
    }

    /// A waiter that waits when it is set passes, though it is reset at once.
    fn grant(&self, state: State, _: Hold, _: AgentId) -> Option<State> {
        let left = match self.reset {
            Reset::ByHand => word::of(state),
            Reset::ByPassage => word::of(state) & !SET,
        };
        (word::of(state) & SET != 0).then(|| word::state(left))
    }

    /// A passage that its thread never knew of: somebody else passes, where it took that from anybody.
    fn release(&self, state: State, _: Hold, _: AgentId) -> Option<State> {
        Some(match self.reset {
            Reset::ByHand => state,
            Reset::ByPassage => word::state(word::of(state) | SET),
        })
    }

    fn change(&self, state: State, change: Change, _: AgentId) -> Option<State> {
        match change {
            Change::Set => Some(word::state(word::of(state) | SET)),
            Change::Reset => Some(word::state(word::of(state) & !SET)),
            _ => None,
        }
    }

    fn is_waiting(&self, state: State) -> bool {
        word::of(state) & WAITING != 0
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::engine::{Decision, Request};

    #[test]
    fn whoever_comes_passes_while_it_is_set() {
        let pass = Request::Hold(Hold::PASSAGE);
        for (event, left) in [(&MANUAL_RESET_EVENT, SET), (&AUTO_RESET_EVENT, 0)] {
            let enter = |word| event.enter(word::state(word), pass, 70_000, false);
            assert_eq!(enter(0), Decision::Wait);
            assert_eq!(enter(SET), Decision::Granted(word::state(left)));
        }
    }
}
