//! One waiter of a queue: a blocked thread, or a pending promise.

use std::sync::Arc;
use std::time::Instant;

use super::arena::Arena;
use super::expiry::Expiry;
use super::limit::Limit;
use super::list::{Linked, Links, WaiterId};
use super::parker::Parker;
use super::passes::Ticket;
use super::primitive::Hold;
use crate::agents::AgentId;

/// All waiters of a bucket.
pub type Waiters = Arena<Waiter>;

/// One waiter.
pub struct Waiter {
    ticket: Ticket,
    links: Links,
    /// When it came.
    pub since: Instant,
    /// The hold that it waits for; `None`: it waits for a notification.
    pub hold: Option<Hold>,
    /// The agent that waits.
    pub agent: AgentId,
    /// The time that it may wait.
    pub limit: Limit,
    /// The way in which it waits.
    pub kind: Kind,
    /// The settlement by which another thread ended its wait.
    pub settlement: Option<Settlement>,
}

/// The two ways to wait.
pub enum Kind {
    /// A thread sleeps.
    Blocked {
        /// The parker in which it sleeps.
        parker: Arc<Parker>,
        /// It was woken and will come.
        woken: bool,
        /// It is inside a call into JS, which may take for ever: nobody may count on it.
        away: bool,
        /// The waiter for an exclusive hold for ever that came last before it; it may be gone.
        behind: Option<(Ticket, WaiterId)>,
    },
    /// A promise is pending.
    Async {
        /// Its number in its agent's table of waits.
        token: u32,
        /// The holds that go back as well when its time is over.
        beside: Option<Arc<dyn Expiry>>,
    },
}

/// The settlement by which another thread ended a wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Settlement {
    /// The hold that it asked for is its own.
    Granted {
        /// The agent whose thread ended inside, which it has to report.
        abandoned_by: Option<AgentId>,
        /// The state that it found when it was let in: the first number of [`super::primitive::Primitive::found`].
        found: u32,
    },
    /// There is nothing to wait for any more.
    Refused {
        /// The state that it found when that came to be: the second number of [`super::primitive::Primitive::found`].
        found: u32,
    },
    /// It was notified, under this ticket.
    Notified(Ticket),
    /// The words of its primitive were overwritten.
    Corrupt,
    /// Its time was over: it has left the queue, with nothing.
    Expired,
}

impl Linked for Waiter {
    fn links(&self) -> Links {
        self.links
    }

    fn links_mut(&mut self) -> &mut Links {
        &mut self.links
    }
}

impl Waiter {
    /// Its place in the order in which waiters came.
    pub fn ticket(&self) -> Ticket {
        self.ticket
    }

    /// Whether it waits to hold it alone.
    pub fn is_exclusive(&self) -> bool {
        self.hold.is_some_and(Hold::is_exclusive)
    }

    /// Whether a thread sleeps; else a promise is pending.
    pub fn is_blocking(&self) -> bool {
        matches!(self.kind, Kind::Blocked { .. })
    }
}

/// A waiter that is about to be queued.
pub struct Arrival {
    /// Its ticket: greater than that of everybody in the bucket.
    pub ticket: Ticket,
    /// When it came.
    pub since: Instant,
    /// The hold that it waits for.
    pub hold: Option<Hold>,
    /// The time that it may wait.
    pub limit: Limit,
}

impl Arrival {
    pub(super) fn waiter(self, agent: AgentId, kind: Kind) -> Waiter {
        let Self { ticket, since, hold, limit } = self;
        Waiter { ticket, links: Links::NONE, since, hold, agent, limit, kind, settlement: None }
    }
}
