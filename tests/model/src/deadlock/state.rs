//! Words, threads, and how far each search has come.

use arrayvec::ArrayVec;

use crate::primitives::Id;

pub const MOST_AGENTS: usize = 3;
pub const MOST_WORDS: usize = 3;

/// A thread that waits, and for which word.
pub type Hop = (Id, usize);

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Search {
    /// Whose obstacle is looked for.
    pub at: Id,
    /// The word that it waits for.
    pub word: usize,
    /// The owner that was read, whose own wait is to be read next.
    pub owner: Option<Id>,
    pub hops: ArrayVec<Hop, MOST_AGENTS>,
    /// The cycle that the first walk found.
    pub first: Option<ArrayVec<Hop, MOST_AGENTS>>,
    /// One bit for each thread whose wait is no longer the one that the search read. (In the library, a new serial.)
    pub changed: u8,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum At {
    #[default]
    Js,
    /// Queued, and about to look for a cycle.
    Queued,
    /// The one that it waits for is blocked too: it searches as soon as nobody else does.
    Suspicious,
    Searching(Search),
    /// It has walked twice, and is about to learn of the cycle.
    Found,
    Asleep,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Agent {
    pub at: At,
    /// The word that it is queued for.
    pub waits: Option<usize>,
    /// The part of that which others can read.
    pub noted: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    pub owners: ArrayVec<Id, MOST_WORDS>,
    pub agents: ArrayVec<Agent, MOST_AGENTS>,
    /// The thread that searches: one at a time.
    pub searching: Id,
    /// A cycle was reported that was none.
    pub wrong: bool,
}

agents!(State, Agent);

impl State {
    /// Returns what others read of a thread's wait.
    pub fn blockage(&self, id: Id) -> Option<usize> {
        self.agent(id).waits.filter(|_| self.agent(id).noted)
    }

    /// A thread's wait begins or ends: whoever has read it before will see another serial.
    pub fn note(&mut self, id: Id, noted: bool) {
        self.agent_mut(id).noted = noted;
        for agent in &mut self.agents {
            if let At::Searching(search) = &mut agent.at {
                search.changed |= 1 << id;
            }
        }
    }

    /// Whether it waits, through others, for itself, now.
    pub fn is_in_cycle(&self, me: Id) -> bool {
        let mut at = me;
        for _ in 0..self.agents.len() {
            let Some(word) = self.agent(at).waits else { return false };
            at = self.owners[word];
            if at == 0 {
                return false;
            }
            if at == me {
                return self.agent(me).waits.is_some_and(|word| self.owners[word] != me);
            }
        }
        false
    }
}
