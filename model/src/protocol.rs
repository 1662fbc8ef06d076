//! The protocol as a state machine for stateright: one scenario, with at most one fault.

use stateright::{Model, Property};

use crate::agent::{At, Hold, Id, Life, NOBODY, Stage, Stall, Verb};
use crate::fault::Fault;
use crate::queue::Way;
use crate::scenario::{Kind, Scenario};
use crate::section::Locked;
use crate::state::{Frozen, State, Wrong};
use crate::step::Step;
use crate::{delivery, enabled, safety};

#[derive(Clone, Debug)]
pub struct Protocol {
    pub scenario: Scenario,
    pub fault: Option<Fault>,
}

impl Protocol {
    pub fn has(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }

    pub fn kind(&self, id: Id) -> Kind {
        self.scenario.agents[id as usize - 1]
    }

    /// JavaScript's side of a verb: one compare-exchange; only if it fails is native code called.
    fn call(&self, state: &mut State, id: Id, verb: Verb) {
        let passed = match verb {
            Verb::Unlock => state.word.is_plainly(id),
            // The count of its pending waits is all that JavaScript asks.
            Verb::LockAsync | Verb::TryLockAsync => state.word.is_zero() && self.may_take_async(state, id),
            Verb::Lock | Verb::TryLock => state.word.is_zero(),
        };
        if !passed {
            state.agent_mut(id).at = At::Calling(verb);
        } else if verb == Verb::Unlock {
            state.word.owner = NOBODY;
            state.agent_mut(id).hold = Hold::No;
        } else {
            self.note_overtaking(state, id, verb);
            state.word.owner = id;
            self.enter(state, id);
        }
    }

    /// Whether an asynchronous newcomer may take the lock at once: nobody of its own thread waits.
    pub fn may_take_async(&self, state: &State, id: Id) -> bool {
        state.queue.party_size(id) == 0 || self.has(Fault::AsyncOvertakes)
    }

    pub fn note_overtaking(&self, state: &mut State, id: Id, verb: Verb) {
        if verb.is_async() && state.queue.party_size(id) > 0 {
            state.ghost.wrong = Some(Wrong::AsyncOvertookItsOwn);
        }
    }

    /// Its code runs with the lock from here on, and warns first if that is its duty.
    fn enter(&self, state: &mut State, id: Id) {
        let agent = state.agent_mut(id);
        agent.hold = Hold::Inside;
        agent.at = At::Js;
        let told = std::mem::replace(&mut agent.tell, NOBODY);
        let due = std::mem::replace(&mut state.ghost.due, NOBODY);
        if told != due {
            state.ghost.wrong = Some(if told == NOBODY { Wrong::WarningMissing } else { Wrong::WarningTwice });
        }
    }

    fn die(&self, state: &mut State, id: Id) {
        let agent = state.agent_mut(id);
        agent.life = Life::Dying(Stage::Leave);
        agent.at = At::Js;
        agent.stall = Default::default();
        let inside = agent.hold == Hold::Inside;
        state.ghost.deaths += 1;
        if inside {
            state.ghost.dirty = true;
            state.ghost.due = id;
        }
    }

    fn mark(&self, state: &mut State, id: Id) {
        let after = if self.has(Fault::MarksAfterScan) { Life::Gone } else { Life::Dying(Stage::Scan) };
        let agent = state.agent_mut(id);
        agent.marked = true;
        agent.life = after;
    }

    fn apply(&self, state: &mut State, step: Step) {
        match step {
            Step::Call(id, verb) => self.call(state, id, verb),
            Step::Look(id) => {
                let takes = state.word.is_open() || state.owner_is_marked_dead();
                let agent = state.agent_mut(id);
                if let At::Calling(verb) = agent.at {
                    agent.at = At::Decided(verb, takes);
                }
            }
            Step::Accept(id) => self.enter(state, id),
            Step::Repair(_) => {
                state.word.abandoned = false;
                state.ghost.dirty = false;
            }
            Step::Stall(id, how) => state.agent_mut(id).stall = how,
            Step::Resume(id) => {
                let agent = state.agent_mut(id);
                agent.stall = if agent.party.offered { Stall::Over } else { Stall::No };
            }
            Step::Die(id) => self.die(state, id),
            Step::Mark(id) => self.mark(state, id),
            Step::Freeze(section) => {
                let word = state.word;
                state.bucket = Some(Frozen { section, word });
                state.word.waiters = !self.has(Fault::SectionDoesNotFreeze);
            }
            Step::Run(section) => Locked::run(self, state, section),
            Step::Push(thread) => delivery::push(state, thread),
            Step::Ring(thread) => delivery::ring(state, thread),
            Step::CallElsewhere(id) => delivery::call(state, id),
            Step::Drain(id) => delivery::drain(self, state, id),
            Step::Age => {
                if let Some(waiter) = state.queue.next_to_age() {
                    waiter.aged = true;
                }
            }
            Step::Cool => state.cool = false,
            Step::Linger(id) => state.lingering = id,
            Step::Doze => state.lingering = NOBODY,
        }
    }

    /// The first of an agent's tasks that may still be asked to wait.
    pub fn free_task(&self, state: &State, id: Id) -> Option<Way> {
        state.free_task(id, self.kind(id).tasks)
    }
}

impl Model for Protocol {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        vec![State::new(self.scenario.agents.len())]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        enabled::steps(self, state, steps);
    }

    fn next_state(&self, before: &State, step: Step) -> Option<State> {
        let mut after = before.clone();
        self.apply(&mut after, step);
        if !before.queue.agrees_with(&after.queue) {
            after.ghost.wrong = Some(Wrong::WaitersChangedPlaces);
        }
        Some(after)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        safety::properties()
    }
}
