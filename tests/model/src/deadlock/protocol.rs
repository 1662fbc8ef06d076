//! The steps as a state machine for stateright.

use stateright::{Model, Property};

use super::state::{Agent, At, Search, State};
use crate::check::Protocol;
use crate::primitives::{Id, NOBODY};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// One walk is enough.
    OneWalk,
    /// A thread says what it waits for only after it has searched.
    SearchesBeforeNoting,
    /// All threads of a cycle search at the same time.
    SearchesBesideOthers,
    /// A thread that has learned of its cycle still counts as blocked in it.
    ReportedStaysBlocked,
}

impl Fault {
    pub const ALL: [Fault; 4] =
        [Fault::OneWalk, Fault::SearchesBeforeNoting, Fault::SearchesBesideOthers, Fault::ReportedStaysBlocked];
}

#[derive(Clone, Debug)]
pub struct Deadlock {
    pub name: String,
    pub words: usize,
    pub agents: usize,
    pub fault: Option<Fault>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// Takes a free word, or queues for it.
    Lock(Id, usize),
    Unlock(usize),
    /// A free word goes to a thread that is queued for it.
    Grant(Id),
    /// It runs again.
    Wake(Id),
    /// The next read of its search.
    Search(Id),
}

impl Deadlock {
    fn has(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }

    fn lock(&self, s: &mut State, id: Id, word: usize) {
        if s.owners[word] == NOBODY {
            s.owners[word] = id;
            return;
        }
        s.agent_mut(id).waits = Some(word);
        s.agent_mut(id).at = At::Queued;
        s.note(id, !self.has(Fault::SearchesBeforeNoting));
    }

    fn search(&self, s: &mut State, id: Id) {
        let Some(word) = s.agent(id).waits else { return };
        let before = std::mem::take(&mut s.agent_mut(id).at);
        let after = match before {
            At::Queued => {
                let owner = s.owners[word];
                if owner == NOBODY || owner == id || s.blockage(owner).is_none() {
                    self.sleep(s, id)
                } else {
                    At::Suspicious
                }
            }
            At::Found => self.report(s, id),
            At::Suspicious => {
                s.searching = id;
                At::Searching(Search { at: id, word, ..Search::default() })
            }
            At::Searching(search) => self.read(s, id, search),
            other => other,
        };
        if !matches!(after, At::Searching(_) | At::Found) && s.searching == id {
            s.searching = NOBODY;
        }
        s.agent_mut(id).at = after;
    }

    fn read(&self, s: &mut State, id: Id, mut search: Search) -> At {
        let Some(owner) = search.owner.take() else {
            let owner = s.owners[search.word];
            search.hops.push((search.at, search.word));
            if owner == id && search.at != id {
                return self.found(s, id, search);
            }
            if owner == NOBODY || owner == search.at || search.hops.iter().any(|hop| hop.0 == owner) {
                return self.sleep(s, id);
            }
            search.owner = Some(owner);
            return At::Searching(search);
        };
        let Some(word) = s.blockage(owner) else { return self.sleep(s, id) };
        if search.first.is_none() {
            search.changed &= !(1 << owner);
        }
        search.at = owner;
        search.word = word;
        At::Searching(search)
    }

    /// The second walk has to find the same threads, in the same waits.
    fn found(&self, s: &mut State, id: Id, search: Search) -> At {
        let same = search.hops.iter().all(|(hop, _)| search.changed & 1 << hop == 0);
        match &search.first {
            Some(first) if !same || *first != search.hops => self.sleep(s, id),
            None if !self.has(Fault::OneWalk) => {
                let word = s.agent(id).waits.unwrap_or_default();
                let first = Some(search.hops);
                At::Searching(Search { at: id, word, first, changed: search.changed, ..Search::default() })
            }
            _ => At::Found,
        }
    }

    fn report(&self, s: &mut State, id: Id) -> At {
        s.wrong |= !s.is_in_cycle(id);
        if self.has(Fault::ReportedStaysBlocked) {
            return At::Asleep;
        }
        s.agent_mut(id).waits = None;
        s.note(id, false);
        At::Js
    }

    fn sleep(&self, s: &mut State, id: Id) -> At {
        if self.has(Fault::SearchesBeforeNoting) {
            s.note(id, true);
        }
        At::Asleep
    }
}

impl Model for Deadlock {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            owners: (0..self.words).map(|_| NOBODY).collect(),
            agents: (0..self.agents).map(|_| Agent::default()).collect(),
            searching: NOBODY,
            wrong: false,
        }]
    }

    fn actions(&self, s: &State, steps: &mut Vec<Step>) {
        for id in s.ids() {
            let agent = s.agent(id);
            let owns = |word: usize| s.owners[word] == id;
            match (&agent.at, agent.waits) {
                (At::Js, _) => {
                    steps.extend((0..self.words).filter(|word| !owns(*word)).map(|word| Step::Lock(id, word)));
                    steps.extend((0..self.words).filter(|word| owns(*word)).map(Step::Unlock));
                }
                (At::Suspicious, _) if s.searching == NOBODY || self.has(Fault::SearchesBesideOthers) => {
                    steps.push(Step::Search(id));
                }
                (At::Queued | At::Searching(_) | At::Found, _) => steps.push(Step::Search(id)),
                (At::Asleep, Some(word)) if owns(word) => steps.push(Step::Wake(id)),
                _ => {}
            }
            if agent.waits.is_some_and(|word| s.owners[word] == NOBODY) {
                steps.push(Step::Grant(id));
            }
        }
    }

    fn next_state(&self, before: &State, step: Step) -> Option<State> {
        let mut s = before.clone();
        match step {
            Step::Lock(id, word) => self.lock(&mut s, id, word),
            Step::Unlock(word) => s.owners[word] = NOBODY,
            Step::Grant(id) => {
                let word = s.agent(id).waits?;
                s.owners[word] = id;
            }
            Step::Wake(id) => {
                s.agent_mut(id).waits = None;
                s.agent_mut(id).at = At::Js;
                s.note(id, false);
            }
            Step::Search(id) => self.search(&mut s, id),
        }
        Some(s)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("no cycle is reported that is none", |_, s: &State| !s.wrong),
            Property::always("no silent deadlock", |_, s: &State| {
                let searches = s.agents.iter().any(|agent| !matches!(agent.at, At::Js | At::Asleep));
                searches || !s.ids().any(|id| s.is_in_cycle(id))
            }),
        ]
    }
}

impl Protocol for Deadlock {
    type Waiter = ();

    fn name(&self) -> &str {
        &self.name
    }

    fn show(&self, s: &State) -> String {
        let agents: Vec<String> =
            s.ids().map(|id| format!("{id} {:?} for {:?}", s.agent(id).at, s.agent(id).waits)).collect();
        format!("{:?} | {}", s.owners.as_slice(), agents.join(" | "))
    }
}
