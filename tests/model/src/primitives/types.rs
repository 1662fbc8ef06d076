//! The agents and their requests.

/// An agent's id. Ids start at 1.
pub type Id = u8;

/// No agent: the owner of a free word.
pub const NOBODY: Id = 0;

/// A request to a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Request {
    Exclusive,
    Shared,
    Permits(u8),
}

impl Request {
    /// Whether what it asks for comes back bit by bit, so that it has to be gathered.
    pub fn gathers(self) -> bool {
        matches!(self, Request::Permits(2..))
    }

    /// Returns how many of a word's units it takes; what an owner's id says counts for nothing here.
    pub fn count(self) -> u8 {
        match self {
            Request::Exclusive => 0,
            Request::Shared => 1,
            Request::Permits(permits) => permits,
        }
    }
}
