//! The limit of the time that a wait may take.

use std::time::{Duration, Instant};

use crate::sync;

/// The time that a wait may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// One try, no wait.
    Once,
    /// Until then.
    Until(Instant),
    /// For ever.
    Endless,
    /// For ever, unless the code that waits takes it back: a signal may abort it.
    Revocable,
}

impl Limit {
    /// Until `time` from now; for ever if no clock can count that far.
    pub fn after(time: Duration) -> Self {
        sync::now().checked_add(time).map_or(Self::Endless, Self::Until)
    }

    /// Until when; `None`: for ever.
    pub fn deadline(self) -> Option<Instant> {
        match self {
            Self::Once => Some(sync::now()),
            Self::Until(at) => Some(at),
            Self::Endless | Self::Revocable => None,
        }
    }
}
