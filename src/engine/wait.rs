//! The end of a wait, and the calls that it makes meanwhile.

use std::time::Instant;

use super::deadlock::Hop;
use super::primitive::Corrupt;
use super::waiter::Settlement;
use crate::agents::AgentId;

/// The outcome of a wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// With what it was for.
    Granted {
        /// The agent whose thread ended inside, which this agent has to report.
        abandoned_by: Option<AgentId>,
        /// The state that it found when it was let in: the first number of [`super::Primitive::found`].
        found: u32,
    },
    /// There was nothing to wait for: the value was another.
    Refused {
        /// The state that it found then: the second number of [`super::Primitive::found`].
        found: u32,
    },
    /// Without: it was held, or reserved, or the time was over.
    TimedOut,
}

impl Outcome {
    /// With what it was for, and nothing to report.
    pub const GRANTED: Self = Self::granted(None);

    /// With what it was for, of what has nothing to find.
    pub const fn granted(abandoned_by: Option<AgentId>) -> Self {
        Self::Granted { abandoned_by, found: 0 }
    }
}

impl Settlement {
    /// Returns the ended agent that its code has to report.
    pub(super) const fn report(self) -> Option<AgentId> {
        match self {
            Self::Granted { abandoned_by, .. } => abandoned_by,
            _ => None,
        }
    }

    /// Returns the outcome of the wait, for its code.
    pub(super) fn outcome(self) -> Result<Outcome, Corrupt> {
        match self {
            Self::Granted { abandoned_by, found } => Ok(Outcome::Granted { abandoned_by, found }),
            Self::Refused { found } => Ok(Outcome::Refused { found }),
            Self::Notified(_) => Ok(Outcome::GRANTED),
            Self::Corrupt => Err(Corrupt),
            Self::Expired => Ok(Outcome::TimedOut),
        }
    }
}

/// Why a blocking call failed.
#[derive(Debug)]
pub enum Failure {
    /// The words hold what this package did not write.
    Corrupt,
    /// The wait could never end: who waits for what, beginning with this thread.
    Deadlock(Vec<Hop>),
    /// The pause between two slices returned that the thread is to end.
    Interrupted,
}

impl From<Corrupt> for Failure {
    fn from(_: Corrupt) -> Self {
        Self::Corrupt
    }
}

/// The caller of a verb that blocks; a closure that only pauses will do.
pub trait Caller {
    /// Called between two slices; false: the thread is to end. It may take as long as it likes, and may call the engine.
    fn pause(&mut self) -> bool;

    /// Whether the code that waits can still go on: asked once when another thread has settled its wait, before it returns.
    /// False: the end of the thread had begun, so that its code will never have what it got.
    fn goes_on(&mut self) -> bool {
        self.pause()
    }

    /// The thread has queued for what `owner` holds (0: nobody alone), and found this then: the first number of
    /// [`super::Primitive::found`].
    fn queued(&mut self, owner: AgentId, found: u32, since: Instant) {
        let _ = (owner, found, since);
    }
}

impl<F: FnMut() -> bool> Caller for F {
    fn pause(&mut self) -> bool {
        self()
    }
}
