//! The asynchronous waits of one event loop: pending promises, claimed, collected and settled on the loop's own thread.
//!
//! A free lock is *offered* to the loop (a notice in its agent's inbox); the loop *claims* it here, where an abort, a
//! timeout and a claim cannot race. So a loop never holds a lock that its code does not know of. What another thread
//! settled (a notification, a grant in strict order) is collected here.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Instant;

use super::arena::Arena;
use super::block::{Limit, Outcome};
use super::lock_all::PendingSets;
use super::names::NamedRequests;
use super::primitive::{Corrupt, Hold, Mode, Order, Primitive, Request, State};
use super::queue::{Settlement, WaiterId};
use super::section::{Claim, Entered, Parks};
use super::stats::Leaving;
use super::table::Engine;
use crate::agents::{Agent, AgentId, Notice, SPARE, WaitId};
use crate::memory::Place;
use crate::sync;

/// One event loop's waits. Lives and ends on its thread.
pub struct EventLoop<'e> {
    pub(super) engine: &'e Engine,
    pub(super) agent: Arc<Agent>,
    waits: Arena<Wait>,
    /// Of several locks at once.
    pub(super) sets: PendingSets,
    /// Its requests for names.
    pub(super) names: NamedRequests,
    /// Notices taken from the inbox and not yet dealt with.
    notices: VecDeque<Notice>,
    /// What [`EventLoop::next_settled`] returned last, until it is called again: the thread's code may not know of it yet.
    unaccepted: Option<Unaccepted>,
    /// Whether it may still park in this drain.
    may_park: bool,
    /// When it last did.
    last_park: Instant,
    /// Who held the lock when the last wait for one was queued; 0 if nobody did.
    pub waits_for: AgentId,
    /// The state that the last wait found when it was queued, or refused at once.
    pub found: State,
}

/// What came of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reply {
    /// Settled at once.
    Now(Outcome),
    /// To be settled by [`EventLoop::next_settled`] under this token.
    Pending(u32),
}

/// Why a request was refused; nothing was changed.
#[derive(Debug)]
pub enum ReplyError {
    /// The words hold what this package did not write.
    Corrupt,
    /// What was to be released is not held in this way.
    NotHeld,
    /// The thread that watches the deadlines could not be started.
    NoClock(io::Error),
}

impl From<Corrupt> for ReplyError {
    fn from(_: Corrupt) -> Self {
        Self::Corrupt
    }
}

/// A wait that is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settled {
    /// Which; its number is used again.
    pub token: u32,
    /// For what.
    pub place: Place,
    /// Whether it was to hold something; else for a notification.
    pub is_for_hold: bool,
    /// How it ended.
    pub outcome: Result<Outcome, Corrupt>,
}

/// A pending wait.
struct Wait {
    primitive: &'static dyn Primitive,
    place: Place,
    hold: Option<Hold>,
    waiter: WaiterId,
    serial: u64,
    has_deadline: bool,
    /// What becomes of its notification.
    delivery: Delivery,
}

/// What becomes of the notification of a wait.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Delivery {
    /// It is collected when it is returned.
    AtOnce,
    /// It stays in the table until [`EventLoop::accept`]: the thread has a lock to take first.
    Kept,
    /// As `Kept`, and returned already: further notices are of earlier waits under this token.
    KeptAndReturned,
}

/// What was returned last, and may have to be passed on.
enum Unaccepted {
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
        let entered = if is_behind { Entered::Wait } else { section.enter(self.agent.id, request) };
        let reply = match entered {
            Entered::Granted { abandoned_by } => Ok(Reply::Now(Outcome::Granted { abandoned_by })),
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
        let is_shared = request.hold().is_some_and(|hold| hold.mode == Mode::Shared);
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
        self.forget_wait(wait.place, wait.hold);
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
        let has_deadline = limit != Limit::Endless;
        let wait = Wait { primitive, place, hold, waiter, serial, has_deadline, delivery: Delivery::AtOnce };
        Reply::Pending(self.waits.insert(wait))
    }

    /// Takes back a pending wait; returns what it was for, or `None` if there is none under this token any more: one that
    /// was settled is as good as over.
    pub fn cancel(&mut self, token: u32) -> Option<Place> {
        let wait = self.waits.get(token)?;
        if self.engine.try_leave(wait.primitive, wait.place, wait.waiter, Leaving::TakenBack) == Ok(false) {
            return None;
        }
        let wait = self.waits.remove(token);
        self.stop_clock(token, &wait);
        self.cancel_set(token);
        self.forget_wait(wait.place, wait.hold);
        Some(wait.place)
    }

    fn stop_clock(&self, token: u32, wait: &Wait) {
        if wait.has_deadline {
            self.engine.timers.cancel(WaitId { token, serial: wait.serial });
        }
    }

    fn collect(&self, wait: &Wait) -> Option<Settlement> {
        self.engine.contents(wait.primitive.space(), wait.place.address()).collect(wait.waiter)
    }

    /// Passes on what [`Self::next_settled`] returned last, since nobody wants it any more.
    pub fn refuse(&mut self) {
        if self.refuse_set() {
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
                self.forget_wait(place, hold);
            }
            Some(Unaccepted::Kept { .. }) if fault!(KeptNotificationIsLost) => {}
            Some(Unaccepted::Kept { token }) => self.drop_wait(token),
            None => {}
        }
    }

    /// The next wait of this loop that is over. Calling it again says that the thread's code knows of the one before.
    pub fn next_settled(&mut self) -> Option<Settled> {
        if let Some(Unaccepted::Settled { primitive, place, settlement, .. }) = self.unaccepted.take() {
            self.engine.learned(primitive, place, settlement);
        }
        self.accept_set();
        loop {
            let Some(notice) = self.notices.pop_front() else {
                self.agent.drain(&mut self.notices);
                if self.notices.is_empty() {
                    self.notices.shrink_to(SPARE);
                    self.may_park = true;
                    return None;
                }
                continue;
            };
            let settled = match notice {
                Notice::Offer(address) => self.claim(address),
                Notice::Expired(id) => self.expire(id),
                Notice::Settled(token) => self.deliver(token),
                Notice::Stolen(id) => {
                    self.note_stolen(id);
                    None
                }
            };
            let Some(settled) = settled else { continue };
            if self.settle_set(&settled) {
                self.unaccepted = None;
            }
            return Some(settled);
        }
    }

    /// The loop comes for what it was offered.
    fn claim(&mut self, address: usize) -> Option<Settled> {
        // Once in a drain is enough to wait for: a loop that waits for many locks has other things to do.
        let may_wait = (self.may_park || fault!(ParksTwiceInADrain)) && self.notices.is_empty();
        let parks = if may_wait { Parks::Since(self.last_park) } else { Parks::Not };
        let mut section = match self.engine.open_queued(address)? {
            Ok(section) => section,
            Err(Corrupt) => return self.end_group(address),
        };
        let (primitive, place) = (section.primitive(), section.place());
        let claim = section.claim(&self.agent, parks);
        section.finish();
        match claim {
            Claim::Granted { token, abandoned_by } => Some(self.claimed(token, abandoned_by)),
            Claim::InVain => None,
            Claim::Park(parker, until) => {
                // Until the lock is handed over to this loop: then a notice is in its inbox.
                parker.sleep_until(until);
                self.last_park = sync::now();
                self.come_again(address)
            }
            Claim::Remembered if may_wait && self.engine.spin_until_reserved(primitive, place) => {
                // Kept for this loop, most likely: so it need not sleep and be woken once more.
                self.come_again(address)
            }
            Claim::Remembered => None,
        }
    }

    /// Claims once more in this drain, without waiting.
    fn come_again(&mut self, address: usize) -> Option<Settled> {
        self.may_park = false;
        self.claim(address)
    }

    fn claimed(&mut self, token: u32, abandoned_by: Option<AgentId>) -> Settled {
        let wait = self.waits.remove(token);
        self.settled(token, &wait, Settlement::Granted { abandoned_by })
    }

    fn settled(&mut self, token: u32, wait: &Wait, settlement: Settlement) -> Settled {
        if !fault!(GrantedWaitKeepsDeadline) {
            self.stop_clock(token, wait);
        }
        let Wait { primitive, place, hold, .. } = *wait;
        if let (Settlement::Granted { .. }, Some(hold)) = (settlement, hold) {
            self.engine.note_hold(primitive, place, self.agent.id, hold);
        }
        self.unaccepted = Some(Unaccepted::Settled { primitive, place, hold, settlement });
        let outcome = match settlement {
            Settlement::Granted { abandoned_by } => Ok(Outcome::Granted { abandoned_by }),
            Settlement::Notified(_) => Ok(Outcome::GRANTED),
            Settlement::Refused => Ok(Outcome::Refused),
            Settlement::Corrupt => Err(Corrupt),
        };
        Settled { token, place, is_for_hold: hold.is_some(), outcome }
    }

    /// The words at `address` were overwritten by somebody else: all waits of this loop for them end.
    fn end_group(&mut self, address: usize) -> Option<Settled> {
        let tokens = self.engine.settle_corrupt(address, self.agent.id);
        self.notices.extend(tokens.into_iter().map(Notice::Settled));
        None
    }

    /// A wait was settled by another thread, if this is not an old notice.
    fn deliver(&mut self, token: u32) -> Option<Settled> {
        let wait = self.waits.get(token)?;
        if wait.delivery == Delivery::KeptAndReturned {
            return None;
        }
        if wait.delivery == Delivery::Kept {
            let contents = self.engine.contents(wait.primitive.space(), wait.place.address());
            contents.waiters[wait.waiter].settlement?;
            drop(contents);
            self.stop_clock(token, wait);
            let place = wait.place;
            self.waits[token].delivery = Delivery::KeptAndReturned;
            self.unaccepted = Some(Unaccepted::Kept { token });
            return Some(Settled { token, place, is_for_hold: false, outcome: Ok(Outcome::GRANTED) });
        }
        let settlement = self.collect(wait)?;
        let wait = self.waits.remove(token);
        Some(self.settled(token, &wait, settlement))
    }

    fn expire(&mut self, id: WaitId) -> Option<Settled> {
        let wait = self.waits.get(id.token).filter(|wait| wait.serial == id.serial)?;
        if self.engine.try_leave(wait.primitive, wait.place, wait.waiter, Leaving::TimedOut) == Ok(false) {
            // It was settled first, and that notice is in the inbox.
            return None;
        }
        let Wait { place, hold, .. } = self.waits.remove(id.token);
        self.forget_wait(place, hold);
        let outcome = Ok(Outcome::TimedOut);
        Some(Settled { token: id.token, place, is_for_hold: hold.is_some(), outcome })
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
        self.end_sets();
        self.engine.thread_ended(self.agent.id);
        self.end_names();
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::io;
    use std::ptr::NonNull;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Instant;

    use super::*;
    use crate::engine::list::STEPS;
    use crate::engine::{HoldOwner, Patience, Timers};

    struct NoClock;

    impl Timers for NoClock {
        fn deadline(&self, _: &Arc<Agent>, _: WaitId, _: Instant) -> io::Result<()> {
            Ok(())
        }
        fn cancel(&self, _: WaitId) {}
        fn lease(&self, _: usize, _: u64, _: Instant) {}
    }

    /// How many steps along lists it takes to end so many waits of one loop for a word that was overwritten.
    fn steps_to_end_waits(count: u64) -> u64 {
        let engine = Engine::new(1, 70_000, Patience::default(), Box::new(NoClock));
        let holder = engine.agents.add(0).unwrap();
        let word = AtomicU32::new(holder.id);
        // SAFETY: an aligned atomic that outlives all waits, which end below.
        let place = unsafe { Place::new(NonNull::from(&word), 0) };
        let mut waits = EventLoop::new(&engine, engine.agents.add(1).unwrap());
        for _ in 0..count {
            assert!(matches!(waits.lock(place, HoldOwner::Thread, Limit::Endless), Ok(Reply::Pending(_))));
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
