//! Everything that the engine and its threads remember, and a few ghosts that only the checks look at.

use arrayvec::ArrayVec;

use super::step::{Section, Way};
use crate::primitives::{Id, Request, Word};

pub const MOST_AGENTS: usize = 4;
pub const MOST_WORDS: usize = 2;

/// A thread says in its slot that it is about to change the word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Intent {
    #[default]
    None,
    Acquire,
    Release,
}

/// The holds of one word in a thread's register.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Slot {
    pub count: u8,
    pub intent: Intent,
}

/// The stage of a fast path, after its first step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// The slot has its mark: next, the word.
    Change,
    /// The word has changed; next, the slot. (It said W.)
    Settle(bool),
    /// The word has not changed: next, the mark is taken back.
    Undo,
    /// The word lets readers in: next, the slot.
    Count,
    /// The slot has changed: next, a look at the word.
    Look,
    /// The word did not let the reader in: next, the slot is taken back.
    BackOff,
}

/// A request to native code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verb {
    Acquire(Way),
    Try,
    Release,
    /// The word has changed already: whose turn is it?
    HandOff,
    /// Downgrade, or an upgrade that is tried: by how it holds.
    ChangeMode,
    /// The function that runs once is done.
    Finish,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum At {
    /// In JavaScript, or idle in the event loop.
    #[default]
    Js,
    /// In the middle of a fast path.
    Fast(usize, Request, Verb, Stage),
    /// The fast path has failed; the native call has not reached the bucket yet.
    Calling(usize, Request, Verb),
    /// Blocked, for this word.
    Parked(usize),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Life {
    #[default]
    Running,
    /// Leaves queues, passes on grants, gives back what its register says.
    Leaving,
    /// Says to all that it is dead.
    Marking,
    /// Frees the words that it owned; this one is next.
    Scanning(usize),
    Gone,
}

/// The dealings of one agent with one word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Part {
    /// Its code runs with this.
    pub inside: Option<Request>,
    pub slot: Slot,
    /// Granted by another thread, and its own does not know of it yet.
    pub granted: Option<(Way, Request)>,
    /// An offer is on its way to the loop, which has not come since.
    pub offered: bool,
    /// It came in vain, and nothing has been kept for it since.
    pub claimed: bool,
    /// The register has been given back.
    pub given_back: bool,
    /// Ghost: units of the word that the thread has taken and not given back.
    pub has: u8,
    /// Ghost: when its thread ended, what it had was in doubt.
    pub in_doubt: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Agent {
    pub life: Life,
    pub at: At,
    pub stalled: bool,
    /// Its stall is over, and it turns before it stalls again: time without a turn is one stall, not many.
    pub resumed: bool,
    pub parts: [Part; MOST_WORDS],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Waiter {
    pub word: usize,
    pub agent: Id,
    pub way: Way,
    pub request: Request,
    pub woken: bool,
    pub aged: bool,
    /// Between two slices, in JavaScript, perhaps for ever: nobody counts on it.
    pub away: bool,
}

/// A section between its beginning and its end: the words that it decides on, and what the slots said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Frozen {
    pub section: Section,
    pub read: Word,
    /// Only under a fault: the slots summed before the word was marked.
    pub sum: Option<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wrong {
    Overtaken,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    pub words: ArrayVec<Word, MOST_WORDS>,
    pub reserved_for: [Id; MOST_WORDS],
    /// The request of that loop then.
    pub kept: [Request; MOST_WORDS],
    /// All waiters of all words, in the order in which they came.
    pub queue: ArrayVec<Waiter, 6>,
    pub agents: ArrayVec<Agent, MOST_AGENTS>,
    pub frozen: Option<Frozen>,
    pub deaths: u8,
    /// Ghost: somebody has finished what runs once.
    pub finished: bool,
    pub wrong: Option<Wrong>,
}

impl Part {
    /// Its loop came for what it was offered, could not be let in, and has been offered nothing since.
    pub fn has_come_in_vain(&self) -> bool {
        self.claimed && !self.offered
    }
}

impl Agent {
    pub fn is_running(&self) -> bool {
        self.life == Life::Running
    }

    /// Whether its event loop is sure to turn again.
    pub fn turns(&self) -> bool {
        self.is_running() && !self.stalled && !matches!(self.at, At::Parked(_))
    }

    pub fn is_marked_dead(&self) -> bool {
        matches!(self.life, Life::Scanning(_) | Life::Gone)
    }
}

agents!(State, Agent);

impl State {
    pub fn part(&self, id: Id, word: usize) -> &Part {
        &self.agent(id).parts[word]
    }

    pub fn part_mut(&mut self, id: Id, word: usize) -> &mut Part {
        &mut self.agent_mut(id).parts[word]
    }

    pub fn place(&self, id: Id, word: usize) -> Option<usize> {
        self.queue.iter().position(|w| w.agent == id && w.word == word)
    }

    pub fn waiters(&self, word: usize) -> impl Iterator<Item = &Waiter> {
        self.queue.iter().filter(move |w| w.word == word)
    }

    /// The readers that slots count, or that are granted and not in their slots yet (`grants`).
    pub fn sum_of_slots(&self, word: usize, grants: bool) -> u8 {
        let granted = |part: &Part| matches!(part.granted, Some((_, Request::Shared))) && grants;
        self.agents.iter().map(|a| a.parts[word].slot.count + u8::from(granted(&a.parts[word]))).sum()
    }
}
