//! Waiting for a notification at any element of shared memory: the core of `wait`, `notify` and `waitAsync`. And in a table of their
//! own, at a word of the core: the waits for what is kept outside of the process (see `clients/outer.rs`).
//!
//! It has no words of its own. Between the comparison of the value and the place in the queue nobody can notify, since both
//! happen under the lock that a notification takes.
//!
//! A waiter that was notified has the notification, whatever comes later: its deadline, an abort. Only the end of its
//! thread, before its code could know of it, passes the notification on, to the first of those who were in the queue when
//! it was given: as if the thread that ended had never waited.

use crate::agents::AgentId;
use crate::engine::{About, Corrupt, Decision, Facts, Hold, Order, Primitive, Request, Space, State};
use crate::memory::Place;

/// An element that threads wait at.
pub struct Futex(&'static About);

/// An element of the program's. The name is of what waits there, in the package's words: `wait()` waits as one does for a condition.
pub static FUTEX: Futex =
    Futex(&About { name: "Condition", order: Order::Notified, space: Space::Notifications, registered: None });

/// A word of a request to an outsider, who settles its wait.
pub static OUTER: Futex =
    Futex(&About { name: "HeldLock", order: Order::Notified, space: Space::Outer, registered: None });

impl Primitive for Futex {
    fn about(&self) -> &'static About {
        self.0
    }

    /// The bucket's lock is all that there is to freeze.
    fn freeze(&self, place: Place, _: &Facts<'_>) -> Result<State, Corrupt> {
        Ok(self.read(place))
    }

    fn thaw(&self, _: Place, _: State, _: State, _: bool) {}

    fn read(&self, place: Place) -> State {
        State(place.value() as u64)
    }

    fn enter(&self, State(value): State, request: Request, _: AgentId, _: bool) -> Decision {
        match request {
            Request::NotificationWhile(expected) if value as i64 == expected || fault!(ValueIsNotCompared) => {
                Decision::Wait
            }
            Request::Notification => Decision::Wait,
            Request::NotificationWhile(_) | Request::Hold(_) => Decision::Refused,
        }
    }

    fn grant(&self, _: State, _: Hold, _: AgentId) -> Option<State> {
        None
    }

    fn release(&self, _: State, _: Hold, _: AgentId) -> Option<State> {
        None
    }

    fn is_waiting(&self, _: State) -> bool {
        true
    }
}
