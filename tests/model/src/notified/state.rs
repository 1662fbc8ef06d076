//! The threads around a line, and its whole history.

use arrayvec::ArrayVec;

use super::line::{Line, Ticket};
use crate::primitives::{Id, Mutex};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum At {
    #[default]
    Js,
    /// It has seen the value, and does not stand in the line yet; only under a fault.
    Compared,
    /// It has freed the lock and does not stand in the line yet; only under a fault.
    Unlocked,
    /// It stands in the line and still holds the condition's lock.
    Queued,
    /// It waits, or was notified.
    Waiting,
    /// It has learned of its notification, or its time is over (false): it locks again.
    Relocking(bool),
    /// It has changed what others wait for, and notifies next.
    Changed,
    /// It holds the lock.
    Inside,
    Dying,
    Gone,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Agent {
    pub at: At,
    /// The number of times that it has done what it does.
    pub done: u8,
    /// The number of times that it has stood in the line.
    pub waits: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    pub line: Line,
    pub lock: Mutex,
    /// The value or the items that are waited for.
    pub value: u8,
    pub agents: ArrayVec<Agent, 5>,
    pub deaths: u8,
    /// Ghost: for each notification given, the next ticket at that time.
    pub given: ArrayVec<Ticket, 8>,
    /// Ghost: the tickets of those whose code has learned of a notification.
    pub learned: ArrayVec<Ticket, 8>,
    /// Ghost: somebody ended who knew of a notification, or held the lock, and did not act on it.
    pub excused: bool,
}

agents!(State, Agent);
