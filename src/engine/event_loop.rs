//! The asynchronous waits of one event loop: pending promises, claimed, collected and settled on the loop's own thread.
//!
//! A free lock is *offered* to the loop (a notice in its agent's inbox); the loop *claims* it here, where an abort, a
//! timeout and a claim cannot race. So a loop never holds a lock that its code does not know of. What another thread
//! settled (a notification, a grant in strict order) is collected here.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use super::arena::Arena;
use super::client::Client;
use super::expiry::Expiry;
use super::limit::Limit;
use super::primitive::{Hold, Order, Primitive, Request};
use super::queue::{Kind, Settlement, WaiterId};
use super::reply::{Reply, ReplyError};
use super::section::Section;
use super::stats::Leaving;
use super::table::Engine;
use super::wait::Outcome;
use crate::agents::{Agent, Notice};
use crate::memory::Place;
use crate::sync;

/// One event loop's waits. Lives and ends on its thread.
pub struct EventLoop<'e, C: Client = ()> {
    pub(super) engine: &'e Engine,
    pub(super) agent: Arc<Agent>,
    pub(super) waits: Arena<PendingWait<C::Of>>,
    /// The clients, which are asked what becomes of their waits.
    pub(crate) clients: C,
    /// Notices taken from the inbox and not yet dealt with.
    pub(super) notices: VecDeque<Notice>,
    /// The result that [`EventLoop::next_settled`] returned last, until it is called again: the thread's code may not know of it
    /// yet.
    pub(super) unaccepted: Option<Unaccepted<C::Of>>,
    /// Whether it has parked in this turn of its thread's loop.
    pub(super) has_parked: bool,
    /// When it last did.
    pub(super) last_park: Instant,
}

/// A pending wait.
pub(super) struct PendingWait<Of> {
    pub(super) primitive: &'static dyn Primitive,
    pub(super) place: Place,
    pub(super) hold: Option<Hold>,
    pub(super) waiter: WaiterId,
    /// The serial of its deadline, if it has one.
    pub(super) deadline: Option<u64>,
    /// The loop does not park for it.
    pub(super) stays_awake: bool,
    /// The delivery of its notification.
    pub(super) delivery: Delivery,
    /// Whose it is.
    pub(super) of: Of,
}

/// The delivery of the notification of a wait.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Delivery {
    /// It is collected when it is returned.
    AtOnce,
    /// It stays in the table until [`EventLoop::accept`]: the thread has a lock to take first.
    Kept,
    /// As `Kept`, and returned already: further notices are of earlier waits under this token.
    KeptAndReturned,
}

/// The result that was returned last, and may have to be passed on.
pub(super) enum Unaccepted<Of> {
    Settled {
        token: u32,
        wait: PendingWait<Of>,
        settlement: Settlement,
    },
    /// A client has it.
    Client,
    /// Still in the table.
    Kept {
        token: u32,
    },
}

impl<'e> EventLoop<'e> {
    /// For `agent`, on its thread.
    pub fn new(engine: &'e Engine, agent: Arc<Agent>) -> Self {
        Self::with_clients(engine, agent, ())
    }
}

impl<'e, C: Client> EventLoop<'e, C> {
    /// For `agent`, on its thread, with those who are asked what becomes of their waits.
    pub fn with_clients(engine: &'e Engine, agent: Arc<Agent>, clients: C) -> Self {
        Self {
            engine,
            agent,
            waits: Arena::default(),
            clients,
            notices: VecDeque::new(),
            unaccepted: None,
            has_parked: false,
            last_park: sync::now(),
        }
    }

    /// Whose loop it is.
    pub fn agent(&self) -> &Arc<Agent> {
        &self.agent
    }

    /// The engine that it waits with.
    pub fn engine(&self) -> &'e Engine {
        self.engine
    }

    /// Returns the number of pending waits.
    pub fn pending(&self) -> usize {
        self.waits.len()
    }

    /// Takes what is requested if that can be at once and nobody of this loop waits for it already; else queues.
    pub fn wait(
        &mut self,
        primitive: &'static dyn Primitive,
        place: Place,
        request: Request,
        limit: Limit,
    ) -> Result<Reply, ReplyError> {
        let mut section = self.engine.open(primitive, place)?;
        let was_freed = section.free_ended_owner();
        let is_behind =
            primitive.order() == Order::Barging && section.has_group(self.agent.id) && !fault!(AsyncOvertakesItself);
        let settlement = if is_behind { None } else { section.enter(self.agent.id, request) };
        let reply = match settlement {
            Some(settlement) => settlement.outcome().map(Reply::Now).map_err(ReplyError::from),
            None if limit == Limit::Once => {
                section.turn_away(request.hold());
                Ok(Reply::Now(Outcome::TimedOut))
            }
            None => self.keep_deadline(&mut section, limit).map(|deadline| {
                let (owner, found, hold) = (section.owner(), section.found(), request.hold());
                let waiter = section.push_async(&self.agent, self.waits.vacant_id(), hold, limit);
                let (delivery, of) = (Delivery::AtOnce, C::Of::default());
                let wait = PendingWait { primitive, place, hold, waiter, deadline, stays_awake: false, delivery, of };
                Reply::Pending { token: self.waits.insert(wait), owner, found }
            }),
        };
        let is_shared = request.hold().is_some_and(Hold::is_shared) && !fault!(LoopReaderQueuesBlindly);
        let must_look = was_freed && !fault!(AsyncFreesSilently) || is_shared;
        if must_look && !matches!(reply, Ok(Reply::Now(Outcome::Granted { .. }))) {
            section.hand_off();
        }
        section.finish();
        if let (Ok(Reply::Now(Outcome::Granted { .. })), Some(hold)) = (&reply, request.hold()) {
            self.engine.note_hold(primitive, place, self.agent.id, hold);
        }
        reply
    }

    /// The pending wait is a client's, which is asked what becomes of it.
    pub(crate) fn belongs_to(&mut self, token: u32, of: C::Of) {
        self.waits[token].of = of;
    }

    /// Notes what goes back as well if the clock ends the pending wait, which it may have done by now: then its client learns of
    /// that.
    pub fn expires_with(&self, token: u32, beside: Arc<dyn Expiry>) {
        let wait = &self.waits[token];
        let mut contents = self.engine.contents(wait.primitive.space(), wait.place.address());
        if let Kind::Async { beside: all, .. } = &mut contents.waiters[wait.waiter].kind {
            *all = Some(beside);
        }
    }

    /// The pending wait keeps its notification until [`EventLoop::accept`].
    pub(crate) fn keep(&mut self, token: u32) {
        self.waits[token].delivery = Delivery::Kept;
    }

    /// The thread's code has taken its lock again, and knows of the notification that this wait kept.
    pub fn accept(&mut self, token: u32) {
        if let Some(wait) = self.waits.try_remove(token)
            && let Some(settlement) = self.collect(&wait)
        {
            self.engine.learned(wait.primitive, wait.place, settlement);
        }
    }

    /// Takes a wait out as if its thread had ended.
    pub fn drop_wait(&mut self, token: u32) {
        self.take_out(token, Leaving::Ending);
    }

    fn take_out(&mut self, token: u32, why: Leaving) {
        if let Some(wait) = self.waits.try_remove(token) {
            self.leave(&wait, why);
            self.forget_notice(token);
            self.clients.left(&self.agent, wait.of, token);
        }
    }

    fn leave(&self, wait: &PendingWait<C::Of>, why: Leaving) {
        self.engine.drop_waiter(wait.primitive, wait.place, wait.waiter, why);
        self.stop_clock(wait);
    }

    /// Forgets the notice of a wait that is gone: the next wait under its token would be returned in its place, before others.
    fn forget_notice(&mut self, token: u32) {
        let is_another = |notice: &Notice| *notice != Notice::Settled(token);
        self.notices.retain(is_another);
        self.agent.retain_notices(is_another);
    }

    /// Lets the clock keep the deadline of the promise that is about to be queued; returns its serial.
    fn keep_deadline(&self, section: &mut Section<'_>, limit: Limit) -> Result<Option<u64>, ReplyError> {
        let Limit::Until(at) = limit else { return Ok(None) };
        let serial = self.engine.serial();
        self.engine.timers.deadline(section.next_deadline(serial), at).map_err(ReplyError::NoClock)?;
        Ok(Some(serial))
    }

    /// Takes back a pending wait; returns what it was for, or `None` if there is none under this token any more: one that
    /// was settled is as good as over, but if its client takes it back, since the thread's code does not know of it.
    pub fn cancel(&mut self, token: u32) -> Option<Place> {
        let wait = self.waits.get(token)?;
        let place = wait.place;
        if self.engine.try_leave(wait.primitive, place, wait.waiter, Leaving::TakenBack) == Ok(false) {
            if !self.clients.takes_back_granted(wait.of) || fault!(AbortedNameStaysGranted) {
                return None;
            }
            self.take_out(token, Leaving::TakenBack);
            return Some(place);
        }
        let wait = self.waits.remove(token);
        if !fault!(TakenBackWaitKeepsDeadline) {
            self.stop_clock(&wait);
        }
        self.clients.left(&self.agent, wait.of, token);
        Some(place)
    }

    /// This loop never parks for the wait, whatever that costs it.
    pub fn stay_awake(&mut self, token: u32) {
        self.waits[token].stays_awake = true;
    }

    pub(super) fn stop_clock(&self, wait: &PendingWait<C::Of>) {
        if let Some(serial) = wait.deadline {
            self.engine.timers.cancel(serial);
        }
    }

    pub(super) fn settlement(&self, wait: &PendingWait<C::Of>) -> Option<Settlement> {
        self.engine.contents(wait.primitive.space(), wait.place.address()).waiters[wait.waiter].settlement
    }

    pub(super) fn collect(&self, wait: &PendingWait<C::Of>) -> Option<Settlement> {
        self.engine.contents(wait.primitive.space(), wait.place.address()).collect(wait.waiter)
    }

    /// Passes on what [`Self::next_settled`] returned last, since nobody wants it any more.
    pub fn refuse(&mut self) {
        match self.unaccepted.take() {
            Some(Unaccepted::Settled { token, wait: PendingWait { primitive, place, hold, of, .. }, settlement }) => {
                if let (Settlement::Granted { .. }, Some(hold)) = (settlement, hold)
                    && !fault!(RegisterIsGivenBackTwice)
                {
                    self.engine.note_release(primitive, place, self.agent.id, hold);
                }
                self.engine.refuse(primitive, place, hold, self.agent.id, settlement);
                self.clients.left(&self.agent, of, token);
            }
            Some(Unaccepted::Client) => self.clients.refused(&self.agent),
            Some(Unaccepted::Kept { .. }) if fault!(KeptNotificationIsLost) => {}
            Some(Unaccepted::Kept { token }) => self.drop_wait(token),
            None => {}
        }
    }

    /// The environment has ended. What its code never knew of passes on unmarked, its waits leave, and what it still holds
    /// goes to others, marked abandoned.
    pub fn end(mut self) {
        self.agent.set_waker(None);
        self.refuse();
        let waits = std::mem::take(&mut self.waits);
        let left = || waits.iter().filter(|(_, wait)| !(wait.deadline.is_some() && fault!(DeadlineOutlivesItsThread)));
        for (_, wait) in left() {
            self.leave(wait, Leaving::Ending);
        }
        // The clients' other holds go back once none of them is queued any more.
        for (token, wait) in left() {
            self.clients.left(&self.agent, wait.of, token);
        }
        self.engine.thread_ended(self.agent.id);
        self.clients.ended(&self.agent);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::ptr::NonNull;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::engine::Corrupt;
    use crate::engine::list::STEPS;
    use crate::engine::timers::NoClock;
    use crate::engine::{Hold, HoldOwner, Patience};
    use crate::primitives::mutex::MUTEX;

    /// The number of steps along lists that it takes to end so many waits of one loop for a word that was overwritten.
    fn steps_to_end_waits(count: u64) -> u64 {
        let engine = Engine::new(1, 70_000, Patience::default(), Box::new(NoClock));
        let holder = engine.agents.add(0).unwrap();
        let word = AtomicU32::new(holder.id);
        // SAFETY: an aligned atomic that outlives all waits, which end below.
        let place = unsafe { Place::new(NonNull::from(&word), 0) };
        let mut waits = EventLoop::new(&engine, engine.agents.add(1).unwrap());
        for _ in 0..count {
            assert!(matches!(
                waits.wait(&MUTEX, place, Request::Hold(Hold::exclusive(HoldOwner::Thread)), Limit::Endless),
                Ok(Reply::Pending { .. })
            ));
        }
        word.store(3, Ordering::SeqCst);
        STEPS.set(0);
        waits.agent().leave_notice(Notice::Offer(place.address()));
        let mut ended = 0;
        while let Some(settled) = waits.next_settled() {
            assert_eq!(settled.outcome, Err(Corrupt));
            ended += 1;
        }
        assert_eq!((ended, waits.pending()), (count, 0));
        STEPS.get()
    }

    #[test]
    fn to_end_the_waits_for_an_overwritten_word_takes_a_step_for_each() {
        let (few, many) = (steps_to_end_waits(100), steps_to_end_waits(1_000));
        assert!(many <= 10 * few + 10, "{few} steps for 100, {many} for 1000");
    }
}
