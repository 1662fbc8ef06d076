//! Notifications: whoever waits for one is let in by it only, whatever the place holds.

use super::primitive::Space;
use super::queue::{Queue, Settlement};
use super::table::Engine;
use super::wakes::Wakes;
use crate::memory::Place;

impl Engine {
    /// Notifies the first `count` who wait at `place`, in the order in which they came, whether blocked or asynchronous;
    /// returns how many there were.
    pub fn notify(&self, place: Place, count: usize) -> usize {
        let address = place.address();
        let mut wakes = Wakes::default();
        let mut contents = self.contents(Space::Notifications, address);
        let next_ticket = contents.next_ticket;
        let mut notified = 0;
        while notified < count
            && let Some((queue, waiters)) = contents.queue(address)
            && let Some(first) = queue.first(waiters)
        {
            let ticket = waiters[first].ticket();
            if count - notified < queue.len() {
                queue.notified(ticket, next_ticket);
            }
            contents.settle(address, first, Settlement::Notified(ticket), &mut wakes);
            notified += 1;
        }
        contents.forget_if_empty(address);
        drop(contents);
        wakes.carry_out(&*self.timers);
        notified
    }

    /// The number of waits at `place`, for tests and diagnosis.
    pub fn waiting(&self, place: Place) -> usize {
        let contents = self.contents(Space::Notifications, place.address());
        contents.queues.get(&place.address()).map_or(0, Queue::len)
    }
}
