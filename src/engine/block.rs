//! Blocks a thread: it spins, queues, spins again, and parks in slices, between which it looks whether it is being
//! terminated or debugged. One kind of wait for every primitive.

use std::sync::Arc;

use super::deadlock::Hop;
use super::expiry::TakesBack;
use super::limit::Limit;
use super::parker::Parker;
use super::primitive::{Change, Corrupt, Hold, HoldOwner, Order, Primitive, Request, State};
use super::queue::{Settlement, WaiterId};
use super::stats::Leaving;
use super::table::Engine;
use super::wait::{Caller, Failure, Outcome};
use crate::agents::{Agent, AgentId, Blockage};
use crate::memory::Place;
use crate::sync;

impl Engine {
    /// Waits for what is requested, blocking the thread of `agent`, which is this one, for as long as `limit` says.
    ///
    /// When the caller's pause returns false the thread leaves the queue and the call fails.
    pub fn wait(
        &self,
        agent: &Arc<Agent>,
        primitive: &'static dyn Primitive,
        place: Place,
        request: Request,
        limit: Limit,
        caller: &mut dyn Caller,
    ) -> Result<Outcome, Failure> {
        let outcome = self.wait_unregistered(agent, primitive, place, request, limit, caller)?;
        if let (Outcome::Granted { .. }, Some(hold)) = (outcome, request.hold()) {
            self.note_hold(primitive, place, agent.id, hold);
        }
        Ok(outcome)
    }

    fn wait_unregistered(
        &self,
        agent: &Arc<Agent>,
        primitive: &'static dyn Primitive,
        place: Place,
        request: Request,
        limit: Limit,
        caller: &mut dyn Caller,
    ) -> Result<Outcome, Failure> {
        if limit != Limit::Once && self.spin(agent.id, primitive, place, request) {
            return Ok(Outcome::GRANTED);
        }
        let mut section = self.open(primitive, place)?;
        let was_freed = section.free_ended_owner();
        if let Some(settlement) = section.enter(agent.id, request) {
            section.finish();
            return Ok(settlement.outcome()?);
        }
        if limit == Limit::Once {
            section.turn_away(request.hold());
            section.finish();
            return Ok(Outcome::TimedOut);
        }
        let hold = request.hold();
        let is_endless = limit == Limit::Endless;
        if is_endless && section.owner() == agent.id {
            section.note_deadlock();
            section.finish();
            let hop = Hop { thread: agent.thread, byte_offset: place.byte_offset, kind: primitive.name() };
            return Err(Failure::Deadlock(vec![hop]));
        }

        let parker = Arc::new(Parker::current());
        let (owner, found, since) = (section.owner(), section.found(), sync::now());
        let id = section.push_blocked(agent.id, Arc::clone(&parker), hold, limit, since);
        // It was kept for this thread's own loop, which cannot come while the thread is blocked; or it queues behind those
        // who could have come, and have not.
        let was_kept = !fault!(BlockedThreadKeepsReservation) && section.drop_reservation_of(agent.id);
        let is_shared = hold.is_some_and(Hold::is_shared) && !fault!(BlockedReaderQueuesBlindly);
        if was_kept || was_freed || is_shared {
            section.hand_off();
        }
        section.bound_lease();
        // A hold that nobody may end closes no cycle of blocked threads.
        let blockage = self.blockage(place, is_endless && hold.is_some());
        let outer = agent.set_blockage(Some(blockage));
        section.finish();
        caller.queued(owner, found, since);

        let wait = BlockedWait { engine: self, primitive, place, agent: agent.id, hold, parker, id, limit };
        let outcome = match self.find_cycle(agent, blockage) {
            Some(cycle) => match wait.withdraw(Leaving::Deadlocked, caller) {
                Ok(Outcome::TimedOut) => Err(Failure::Deadlock(cycle)),
                other => other,
            },
            None => wait.sleep(caller),
        };
        agent.set_blockage(outer.filter(|_| !fault!(BlockageLostInNestedWait)));
        outcome
    }

    /// Takes back what `here` acquired a moment ago and its code will not learn of, with the report of an ended holder that
    /// was to come with it. If its code has released it after all, nothing changes.
    pub fn give_back(
        &self,
        here: &Arc<Agent>,
        primitive: &'static dyn Primitive,
        place: Place,
        hold: Hold,
        abandoned_by: Option<AgentId>,
    ) {
        self.note_release(primitive, place, here.id, hold);
        self.refuse(primitive, place, Some(hold), here.id, Settlement::Granted { abandoned_by, found: 0 });
    }

    /// Makes a change of what `here` has to do with, and lets in whoever may get in then; returns the new state, or `None` if
    /// that cannot be: then nothing changes. The rest is as for [`Engine::release`].
    pub fn change(
        &self,
        here: &Arc<Agent>,
        primitive: &'static dyn Primitive,
        place: Place,
        change: Change,
    ) -> Result<Option<State>, Corrupt> {
        let mut section = self.open(primitive, place)?;
        let state = section.change(change, here.id).then_some(section.state);
        if state.is_some() {
            section.hand_off();
        }
        section.finish_beside(here);
        match change {
            _ if state.is_none() => {}
            Change::Downgrade(owner) => {
                let owner = if fault!(DowngradeCountsAsAnother) { HoldOwner::Thread } else { owner };
                self.note_hold(primitive, place, here.id, Hold::shared(owner));
            }
            Change::Upgrade(owner) => self.note_release(primitive, place, here.id, Hold::shared(owner)),
            _ => {}
        }
        Ok(state)
    }

    /// Queues this thread for a notification, whatever the state.
    pub(crate) fn queue_for_notification(
        &self,
        agent: &Arc<Agent>,
        primitive: &'static dyn Primitive,
        place: Place,
        limit: Limit,
    ) -> BlockedWait<'_> {
        let parker = Arc::new(Parker::current());
        let mut contents = self.contents(primitive.space(), place.address());
        let arrival = contents.arrival(sync::now(), None, limit);
        let (queue, waiters) = contents.queue_or_new(place, primitive);
        let id = queue.push_blocked(waiters, arrival, agent.id, Arc::clone(&parker));
        drop(contents);
        BlockedWait { engine: self, primitive, place, agent: agent.id, hold: None, parker, id, limit }
    }

    fn blockage(&self, place: Place, endless: bool) -> Blockage {
        let Place { byte_offset, .. } = place;
        Blockage { address: place.address(), byte_offset, endless, serial: self.serial() }
    }

    /// Runs `sleep`, meanwhile noting that `agent` is blocked at `place`, for what anybody may end.
    pub(crate) fn blocked<T>(&self, agent: &Agent, place: Place, sleep: impl FnOnce() -> T) -> T {
        let outer = agent.set_blockage(Some(self.blockage(place, false)));
        let result = sleep();
        agent.set_blockage(outer);
        result
    }

    /// Releases what `here` (the agent of this thread) holds. False if it does not hold it so: then nothing changes.
    ///
    /// If the loop of this very thread has waits, it must drain its inbox soon: it is not woken for what it is offered here.
    pub fn release(
        &self,
        here: &Arc<Agent>,
        primitive: &'static dyn Primitive,
        place: Place,
        hold: Hold,
    ) -> Result<bool, Corrupt> {
        let mut section = self.open(primitive, place)?;
        let is_held = section.release(hold, here.id);
        section.finish_beside(here);
        if is_held || primitive.may_be_gone() {
            self.note_release(primitive, place, here.id, hold);
        }
        Ok(is_held)
    }
}

/// A thread that is queued.
pub(crate) struct BlockedWait<'e> {
    pub(crate) engine: &'e Engine,
    pub(crate) primitive: &'static dyn Primitive,
    pub(crate) place: Place,
    pub(crate) agent: AgentId,
    pub(crate) hold: Option<Hold>,
    pub(crate) parker: Arc<Parker>,
    pub(crate) id: WaiterId,
    pub(crate) limit: Limit,
}

impl BlockedWait<'_> {
    /// Spins, then sleeps until the wait is over.
    pub(crate) fn sleep(&self, caller: &mut dyn Caller) -> Result<Outcome, Failure> {
        let settlement = self.sleep_until_settled(caller)?;
        self.accept(settlement, caller)
    }

    /// As [`BlockedWait::sleep`]; returns how the wait was settled, `None` if its time was over.
    pub(crate) fn sleep_until_settled(&self, caller: &mut dyn Caller) -> Result<Option<Settlement>, Failure> {
        let slice = self.engine.patience.slice;
        let mut slice_end = sync::now() + slice;
        let mut is_woken = self.spin();
        loop {
            if !is_woken {
                let deadline = if let Limit::Until(at) = self.limit { at } else { slice_end };
                is_woken = self.parker.park_until(slice_end.min(deadline));
            }
            if is_woken && let Some(settlement) = self.arrive(Presence::Here)? {
                return Ok(Some(settlement));
            }
            let now = sync::now();
            if matches!(self.limit, Limit::Until(at) if now >= at) {
                return self.leave(Leaving::TimedOut);
            }
            if now >= slice_end {
                if let Some(settlement) = self.arrive(Presence::GoingAway)? {
                    return Ok(Some(settlement));
                }
                if !caller.pause() {
                    if fault!(InterruptedThreadStaysQueued) {
                        return Err(Failure::Interrupted);
                    }
                    let contents = || self.engine.contents(self.primitive.space(), self.place.address());
                    if fault!(InterruptedGrantIsDropped) && contents().collect(self.id).is_some() {
                        return Err(Failure::Interrupted);
                    }
                    self.engine.drop_waiter(self.primitive, self.place, self.id, Leaving::Ending);
                    return Err(Failure::Interrupted);
                }
                if let Some(settlement) = self.arrive(Presence::Here)? {
                    return Ok(Some(settlement));
                }
                slice_end = sync::now() + slice;
                is_woken = false;
            } else {
                is_woken = is_woken && self.spin();
            }
        }
    }

    /// Spins for as long as a sleep and a wake-up would cost, in case the lock comes meanwhile. True if unparked.
    fn spin(&self) -> bool {
        if self.primitive.order() == Order::Barging
            && let Some(time) = self.engine.queued_spin_time(self.place)
        {
            self.parker.spin(time);
        }
        self.parker.take()
    }

    /// Tries to get in; keeps its place if it cannot. Before a pause nobody may count on it any more, after one they may.
    fn arrive(&self, presence: Presence) -> Result<Option<Settlement>, Failure> {
        let is_blind = fault!(StrictWaiterIsBlind) && self.primitive.order() == Order::Strict;
        if self.primitive.order() == Order::Notified || is_blind {
            return Ok(self.engine.contents(self.primitive.space(), self.place.address()).collect(self.id));
        }
        let Ok(mut section) = self.engine.open(self.primitive, self.place) else {
            self.engine
                .contents(self.primitive.space(), self.place.address())
                .abandon_queue(self.place.address(), self.id);
            return Err(Failure::Corrupt);
        };
        let settlement = section.arrive(self.id, presence == Presence::GoingAway);
        section.finish();
        Ok(settlement)
    }

    /// Leaves the queue, unless it was settled in the meantime.
    pub(crate) fn leave(&self, why: Leaving) -> Result<Option<Settlement>, Failure> {
        if self.engine.try_leave(self.primitive, self.place, self.id, why)? {
            return Ok(None);
        }
        if fault!(TimeoutForgetsGrant) {
            return Ok(None);
        }
        Ok(self.engine.contents(self.primitive.space(), self.place.address()).collect(self.id))
    }

    /// Leaves, and passes on what it was settled with.
    pub(crate) fn drop(self) {
        self.engine.drop_waiter(self.primitive, self.place, self.id, Leaving::Ending);
    }

    /// As [`BlockedWait::leave`], as an outcome.
    fn withdraw(&self, why: Leaving, caller: &mut dyn Caller) -> Result<Outcome, Failure> {
        let settlement = self.leave(why)?;
        self.accept(settlement, caller)
    }

    /// The code that waits gets what its wait was settled with. If the end of its thread has begun since the last slice, that
    /// passes on, as if the thread had never waited.
    fn accept(&self, settlement: Option<Settlement>, caller: &mut dyn Caller) -> Result<Outcome, Failure> {
        let Some(settlement) = settlement else { return Ok(Outcome::TimedOut) };
        if !fault!(EndingThreadKeepsGrant) && !caller.goes_on() {
            self.engine.refuse(self.primitive, self.place, self.hold, self.agent, settlement);
            return Err(Failure::Interrupted);
        }
        self.engine.learned(self.primitive, self.place, settlement);
        Ok(settlement.outcome()?)
    }
}

impl TakesBack for Engine {
    fn take_back(
        &self,
        agent: AgentId,
        primitive: &'static dyn Primitive,
        place: Place,
        hold: Hold,
        abandoned_by: Option<AgentId>,
    ) {
        self.drop_aside(primitive, place, agent, hold);
        self.refuse(primitive, place, Some(hold), agent, Settlement::Granted { abandoned_by, found: 0 });
    }
}

/// Whether others may count on a waiter.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Presence {
    /// It runs, or sleeps until it is woken.
    Here,
    /// It is about to call into JS, which may take for ever.
    GoingAway,
}
