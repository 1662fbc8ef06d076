//! One scenario of the protocol, with at most one fault; and what every part of it asks.

use super::agent::{Agent, Id, NOBODY, Verb};
use super::fault::Fault;
use super::queue::Way;
use super::scenario::{Bound, Kind, Scenario};
use super::state::{State, Wrong};

#[derive(Clone, Debug)]
pub struct Barging {
    pub scenario: Scenario,
    pub fault: Option<Fault>,
}

impl Barging {
    pub fn has(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }

    pub fn kind(&self, id: Id) -> Kind {
        self.scenario.agents[id as usize - 1]
    }

    /// The first of an agent's tasks that may still be asked to wait.
    pub fn free_task(&self, state: &State, id: Id) -> Option<Way> {
        state.free_task(id, self.kind(id).tasks)
    }

    /// Whether an asynchronous newcomer may take the lock at once: nobody of its own thread waits.
    pub fn may_take_async(&self, state: &State, id: Id) -> bool {
        state.queue.group_size(id) == 0 || self.has(Fault::AsyncOvertakes)
    }

    pub fn note_overtaking(&self, state: &mut State, id: Id, verb: Verb) {
        if verb.is_async() && state.queue.group_size(id) > 0 {
            state.ghost.wrong = Some(Wrong::AsyncOvertookItsOwn);
        }
    }

    /// Whether a loop that comes may sleep until the word is handed over: only where somebody else can do so soon.
    pub fn may_park(&self, state: &State, id: Id) -> bool {
        let owner = state.word.owner;
        if owner == NOBODY || !state.agent(id).is_running() || state.queue.group_size(id) == 0 {
            return false;
        }
        if owner == id { self.has(Fault::ParksForItsOwn) } else { state.agent(owner).can_run() }
    }

    /// Whether a sleeping loop may be on its feet again: always, since it sleeps for a short time, except where the
    /// scenario says that holds are shorter.
    pub fn park_may_end(&self, state: &State, id: Id) -> bool {
        let Agent { group, .. } = *state.agent(id);
        if !group.parked || group.passed_by {
            return true;
        }
        let owner = state.word.owner;
        let is_held_shortly = owner != NOBODY && state.agent(owner).can_run();
        let waits_on = self.scenario.bound == Bound::ShortHolds && is_held_shortly;
        !waits_on && !self.has(Fault::ParksWithoutEnd)
    }

    /// A lease may always be too short, except where the scenario says how long it is.
    pub fn lease_may_end(&self, state: &State) -> bool {
        let reserved_for = state.reserved_for;
        if !state.word.reserved || self.has(Fault::LeaseNeverEnds) {
            return false;
        }
        let is_long = match self.scenario.bound {
            Bound::None | Bound::ShortHolds => false,
            Bound::ShortTurns => true,
            Bound::LeaseGrows => {
                // It does not grow while a thread is blocked.
                let is_blocked = state.ids().any(|id| state.queue.find(id, Way::Blocked).is_some_and(|w| !w.away));
                state.queue.first_of_group(reserved_for).is_some_and(|(_, w)| w.aged) && !is_blocked
            }
        };
        !is_long || !state.agent(reserved_for).turns()
    }
}
