//! What an event loop's requests and waits come to.

use std::io;

use super::primitive::Corrupt;
use super::wait::Outcome;
use crate::agents::AgentId;
use crate::memory::Place;

/// What came of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reply {
    /// Settled at once.
    Now(Outcome),
    /// Queued, to be settled by [`super::EventLoop::next_settled`].
    Pending {
        /// By which the loop knows the wait.
        token: u32,
        /// Who held it alone then; 0 for nobody.
        owner: AgentId,
        /// What it found then: the first number of [`super::Primitive::found`].
        found: u32,
    },
}

/// Why a request was refused; nothing was changed.
#[derive(Debug)]
pub enum ReplyError {
    /// The words hold what this package did not write.
    Corrupt,
    /// What was to be released is not held in this way.
    NotHeld,
    /// The thread that watches the deadlines could not be started.
    NoClock(io::Error),
}

impl From<Corrupt> for ReplyError {
    fn from(_: Corrupt) -> Self {
        Self::Corrupt
    }
}

/// A wait that is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settled {
    /// Which; its number is used again.
    pub token: u32,
    /// For what.
    pub place: Place,
    /// Whether it was to hold something; else for a notification.
    pub is_for_hold: bool,
    /// How it ended.
    pub outcome: Result<Outcome, Corrupt>,
}
