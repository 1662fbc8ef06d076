//! Everything that the protocol remembers, and a few ghosts that only the checks look at.

use arrayvec::ArrayVec;

use super::agent::{Agent, At, Group, Id, NOBODY, Thread};
use super::queue::{Queue, Way};
use super::scenario::MOST_AGENTS;
use super::step::Section;
use crate::primitives::Mutex;

/// The rest of what a thread has to do for the offers that it made under the bucket's lock, after it left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Outbox {
    /// One bit for each loop whose inbox still lacks the word.
    to: u8,
    /// The loop whose inbox has it now, and which may have to be called.
    pub ring: Id,
}

impl Outbox {
    pub fn is_done(&self) -> bool {
        self.to == 0 && self.ring == NOBODY
    }

    pub fn add(&mut self, group: Id) {
        self.to |= 1 << group;
    }

    pub fn includes(&self, group: Id) -> bool {
        self.ring == group || self.to & (1 << group) != 0
    }

    pub fn has_pushes(&self) -> bool {
        self.to != 0
    }

    /// Takes the next loop whose inbox lacks the word.
    pub fn next(&mut self) -> Id {
        let group = self.to.trailing_zeros() as Id;
        self.to &= self.to - 1;
        group
    }
}

/// A fault of a step rather than of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wrong {
    WaitersChangedPlaces,
    AsyncOvertookItsOwn,
    WarningMissing,
    WarningTwice,
    WarningForgotten,
}

/// The facts that the checks know and the protocol does not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Ghost {
    pub deaths: u8,
    /// Somebody died inside, and nobody has repaired the data since.
    pub dirty: bool,
    /// The agent that died inside, until the next holder has been warned.
    pub due: Id,
    pub wrong: Option<Wrong>,
}

/// A section between its beginning and its end, and the word that it decides on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Frozen {
    pub section: Section,
    pub word: Mutex,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    pub word: Mutex,
    pub queue: Queue,
    /// For whom F reserves the word.
    pub reserved_for: Id,
    /// A blocked waiter was given the lock a moment ago.
    pub cool: bool,
    /// Which blocked waiter looks on at the moment, as far as anybody can see.
    pub spinning: Id,
    /// The agent that died inside, until somebody takes the lock and with it the duty to warn.
    pub abandoned_by: Id,
    /// With split sections: who is between the freezing of the word and the rest of the section.
    pub bucket: Option<Frozen>,
    pub agents: ArrayVec<Agent, MOST_AGENTS>,
    /// Indexed by thread, the timer's first.
    pub outboxes: [Outbox; MOST_AGENTS + 1],
    pub ghost: Ghost,
}

agents!(State, Agent);

impl State {
    pub fn new(agents: usize) -> Self {
        State {
            word: Mutex::default(),
            queue: Queue::default(),
            reserved_for: NOBODY,
            cool: false,
            spinning: NOBODY,
            abandoned_by: NOBODY,
            bucket: None,
            agents: (0..agents).map(|_| Agent::default()).collect(),
            outboxes: Default::default(),
            ghost: Ghost::default(),
        }
    }

    pub fn group(&mut self, id: Id) -> &mut Group {
        &mut self.agent_mut(id).group
    }

    pub fn outbox(&mut self, thread: Thread) -> &mut Outbox {
        &mut self.outboxes[thread as usize]
    }

    pub fn owner_is_marked_dead(&self) -> bool {
        self.word.owner != NOBODY && self.agent(self.word.owner).marked
    }

    /// Whether this thread is in a bucket-locked section, or has offers to deliver: it does nothing else until then.
    pub fn is_occupied(&self, thread: Thread) -> bool {
        !self.outboxes[thread as usize].is_done() || self.is_in_section(thread)
    }

    pub fn is_in_section(&self, thread: Thread) -> bool {
        self.bucket.is_some_and(|frozen| frozen.section.thread() == thread)
    }

    /// Whether an offer that the flag speaks of will reach the loop.
    pub fn offer_is_in_flight(&self, id: Id) -> bool {
        let Agent { at, group, .. } = *self.agent(id);
        let drained = match at {
            At::Draining(taken) => taken + group.inbox > 0,
            At::Claiming(_) => true,
            _ => group.inbox > 0 && group.called,
        };
        drained || self.outboxes.iter().any(|e| e.includes(id))
    }

    /// The first of its loop's task numbers that does not wait.
    pub fn free_task(&self, id: Id, tasks: u8) -> Option<Way> {
        (1..=tasks).map(Way::Async).find(|way| self.queue.find(id, *way).is_none())
    }
}
