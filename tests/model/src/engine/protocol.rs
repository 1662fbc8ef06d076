//! The steps as a state machine for stateright, and what the checks of liveness ask.

use stateright::{Model, Property};

use super::setting::Engine;
use super::state::{Agent, At, Life, MOST_WORDS, Part, State, Verb};
use super::step::{Step, Way};
use super::{enabled, fairness, fast, safety, section};
use crate::check::{Class, Classes, Protocol};
use crate::primitives::{Id, NOBODY, Request};

impl Engine {
    fn apply(&self, state: &mut State, step: Step) {
        match step {
            Step::Acquire(id, word, request, way) => fast::begin(self, state, id, word, request, Verb::Acquire(way)),
            Step::Try(id, word, request) => fast::begin(self, state, id, word, request, Verb::Try),
            Step::Release(id, word) => {
                if let Some(request) = state.part(id, word).inside {
                    fast::begin(self, state, id, word, request, Verb::Release);
                }
            }
            Step::ChangeMode(id, word) => {
                if let Some(held) = state.part(id, word).inside {
                    state.agent_mut(id).at = At::Calling(word, held, Verb::ChangeMode);
                }
            }
            Step::Finish(id, word) => {
                if let Some(held) = state.part_mut(id, word).inside.take() {
                    state.agent_mut(id).at = At::Calling(word, held, Verb::Finish);
                }
            }
            Step::Fast(id) => fast::step(self, state, id),
            Step::Stall(id) => state.agent_mut(id).stalled = true,
            Step::Resume(id) => {
                let agent = state.agent_mut(id);
                agent.stalled = false;
                agent.resumed = agent.parts.iter().any(|part| part.offered || part.granted.is_some());
            }
            Step::End(id) => {
                state.deaths += 1;
                let agent = state.agent_mut(id);
                agent.life = Life::Leaving;
                agent.at = At::Js;
                agent.stalled = false;
            }
            Step::Mark(id) => state.agent_mut(id).life = Life::Scanning(0),
            Step::Age => {
                if let Some(place) = enabled::next_to_age(self, state) {
                    state.queue[place].aged = true;
                }
            }
            Step::Freeze(what) => section::freeze(self, state, what),
            Step::Run(what) => section::run(self, state, what),
        }
    }
}

impl Model for Engine {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            words: self.words.iter().map(|(word, _)| *word).collect(),
            reserved_for: [NOBODY; MOST_WORDS],
            kept: [Request::Exclusive; MOST_WORDS],
            queue: Default::default(),
            agents: self.agents.iter().map(|_| Agent::default()).collect(),
            frozen: None,
            deaths: 0,
            finished: false,
            wrong: None,
        }]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        enabled::steps(self, state, steps);
    }

    fn next_state(&self, before: &State, step: Step) -> Option<State> {
        let mut after = before.clone();
        self.apply(&mut after, step);
        Some(after)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        safety::properties()
    }
}

impl Protocol for Engine {
    type Waiter = (Id, usize, Way);

    fn name(&self) -> &str {
        &self.name
    }

    fn is_live(&self) -> bool {
        self.liveness
    }

    fn class(&self, step: Step) -> Option<Class> {
        fairness::class(step)
    }

    fn due(&self, state: &State) -> Classes {
        fairness::due(self, state)
    }

    fn waiters(&self) -> Vec<Self::Waiter> {
        let mut waiters = Vec::new();
        for (index, kind) in self.agents.iter().enumerate() {
            if self.agents[..index].contains(kind) {
                continue;
            }
            for &(word, _) in kind.asks {
                waiters.extend(kind.blocks.then_some((index as Id + 1, word, Way::Blocked)));
                waiters.extend(kind.awaits.then_some((index as Id + 1, word, Way::Async)));
            }
        }
        waiters.dedup();
        waiters
    }

    fn waits(&self, state: &State, (id, word, way): Self::Waiter) -> bool {
        let agent = state.agent(id);
        let waits = state.place(id, word).map(|place| state.queue[place]).is_some_and(|w| w.way == way && !w.away);
        waits && if way == Way::Blocked || self.deadlines { agent.is_running() } else { agent.turns() }
    }

    fn show(&self, state: &State) -> String {
        let mut out = format!("{:?} [", state.words.as_slice());
        for w in &state.queue {
            let marks =
                [(w.woken, "*"), (w.aged, "+"), (w.away, "~")].iter().filter(|m| m.0).map(|m| m.1).collect::<String>();
            out += &format!(" {}@{}{:?}{:?}{marks}", w.agent, w.word, w.way, w.request);
        }
        out += " ]";
        if state.reserved_for != [NOBODY; MOST_WORDS] {
            out += &format!(" for {:?} {:?}", state.reserved_for, state.kept);
        }
        for id in state.ids() {
            let agent = state.agent(id);
            out += &format!(" | {id} {:?}", agent.at);
            if agent.life != Life::Running {
                out += &format!(" {:?}", agent.life);
            }
            if agent.stalled {
                out += " stalled";
            }
            for (word, part) in agent.parts.iter().enumerate().filter(|(_, part)| **part != Part::default()) {
                out += &format!(" {word}:{}", show_part(part));
            }
        }
        out
    }
}

fn show_part(part: &Part) -> String {
    let mut parts = Vec::new();
    if let Some(request) = part.inside {
        parts.push(format!("inside {request:?}"));
    }
    if let Some((way, request)) = part.granted {
        parts.push(format!("granted {way:?} {request:?}"));
    }
    parts.push(format!("slot {}{:?} has {}", part.slot.count, part.slot.intent, part.has));
    let flags = [(part.offered, "offered"), (part.claimed, "claimed"), (part.in_doubt, "in doubt")];
    parts.extend(flags.iter().filter(|flag| flag.0).map(|flag| flag.1.to_string()));
    format!("({})", parts.join(" "))
}
