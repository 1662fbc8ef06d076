//! Waiting for a notification at any element of shared memory: the core of `wait`, `notify` and `waitAsync`.
//!
//! It has no words of its own. Between the comparison of the value and the place in the queue nobody can notify, since both
//! happen under the lock that a notification takes.
//!
//! A waiter that was notified has the notification, whatever comes later: its deadline, an abort. Only the end of its
//! thread, before its code could know of it, passes the notification on, to the first of those who were in the queue when
//! it was given: as if the thread that ended had never waited.

use std::sync::Arc;

use crate::agents::{Agent, AgentId};
use crate::engine::{
    Blockers, Caller, Corrupt, Engine, Entry, EventLoop, Facts, Failure, Hold, Limit, Order, Outcome, Primitive, Reply,
    ReplyError, Request, Space, State, Wakes,
};
use crate::memory::Place;

/// An element that threads wait at.
pub struct Futex;

/// The one that there need be.
pub static FUTEX: Futex = Futex;

impl Primitive for Futex {
    fn name(&self) -> &'static str {
        // Of what waits there, in the package's words: `wait()` waits as one does for a condition.
        "Condition"
    }

    fn order(&self) -> Order {
        Order::Notified
    }

    fn space(&self) -> Space {
        Space::Notifications
    }

    /// The bucket's lock is all that there is to freeze.
    fn freeze(&self, place: Place, _: &Facts<'_>) -> Result<State, Corrupt> {
        Ok(self.read(place))
    }

    fn thaw(&self, _: Place, _: State, _: State, _: bool) {}

    fn read(&self, place: Place) -> State {
        State(place.value() as u64)
    }

    fn enter(&self, State(value): State, request: Request, _: AgentId, _: bool) -> Entry {
        match request {
            Request::NotificationWhile(expected) if value as i64 == expected || fault!(ValueIsNotCompared) => {
                Entry::Wait
            }
            Request::Notification => Entry::Wait,
            Request::NotificationWhile(_) | Request::Hold(_) => Entry::Refused,
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

    fn blockers(&self, _: State) -> Blockers {
        Blockers::Anybody
    }
}

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
        let mut contents = self.contents(FUTEX.space(), address);
        let notified = contents.notify(address, count, &mut wakes);
        contents.forget_if_empty(address);
        drop(contents);
        wakes.carry_out(&*self.timers);
        notified
    }

    /// How many wait at `place`, for tests and diagnosis.
    pub fn waiting(&self, place: Place) -> usize {
        let contents = self.contents(FUTEX.space(), place.address());
        contents.queues.get(&place.address()).map_or(0, |queue| queue.tickets(&contents.waiters).count())
    }
}

impl EventLoop<'_> {
    /// Waits at `place` for a notification if it holds `value`.
    pub fn wait_while(&mut self, place: Place, value: i64, limit: Limit) -> Result<Reply, ReplyError> {
        self.wait(&FUTEX, place, Request::NotificationWhile(value), limit)
    }
}
