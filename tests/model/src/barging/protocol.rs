//! The steps as a state machine for stateright, and what the checks of liveness ask.

use stateright::{Model, Property};

use super::agent::{At, Hold, Id, Life, NOBODY, Stage, Verb};
use super::fault::Fault;
use super::queue::Way;
use super::scenario::Bound;
use super::section::Locked;
use super::setting::Barging;
use super::state::{Frozen, State, Wrong};
use super::step::Step;
use super::{delivery, enabled, fairness, safety, show};
use crate::check::{self, Protocol};

impl Barging {
    /// JavaScript's side of a verb: one compare-exchange; only if it fails is native code called.
    fn call(&self, state: &mut State, id: Id, verb: Verb) {
        let passed = match verb {
            Verb::Unlock => state.word.fast_unlock(id),
            // The count of its pending waits is all that JavaScript asks.
            Verb::LockAsync | Verb::TryLockAsync if !self.may_take_async(state, id) => None,
            _ => state.word.fast_lock(id),
        };
        let Some(word) = passed else {
            state.agent_mut(id).at = At::Calling(verb);
            return;
        };
        if verb == Verb::Unlock {
            state.agent_mut(id).hold = Hold::No;
        } else {
            self.note_overtaking(state, id, verb);
            self.enter(state, id);
        }
        state.word = word;
    }

    /// Its code runs with the lock from here on, and warns first if that is its duty.
    fn enter(&self, state: &mut State, id: Id) {
        let agent = state.agent_mut(id);
        agent.hold = Hold::Inside;
        agent.at = At::Js;
        let reported = std::mem::replace(&mut agent.unreported, NOBODY);
        let due = std::mem::replace(&mut state.ghost.due, NOBODY);
        if reported != due {
            state.ghost.wrong = Some(if reported == NOBODY { Wrong::WarningMissing } else { Wrong::WarningTwice });
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
                state.word = state.word.consistent();
                state.ghost.dirty = false;
            }
            Step::Stall(id, how) => state.agent_mut(id).stall = how,
            Step::Resume(id) => {
                let agent = state.agent_mut(id);
                agent.stall = agent.stall.over(agent.group.offered);
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
                if let Some(waiter) = state.queue.next_to_age(self.scenario.bound == Bound::LeaseGrows) {
                    waiter.aged = true;
                }
            }
            Step::Cool => state.cool = false,
            Step::Spin(id) => state.spinning = id,
            Step::SpinOver => state.spinning = NOBODY,
        }
    }
}

impl Model for Barging {
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

/// A wait that must not be for ever.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Waiting {
    ForLock(Id, Way),
    /// A loop sleeps.
    ToWake(Id),
}

impl Protocol for Barging {
    type Waiter = Waiting;

    fn name(&self) -> &str {
        &self.scenario.name
    }

    fn is_live(&self) -> bool {
        self.scenario.liveness
    }

    fn class(&self, step: Step) -> Option<check::Class> {
        fairness::class(step)
    }

    fn due(&self, state: &State) -> check::Classes {
        fairness::due(self, state)
    }

    fn waiters(&self) -> Vec<Waiting> {
        let kinds = &self.scenario.agents;
        let mut waiters = Vec::new();
        for (index, kind) in kinds.iter().enumerate() {
            if kinds[..index].contains(kind) {
                continue;
            }
            let id = index as Id + 1;
            if self.scenario.endless_holds {
                waiters.push(Waiting::ToWake(id));
                continue;
            }
            waiters.extend(kind.blocks.then_some(Waiting::ForLock(id, Way::Blocked)));
            waiters.extend((1..=kind.tasks).map(|task| Waiting::ForLock(id, Way::Async(task))));
        }
        waiters
    }

    /// Not away, its loop not stuck, the lock not its own.
    fn waits(&self, state: &State, waiting: Waiting) -> bool {
        match waiting {
            Waiting::ToWake(id) => matches!(state.agent(id).at, At::Asleep(_)),
            Waiting::ForLock(id, way @ Way::Async(_)) => state.queue.find(id, way).is_some() && state.agent(id).turns(),
            Waiting::ForLock(id, Way::Blocked) => {
                let agent = state.agent(id);
                let is_here = state.queue.find(id, Way::Blocked).is_some_and(|waiter| !waiter.away);
                is_here && agent.is_running() && agent.hold != Hold::Inside
            }
        }
    }

    /// A thread that takes the lock again and again by blocking calls starves its own tasks, and the lock cannot help it:
    /// such runs do not count for those.
    fn counts(&self, waiting: Waiting, class: Option<check::Class>) -> bool {
        match waiting {
            Waiting::ForLock(id, Way::Async(_)) => class != Some(fairness::blocking(id)),
            _ => true,
        }
    }

    fn show(&self, state: &State) -> String {
        show::state(state)
    }
}
