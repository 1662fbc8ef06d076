//! The asynchronous waits of one event loop: pending promises, claimed, collected and settled on the loop's own thread.
//!
//! A free lock is *offered* to the loop (a notice in its agent's inbox); the loop *claims* it here, where an abort, a
//! timeout and a claim cannot race. So a loop never holds a lock that its code does not know of. What another thread
//! settled (a notification, a grant in strict order) is collected here.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use super::arena::Arena;
use super::lock_set::PendingSets;
use super::names::Name;
use super::primitive::{Corrupt, Hold, Mode, Order, Primitive, Request, State};
use super::queue::{Settlement, WaiterId};
use super::reply::{Reply, ReplyError};
use super::requests::{NamedRequests, Ticket};
use super::section::Entered;
use super::stats::Leaving;
use super::table::Engine;
use super::wait::{Limit, Outcome};
use crate::agents::{Agent, AgentId, Notice, WaitId};
use crate::memory::Place;
use crate::sync;

/// One event loop's waits. Lives and ends on its thread.
pub struct EventLoop<'e> {
    pub(super) engine: &'e Engine,
    pub(super) agent: Arc<Agent>,
    pub(super) waits: Arena<Wait>,
    /// Of several locks at once.
    pub(super) sets: PendingSets,
    /// Its requests for names.
    pub(super) names: NamedRequests,
    /// Notices taken from the inbox and not yet dealt with.
    pub(super) notices: VecDeque<Notice>,
    /// What [`EventLoop::next_settled`] returned last, until it is called again: the thread's code may not know of it yet.
    pub(super) unaccepted: Option<Unaccepted>,
    /// Whether it may still park in this drain.
    pub(super) may_park: bool,
    /// When it last did.
    pub(super) last_park: Instant,
    /// Who held the lock when the last wait for one was queued; 0 if nobody did.
    pub waits_for: AgentId,
    /// The state that the last wait found when it was queued, or refused at once.
    pub found: State,
    /// What the last wait that was let in found then: the first number of [`Primitive::found`].
    pub given: u32,
}

/// A pending wait.
pub(super) struct Wait {
    pub(super) primitive: &'static dyn Primitive,
    pub(super) place: Place,
    pub(super) hold: Option<Hold>,
    pub(super) waiter: WaiterId,
    pub(super) serial: u64,
    pub(super) has_deadline: bool,
    /// The loop does not park for it.
    pub(super) stays_awake: bool,
    /// What becomes of its notification.
    pub(super) delivery: Delivery,
}

/// What becomes of the notification of a wait.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Delivery {
    /// It is collected when it is returned.
    AtOnce,
    /// It stays in the table until [`EventLoop::accept`]: the thread has a lock to take first.
    Kept,
    /// As `Kept`, and returned already: further notices are of earlier waits under this token.
    KeptAndReturned,
}

/// What was returned last, and may have to be passed on.
pub(super) enum Unaccepted {
    Settled {
        primitive: &'static dyn Primitive,
        place: Place,
        hold: Option<Hold>,
        settlement: Settlement,
    },
    /// Still in the table.
    Kept {
        token: u32,
    },
}

impl<'e> EventLoop<'e> {
    /// For `agent`, on its thread.
    pub fn new(engine: &'e Engine, agent: Arc<Agent>) -> Self {
        Self {
            engine,
            agent,
            waits: Arena::default(),
            sets: PendingSets::default(),
            names: NamedRequests::default(),
            notices: VecDeque::new(),
            unaccepted: None,
            may_park: true,
            last_park: sync::now(),
            waits_for: 0,
            found: State(0),
            given: 0,
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

    /// How many waits are pending.
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
        let given = primitive.found(section.state())[0];
        let entered = if is_behind { Entered::Wait } else { section.enter(self.agent.id, request) };
        let reply = match entered {
            Entered::Granted { abandoned_by } => {
                self.given = given;
                Ok(Reply::Now(Outcome::Granted { abandoned_by }))
            }
            Entered::Refused => {
                self.found = section.state();
                Ok(Reply::Now(Outcome::Refused))
            }
            Entered::Wait if limit == Limit::Once => {
                section.turn_away(request.hold());
                Ok(Reply::Now(Outcome::TimedOut))
            }
            Entered::Wait => self.reserve(limit).map(|id| {
                (self.waits_for, self.found) = (section.owner(), section.state());
                let hold = request.hold();
                let waiter = section.push_async(&self.agent, id.token, hold, limit == Limit::Endless);
                self.insert(id, primitive, place, hold, waiter, limit)
            }),
        };
        let is_shared =
            request.hold().is_some_and(|hold| hold.mode == Mode::Shared) && !fault!(LoopReaderQueuesBlindly);
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

    /// Releases `hold` of `lock` and waits for a notification at `place`, in one step; see [`Engine::release`].
    /// Once the wait is settled, the thread's code takes the lock again and then calls [`EventLoop::accept`].
    pub fn wait_released(
        &mut self,
        notified: &'static dyn Primitive,
        place: Place,
        lock: &'static dyn Primitive,
        lock_place: Place,
        hold: Hold,
        limit: Limit,
    ) -> Result<u32, ReplyError> {
        // Queued before it is released, so that whoever takes the lock and notifies finds it there.
        let Reply::Pending(token) = self.wait(notified, place, Request::Notification, limit)? else {
            return Err(ReplyError::NotHeld);
        };
        self.waits[token].delivery = Delivery::Kept;
        match self.engine.release(&self.agent, lock, lock_place, hold) {
            Ok(true) => Ok(token),
            Ok(false) => {
                self.drop_wait(token);
                Err(ReplyError::NotHeld)
            }
            Err(Corrupt) => {
                self.drop_wait(token);
                Err(ReplyError::Corrupt)
            }
        }
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
        if let Some(wait) = self.waits.try_remove(token) {
            self.leave(token, &wait);
        }
    }

    fn leave(&mut self, token: u32, wait: &Wait) {
        self.engine.drop_waiter(wait.primitive, wait.place, wait.waiter, Leaving::Ending);
        self.stop_clock(token, wait);
        self.names.forget_wait(self.engine, wait.place, wait.hold);
    }

    /// A name for a wait that is about to begin, and its deadline to be kept.
    fn reserve(&mut self, limit: Limit) -> Result<WaitId, ReplyError> {
        let id = WaitId { token: self.waits.vacant_id(), serial: self.engine.serial() };
        if let Limit::Until(at) = limit {
            self.engine.timers.deadline(&self.agent, id, at).map_err(ReplyError::NoClock)?;
        }
        Ok(id)
    }

    fn insert(
        &mut self,
        WaitId { serial, .. }: WaitId,
        primitive: &'static dyn Primitive,
        place: Place,
        hold: Option<Hold>,
        waiter: WaiterId,
        limit: Limit,
    ) -> Reply {
        let has_deadline = matches!(limit, Limit::Until(_));
        let delivery = Delivery::AtOnce;
        let wait = Wait { primitive, place, hold, waiter, serial, has_deadline, stays_awake: false, delivery };
        Reply::Pending(self.waits.insert(wait))
    }

    /// Takes back a pending wait; returns what it was for, or `None` if there is none under this token any more: one that
    /// was settled is as good as over, but for a name, which goes on to the next if the thread's code does not know of it.
    pub fn cancel(&mut self, token: u32) -> Option<Place> {
        let wait = self.waits.get(token)?;
        let place = wait.place;
        if self.engine.try_leave(wait.primitive, place, wait.waiter, Leaving::TakenBack) == Ok(false) {
            if !place.is_name() || fault!(AbortedNameStaysGranted) {
                return None;
            }
            self.drop_wait(token);
            return Some(place);
        }
        let wait = self.waits.remove(token);
        self.stop_clock(token, &wait);
        self.sets.cancel(self.engine, &self.agent, token);
        self.names.forget_wait(self.engine, place, wait.hold);
        Some(place)
    }

    /// This loop never parks for the wait, whatever that costs it.
    pub fn stay_awake(&mut self, token: u32) {
        self.waits[token].stays_awake = true;
    }

    pub(super) fn stop_clock(&self, token: u32, wait: &Wait) {
        if wait.has_deadline {
            self.engine.timers.cancel(WaitId { token, serial: wait.serial });
        }
    }

    pub(super) fn collect(&self, wait: &Wait) -> Option<Settlement> {
        self.engine.contents(wait.primitive.space(), wait.place.address()).collect(wait.waiter)
    }

    /// Passes on what [`Self::next_settled`] returned last, since nobody wants it any more.
    pub fn refuse(&mut self) {
        if self.sets.refuse(self.engine, &self.agent) {
            return;
        }
        match self.unaccepted.take() {
            Some(Unaccepted::Settled { primitive, place, hold, settlement }) => {
                if let (Settlement::Granted { .. }, Some(hold)) = (settlement, hold)
                    && !fault!(RegisterIsGivenBackTwice)
                {
                    self.engine.note_release(primitive, place, self.agent.id, hold);
                }
                self.engine.refuse(primitive, place, hold, self.agent.id, settlement);
                self.names.forget_wait(self.engine, place, hold);
            }
            Some(Unaccepted::Kept { .. }) if fault!(KeptNotificationIsLost) => {}
            Some(Unaccepted::Kept { token }) => self.drop_wait(token),
            None => {}
        }
    }

    /// Makes a request for a name, of which nobody else knows yet.
    pub fn make_request(&mut self, primitive: &'static dyn Primitive, name: Name, mode: Mode) -> Ticket {
        self.names.make(self.engine, primitive, name, mode)
    }

    /// The request of a number; `None` once it is over.
    pub fn request(&self, number: u32) -> Option<Ticket> {
        self.names.get(number)
    }

    /// A request is over: nobody is queued for it, and it holds nothing.
    pub fn forget_request(&mut self, ticket: Ticket) {
        self.names.forget(self.engine, ticket.number);
    }

    /// The number of the next request whose hold was stolen and whose code does not know it. The request is over.
    pub fn next_stolen(&mut self) -> Option<u32> {
        self.names.next_stolen(self.engine)
    }

    /// The environment has ended. What its code never knew of passes on unmarked, its waits leave, and what it still holds
    /// goes to others, marked abandoned.
    pub fn end(mut self) {
        self.agent.set_waker(None);
        self.refuse();
        let waits = std::mem::take(&mut self.waits);
        for (token, wait) in waits.iter().filter(|(_, wait)| !(wait.has_deadline && fault!(DeadlineOutlivesItsThread)))
        {
            self.leave(token, wait);
        }
        self.sets.end(self.engine, &self.agent);
        self.engine.thread_ended(self.agent.id);
        self.names.end(self.engine, self.agent.id);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::ptr::NonNull;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::engine::list::STEPS;
    use crate::engine::timers::NoClock;
    use crate::engine::{Hold, HoldOwner, Patience};
    use crate::primitives::mutex::MUTEX;

    /// How many steps along lists it takes to end so many waits of one loop for a word that was overwritten.
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
                Ok(Reply::Pending(_))
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
