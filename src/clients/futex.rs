//! To wait while a value is what it was, and to notify whoever waits: what `wait()`, `notify()` and `waitAsync()` do.

use std::sync::Arc;

use crate::agents::Agent;
use crate::engine::queue::Settlement;
use crate::engine::{
    Caller, Client, Engine, EventLoop, Failure, Limit, Outcome, Reply, ReplyError, Request, Space, Wakes,
};
use crate::memory::Place;
use crate::primitives::futex::FUTEX;

impl Engine {
    /// Waits at `place` while it holds `value`; see [`Engine::wait`].
    pub fn wait_while(
        &self,
        agent: &Arc<Agent>,
        place: Place,
        value: i64,
        limit: Limit,
        caller: &mut dyn Caller,
    ) -> Result<Outcome, Failure> {
        self.wait(agent, &FUTEX, place, Request::NotificationWhile(value), limit, caller)
    }

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
        contents.queues.get(&place.address()).map_or(0, |queue| queue.tickets(&contents.waiters).count())
    }
}

impl<C: Client> EventLoop<'_, C> {
    /// Waits at `place` for a notification if it holds `value`.
    pub fn wait_while(&mut self, place: Place, value: i64, limit: Limit) -> Result<Reply, ReplyError> {
        self.wait(&FUTEX, place, Request::NotificationWhile(value), limit)
    }
}
