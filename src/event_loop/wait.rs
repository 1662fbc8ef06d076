//! What an event loop keeps of a pending wait.

use crate::agent::AgentId;
use crate::location::Location;
use crate::lot::line::Told;
use crate::lot::list::NodeId;
use crate::shared_word::SharedWord;

/// A pending wait, as its thread's table has it.
pub(super) struct Wait {
    pub(super) place: Place,
    pub(super) node: NodeId,
    pub(super) serial: u64,
    pub(super) has_deadline: bool,
    /// A notification stays its own until [`EventLoop::accept`]: it has a word to lock first.
    pub(super) keeps: bool,
}

/// Where a wait stands.
#[derive(Clone, Copy)]
pub(super) enum Place {
    /// In the queue of a word.
    Queue(SharedWord),
    /// In the line of a location.
    Line(Location),
}

impl Place {
    pub(super) fn address(self) -> usize {
        match self {
            Self::Queue(word) => word.address(),
            Self::Line(location) => location.address(),
        }
    }
}

/// What was answered last, and may have to be given back.
pub(super) enum Unaccepted {
    Hold {
        word: SharedWord,
        abandoned_by: Option<AgentId>,
    },
    Notification {
        address: usize,
        told: Told,
    },
    /// Still in the table, and in the slab of its line.
    Kept {
        token: u32,
    },
}
