//! The actions that may happen next in a state.

use super::fault::Fault;
use super::setting::{Engine, Order};
use super::state::{Agent, At, Life, Part, State, Waiter};
use super::step::{Section, Step, Way};
use crate::primitives::{Id, NOBODY, Request, Word};

pub fn steps(engine: &Engine, state: &State, out: &mut Vec<Step>) {
    let mut next = Next { engine, state, out };
    let busy = state.frozen.and_then(|frozen| frozen.section.thread());
    for id in state.ids().filter(|id| busy != Some(*id)) {
        let agent = state.agent(id);
        match agent.life {
            Life::Running => next.running(id, agent),
            Life::Leaving => {
                let left = (0..engine.words.len()).find(|word| !agent.parts[*word].given_back);
                if let Some(word) = left {
                    next.section(Section::Leave(id, word));
                }
            }
            Life::Marking => next.out.push(Step::Mark(id)),
            Life::Scanning(word) => next.section(Section::Scan(id, word)),
            Life::Gone => {}
        }
    }
    if let Some(frozen) = state.frozen {
        next.out.push(Step::Run(frozen.section));
    }
    for word in 0..engine.words.len() {
        if lease_may_end(engine, state, word) {
            next.section(Section::LeaseOver(word));
        }
    }
    for id in state.ids() {
        for word in (0..engine.words.len()).filter(|word| may_expire(engine, state, id, *word)) {
            next.section(Section::Expire(id, word));
        }
    }
    if next_to_age(engine, state).is_some() {
        next.out.push(Step::Age);
    }
}

pub fn may_expire(engine: &Engine, state: &State, id: Id, word: usize) -> bool {
    let is_seen = !engine.has(Fault::DeadlineWaitsForItsLoop) || state.agent(id).turns();
    has_deadline(engine, state, id, word) && is_seen
}

/// Whether a promise of this agent waits for the word, or was granted it and its loop has not come, until the clock ends that.
pub fn has_deadline(engine: &Engine, state: &State, id: Id, word: usize) -> bool {
    let is_granted = matches!(state.part(id, word).granted, Some((Way::Async, _)));
    let waits = || state.place(id, word).is_some_and(|place| state.queue[place].way == Way::Async);
    engine.deadlines && (is_granted || waits())
}

/// A lease may always be too short, except where the scenario says how long it is.
pub fn lease_may_end(engine: &Engine, state: &State, word: usize) -> bool {
    let id = state.reserved_for[word];
    id != NOBODY && !(engine.short_turns && state.agent(id).turns())
}

/// Returns the next to age, where age matters, in barging order: blocked writers, those who block for permits, and whoever gathers
/// them.
pub fn next_to_age(engine: &Engine, state: &State) -> Option<usize> {
    let matters = |w: &Waiter| match w.way {
        Way::Blocked => w.request != Request::Shared,
        Way::Async => w.request.gathers(),
    };
    state.queue.iter().position(|w| engine.words[w.word].1 == Order::Barging && matters(w) && !w.aged)
}

struct Next<'a> {
    engine: &'a Engine,
    state: &'a State,
    out: &'a mut Vec<Step>,
}

impl Next<'_> {
    fn section(&mut self, section: Section) {
        if !self.engine.split {
            self.out.push(Step::Run(section));
        } else if self.state.frozen.is_none() {
            self.out.push(Step::Freeze(section));
        }
    }

    fn running(&mut self, id: Id, agent: &Agent) {
        match agent.at {
            At::Js if agent.stalled => self.out.push(Step::Resume(id)),
            At::Js => self.javascript(id, agent),
            At::Fast(..) => self.out.push(Step::Fast(id)),
            At::Calling(word, ..) => self.section(Section::Call(id, word)),
            At::Parked(word) => self.parked(id, agent, word),
        }
        if self.state.deaths < self.engine.deaths {
            self.out.push(Step::End(id));
        }
    }

    fn javascript(&mut self, id: Id, agent: &Agent) {
        let kind = self.engine.kind(id);
        let holds = agent.parts.iter().any(|part| part.inside.is_some());
        for &(word, request) in kind.asks {
            let part: &Part = &agent.parts[word];
            let waits = self.state.place(id, word).is_some() || part.granted.is_some();
            if part.inside.is_some() || waits || holds && !self.engine.nests {
                continue;
            }
            if kind.blocks {
                self.out.push(Step::Acquire(id, word, request, Way::Blocked));
            }
            if kind.awaits {
                self.out.push(Step::Acquire(id, word, request, Way::Async));
            }
            if self.engine.tries {
                self.out.push(Step::Try(id, word, request));
            }
        }
        for word in 0..self.engine.words.len() {
            let part = &agent.parts[word];
            if part.inside.is_some() {
                self.out.push(Step::Release(id, word));
                if matches!(self.state.words[word], Word::Once(_)) {
                    self.out.push(Step::Finish(id, word));
                }
                if self.engine.modes {
                    self.out.push(Step::ChangeMode(id, word));
                }
            }
            let waits = self.state.place(id, word).is_some();
            if self.engine.quits && (waits || part.granted.is_some()) {
                self.section(Section::Quit(id, word));
            }
            if self.engine.quits
                && let Some(place) = self.state.place(id, word)
            {
                let first = self.state.queue[place].request;
                for &(_, next) in kind.asks.iter().filter(|ask| ask.0 == word && ask.1 != first) {
                    self.section(Section::AsksNext(id, word, next));
                }
            }
            if part.granted.is_some() {
                self.section(Section::Accept(id, word));
            }
            if part.offered {
                self.section(Section::Claim(id, word));
            }
        }
        if self.engine.stalls && kind.awaits && !holds && !agent.resumed {
            self.out.push(Step::Stall(id));
        }
    }

    fn parked(&mut self, id: Id, agent: &Agent, word: usize) {
        if agent.parts[word].granted.is_some_and(|(way, _)| way == Way::Blocked) {
            self.section(Section::Accept(id, word));
            if self.engine.quits {
                self.section(Section::Quit(id, word));
            }
            return;
        }
        let Some(place) = self.state.place(id, word) else { return };
        if self.state.queue[place].away {
            return self.section(Section::Back(id, word));
        }
        if self.state.queue[place].woken {
            self.section(Section::Woken(id, word));
        }
        if self.engine.slices && !self.engine.is_strict(word) {
            self.section(Section::GoesAway(id, word));
        }
        if self.engine.quits {
            self.section(Section::Quit(id, word));
        }
    }
}
