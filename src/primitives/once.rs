//! Once: one word. The first of all threads to come runs, the others wait until it is done.
//!
//! | low 26 bits | A | D | meaning |
//! |-------------|---|---|---------|
//! | 0 | * | 0 | nobody runs: the next in line does |
//! | id | * | 0 | the agent runs |
//! | 0 | 0 | 1 | done: there is nothing to wait for |
//!
//! A: the thread of one before ended inside, and nobody has been done since: whoever runs has to know, also if one between
//! them knew and failed. W (bit 29): somebody waits. In strict order, so that whoever runs next, after one that failed, is the next in line.

use super::mutex::{ABANDONED, OWNER, WAITING};
use super::word;
use crate::agents::{AgentId, Standing};
use crate::engine::{About, Blockers, Change, Corrupt, Facts, Hold, Order, Primitive, Space, State};
use crate::memory::Place;

/// D: it is done.
pub const DONE: u32 = 1 << 30;

/// Once.
pub struct Once;

/// There is only one: it has no state.
pub static ONCE: Once = Once;

fn runner(state: State) -> AgentId {
    word::of(state) & OWNER
}

static ABOUT: About = About { name: "Once", order: Order::Strict, space: Space::Words, registered: None };

impl Primitive for Once {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn freeze(&self, place: Place, facts: &Facts<'_>) -> Result<State, Corrupt> {
        word::freeze(place, WAITING, |word| {
            let runner = word & OWNER;
            word & !(OWNER | ABANDONED | WAITING | DONE) == 0
                && (word & WAITING == 0 || facts.is_queued)
                && (word & DONE == 0 || word & !WAITING == DONE)
                && (runner == 0 || facts.agents.standing(runner) != Standing::NeverIssued)
        })
    }

    fn thaw(&self, place: Place, _: State, state: State, is_queued: bool) {
        word::thaw(place, WAITING, state, is_queued);
    }

    fn refuses(&self, state: State) -> bool {
        word::of(state) & DONE != 0
    }

    fn grant(&self, state: State, _: Hold, agent: AgentId) -> Option<State> {
        (runner(state) == 0 && !self.refuses(state)).then(|| word::state(agent | word::of(state) & ABANDONED))
    }

    /// The run has failed: the next in line runs.
    fn release(&self, state: State, _: Hold, agent: AgentId) -> Option<State> {
        (runner(state) == agent).then(|| word::state(word::of(state) & ABANDONED))
    }

    fn owner(&self, state: State) -> AgentId {
        runner(state)
    }

    fn ended(&self, _: State) -> State {
        word::state(ABANDONED)
    }

    fn remember_ended(&self, _: State, agent: AgentId) -> State {
        word::state(agent)
    }

    fn change(&self, state: State, change: Change, agent: AgentId) -> Option<State> {
        (change == Change::Finish && runner(state) == agent).then(|| word::state(DONE))
    }

    fn is_waiting(&self, state: State) -> bool {
        word::of(state) & WAITING != 0
    }

    fn blockers(&self, state: State) -> Blockers {
        Blockers::Owner(runner(state))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::engine::{Decision, HoldOwner, Request};

    const ME: AgentId = 70_000;
    const OTHER: AgentId = 70_001;
    const RUN: Hold = Hold::exclusive(HoldOwner::Thread);

    #[test]
    fn transitions_follow_the_table() {
        let enter = |word| ONCE.enter(word::state(word), Request::Hold(RUN), ME, false);
        assert_eq!(enter(0), Decision::Granted(word::state(ME)));
        assert_eq!(enter(ABANDONED), Decision::Granted(word::state(ME | ABANDONED)));
        assert_eq!(enter(OTHER), Decision::Wait);
        assert_eq!(enter(DONE), Decision::Refused);
        assert_eq!(ONCE.release(word::state(ME), RUN, ME), Some(word::state(0)));
        assert_eq!(ONCE.release(word::state(ME | ABANDONED), RUN, ME), Some(word::state(ABANDONED)));
        assert_eq!(ONCE.release(word::state(OTHER), RUN, ME), None);
        assert_eq!(ONCE.grant(word::state(DONE), RUN, ME), None);
    }
}
