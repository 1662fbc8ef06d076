//! The entries of the name, the threads, and a few ghosts that only the checks look at.

use arrayvec::ArrayVec;

use crate::primitives::Id;

pub const MOST_AGENTS: usize = 4;

/// A request: whose, and which of its requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ask {
    pub agent: Id,
    pub generation: u8,
    pub shares: bool,
}

/// The entry that the name stands for, while it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Entry {
    /// The number of requests that keep it; 0: it is free to be another.
    pub references: u8,
    pub marked: bool,
    pub holders: ArrayVec<Ask, MOST_AGENTS>,
    pub queue: ArrayVec<Ask, MOST_AGENTS>,
}

impl Entry {
    pub fn lets_in(&self, ask: Ask) -> bool {
        self.holders.is_empty() || ask.shares && self.holders.iter().all(|holder| holder.shares)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum At {
    #[default]
    Js,
    /// It has found the entry and has not asked yet.
    Found,
    /// It is queued, or was granted what it does not know of.
    Waiting,
    /// Its code runs with the name.
    Inside,
    /// Its request is over, and keeps the entry still.
    Over,
    /// It ends, and what it has or asks for is still there.
    Dying,
    /// ... only its reference is.
    Dead,
    Gone,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Agent {
    pub at: At,
    /// The entry that its request keeps.
    pub entry: usize,
    /// The number of its request; how many it has made.
    pub generation: u8,
    /// Which of its requests have lost the name, as it has yet to hear.
    pub inbox: ArrayVec<u8, 4>,
    /// Ghost: what it was at when it began to end.
    pub ended_at: At,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    pub entries: ArrayVec<Entry, MOST_AGENTS>,
    /// The entry that the name stands for.
    pub known: Option<usize>,
    pub agents: ArrayVec<Agent, MOST_AGENTS>,
    pub deaths: u8,
    /// Ghost: somebody ended inside, or was robbed.
    pub has_been_left: bool,
    /// Ghost: somebody got in though others waited.
    pub overtaken: bool,
}

agents!(State, Agent);

impl State {
    /// Whether the agent's present request is among the holders of its entry.
    pub fn holds(&self, id: Id) -> bool {
        let agent = self.agent(id);
        let is_mine = |ask: &Ask| ask.agent == id && ask.generation == agent.generation;
        self.entries[agent.entry].holders.iter().any(is_mine)
    }
}
