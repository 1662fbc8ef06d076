//! The replies to an event loop's requests and waits.

use std::io;

use super::primitive::Corrupt;
use super::wait::Outcome;
use crate::agents::AgentId;
use crate::memory::Place;

/// The reply to a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reply {
    /// Settled at once.
    Now(Outcome),
    /// Queued, to be settled by [`super::EventLoop::next_settled`].
    Pending {
        /// By which the loop knows the wait.
        token: u32,
        /// The agent that held it alone then; 0 for nobody.
        owner: AgentId,
        /// The state that it found then: the first number of [`super::Primitive::found`].
        found: u32,
    },
}

/// Why a request was refused; nothing was changed.
#[derive(Debug)]
pub enum ReplyError {
    /// The words hold what this package did not write.
    Corrupt,
    /// The hold to be released is not held in this way.
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
    /// The outcome of the wait.
    pub outcome: Result<Outcome, Corrupt>,
}
