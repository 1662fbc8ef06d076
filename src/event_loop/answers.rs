//! What an event loop answers: at once, and when a wait is over.

use std::io;

use crate::futex::Outcome;
use crate::location::Location;
use crate::mutex::{Attempt, Refusal};
use crate::shared_word::SharedWord;

/// What came of a request to lock, or to wait, without blocking.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Request<T = Attempt> {
    /// Settled at once.
    Now(T),
    /// To be settled by [`EventLoop::next_settled`] under this token.
    Pending(u32),
}

/// Why a request was refused.
#[derive(Debug)]
pub enum RequestError {
    /// The word holds what no sablock wrote.
    Corrupt,
    /// The thread that watches the deadlines could not be started.
    NoClock(io::Error),
}

/// Why a thread could not free a word and wait in one step; nothing was changed.
#[derive(Debug)]
pub enum UnlockedError {
    /// It did not hold the word in this way.
    Refused(Refusal),
    /// The thread that watches the deadlines could not be started.
    NoClock(io::Error),
}

/// A wait that is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Settled {
    /// It was for a lock.
    Lock {
        /// Which; free to be given out again.
        token: u32,
        /// For what.
        word: SharedWord,
        /// How it ended. `None`: its word was overwritten by somebody else.
        attempt: Option<Attempt>,
    },
    /// It was for a notification.
    Wait {
        /// Which; free to be given out again.
        token: u32,
        /// Where.
        location: Location,
        /// How it ended.
        outcome: Outcome,
    },
}

impl Settled {
    /// Which; free to be given out again.
    pub fn token(&self) -> u32 {
        let (Self::Lock { token, .. } | Self::Wait { token, .. }) = self;
        *token
    }

    /// What keeps its memory may be let go of.
    pub fn address(&self) -> usize {
        match self {
            Self::Lock { word, .. } => word.address(),
            Self::Wait { location, .. } => location.address(),
        }
    }
}
