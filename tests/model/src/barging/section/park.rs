//! A blocked thread comes when woken, leaves for JavaScript between slices, gives up at its deadline.

use super::Locked;
use crate::barging::agent::{At, Id};
use crate::barging::fault::Fault;
use crate::barging::queue::Way;

impl Locked<'_> {
    pub(super) fn woken(&mut self, id: Id) {
        if self.try_to_take(id) {
            return;
        }
        if let Some(waiter) = self.state.queue.find_mut(id, Way::Blocked) {
            waiter.woken = false;
        }
        if self.protocol.has(Fault::LoserRequeues)
            && let Some(waiter) = self.state.queue.remove(id, Way::Blocked)
        {
            self.state.queue.push(waiter);
        }
    }

    pub(super) fn deadline(&mut self, id: Id) {
        self.state.agent_mut(id).at = At::Js;
        self.leave(id, Way::Blocked);
    }

    /// A wake-up is used up before the thread goes where nobody can count on it. If it does not win the lock, the word is
    /// held or reserved, and by the closing rule W is set: nobody else needs to be woken.
    pub(super) fn slice_over(&mut self, id: Id) {
        let woken = self.state.queue.find(id, Way::Blocked).is_some_and(|w| w.woken);
        if woken && self.try_to_take(id) {
            return;
        }
        if let Some(waiter) = self.state.queue.find_mut(id, Way::Blocked) {
            waiter.woken = false;
            waiter.away = true;
        }
        self.state.agent_mut(id).at = At::Away;
    }

    /// The thread looks for itself, since nobody woke it while it was away.
    pub(super) fn back(&mut self, id: Id) {
        if let Some(waiter) = self.state.queue.find_mut(id, Way::Blocked) {
            waiter.away = false;
        }
        if self.protocol.has(Fault::BackWithoutLooking) || !self.try_to_take(id) {
            self.state.agent_mut(id).at = At::Parked;
        }
    }

    /// As an arrival would, except that it is in the queue already.
    fn try_to_take(&mut self, id: Id) -> bool {
        self.free_dead_owner();
        let open = self.state.word.is_open();
        if open {
            self.state.queue.remove(id, Way::Blocked);
            self.take(id);
        }
        open
    }
}
