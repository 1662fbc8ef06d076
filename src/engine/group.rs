//! The asynchronous waiters of one event loop in the queue of one primitive.

use std::sync::Arc;

use super::limit::Limit;
use super::list::{List, WaiterId};
use super::parker::Parker;
use super::passes::Ticket;
use super::waiter::Waiters;
use crate::agents::Agent;

/// The asynchronous waiters of one event loop.
pub struct LoopGroup {
    /// Whose they are.
    pub agent: Arc<Agent>,
    pub(super) waiters: List,
    /// The number of them that wait for ever.
    endless: usize,
    /// The number of them that a signal may abort.
    revocable: usize,
    /// The ticket of the first of them.
    pub(super) head_ticket: Ticket,
    /// The loop's present activity.
    pub turn: Turn,
}

/// The present activity of an event loop that waits.
pub enum Turn {
    /// It knows of nothing.
    Idle,
    /// An offer is in its inbox, or about to be.
    Offered,
    /// As `Offered`; it came in vain before, and nothing has been reserved for it since.
    Owed,
    /// It came and could not be let in: the next release reserves for it.
    Claimed,
    /// It came, could not be let in, and sleeps for a moment, to be handed over to directly.
    Parked(Arc<Parker>),
}

impl LoopGroup {
    /// Makes the group of a loop whose first waiter has this ticket, and is about to be put in.
    pub(super) fn new(agent: Arc<Agent>, head_ticket: Ticket) -> Self {
        Self { agent, waiters: List::EMPTY, endless: 0, revocable: 0, head_ticket, turn: Turn::Idle }
    }

    /// Its first waiter; a group is never empty.
    pub fn first(&self) -> WaiterId {
        self.waiters.first().expect("a loop group is never empty")
    }

    /// Whether it was offered what was free, and has not come since.
    pub fn has_not_come(&self) -> bool {
        matches!(self.turn, Turn::Offered | Turn::Owed)
    }

    /// Whether it came, could not be let in, and has been offered nothing since.
    pub fn has_come_in_vain(&self) -> bool {
        matches!(self.turn, Turn::Claimed | Turn::Parked(_))
    }

    /// Whether any of them waits for as long as nobody takes it back, which a signal may do if `revocable`.
    pub fn anybody_lasts(&self, revocable: bool) -> bool {
        self.endless > 0 || revocable && self.revocable > 0
    }

    /// One of them came, or left.
    pub(super) fn count(&mut self, limit: Limit, change: impl Fn(usize) -> usize) {
        match limit {
            Limit::Endless => self.endless = change(self.endless),
            Limit::Revocable => self.revocable = change(self.revocable),
            Limit::Until(_) | Limit::Once => {}
        }
    }

    /// Whether it counts right.
    #[cfg(feature = "audit")]
    pub(super) fn counts(&self, waiters: &Waiters) -> bool {
        let count = |limit| self.waiters(waiters).filter(|id| waiters[*id].limit == limit).count();
        (count(Limit::Endless), count(Limit::Revocable)) == (self.endless, self.revocable)
    }

    /// All of them, in order.
    pub fn waiters<'w>(&self, waiters: &'w Waiters) -> impl Iterator<Item = WaiterId> + use<'w> {
        self.waiters.iter(waiters)
    }
}
