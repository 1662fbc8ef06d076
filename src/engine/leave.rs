//! Waiters leave without having got in, and threads end: others may get in for that.

use std::sync::Arc;

use super::contents::Contents;
use super::expiry::Expiry;
use super::primitive::{Corrupt, Hold, Order, Primitive, Space};
use super::queue::{Kind, Settlement, Waiter, WaiterId};
use super::section::Section;
use super::stats::Leaving;
use super::table::Engine;
use super::timers::Deadline;
use super::wakes::Wakes;
use crate::agents::{AgentId, Notice};
use crate::memory::Place;
use crate::sync::MutexGuard;

impl Section<'_> {
    /// A waiter gives up, or its thread ends; others may get in for that. Not a settled one.
    pub(crate) fn leave(&mut self, id: WaiterId, why: Leaving) {
        let waiter = self.contents.remove(self.place.address(), id);
        self.contents.stats.left(&waiter, why);
        self.one_left(waiter.agent);
    }

    /// The time of a pending promise is over: it leaves the queue; or what it was granted, and its loop has not come for, passes on.
    /// A hold that can be no one else's, and a wait that was settled in another way, stand. Returns what goes back as well.
    fn expire(&mut self, id: WaiterId) -> Option<Arc<dyn Expiry>> {
        let waiter = &mut self.contents.waiters[id];
        let (agent, hold) = (waiter.agent, waiter.hold);
        match waiter.settlement {
            None => {
                self.contents.settle(self.place.address(), id, Settlement::Expired, &mut self.wakes);
                self.one_left(agent);
            }
            Some(Settlement::Granted { abandoned_by, .. }) if !fault!(ExpiredWaitKeepsItsGrant) => {
                // A waiter that was let pass in time has passed: a signal that came back could be lost among later ones.
                let hold = hold.filter(|hold| !hold.is_passage())?;
                if !self.revoke(hold, agent, abandoned_by) {
                    return None;
                }
                self.contents.waiters[id].settlement = Some(Settlement::Expired);
                self.contents.stats.ended_without(Some(hold), Leaving::TimedOut);
            }
            Some(_) => return None,
        }
        self.contents.take_beside(id)
    }

    fn one_left(&mut self, agent: AgentId) {
        self.state = self.primitive.left(self.state);
        if !self.has_group(agent) && !fault!(ReservationOutlivesItsLoop) {
            self.drop_reservation_of(agent);
        }
        if !fault!(LeaverLetsNobodyIn) {
            self.hand_off();
        }
    }

    /// If the lease `generation` still stands, it is over.
    pub(super) fn end_lease(&mut self, generation: u64) {
        let Some((queue, _)) = self.queue() else { return };
        let Some(over) = queue
            .reservation
            .take_if(|reservation| reservation.generation == generation || fault!(LeaseEndsANewerReservation))
        else {
            return;
        };
        self.contents.stats.passed_by += 1;
        self.state = self.primitive.unreserve(self.state, over.hold);
        if !fault!(LeaseEndLetsNobodyIn) {
            self.hand_off();
        }
    }

    /// One that came and does not wait has left as well.
    pub(crate) fn turn_away(&mut self, hold: Option<Hold>) {
        self.state = self.primitive.left(self.primitive.queued(self.state, hold));
        self.hand_off();
    }
}

impl Engine {
    /// The lease `generation` on the primitive at `address` is over: if it still stands, others get in.
    pub fn end_lease(&self, address: usize, generation: u64) {
        if let Some(Ok(mut section)) = self.open_queued(address) {
            section.end_lease(generation);
            section.finish();
        }
    }

    /// The deadline of a pending promise has passed: unless it is settled for good, its wait ends, and others get in for that,
    /// though its loop does not turn. The loop learns of it when it comes.
    pub fn expire(&self, deadline: &Deadline) {
        if fault!(DeadlineWaitsForItsLoop) {
            return;
        }
        let Deadline { primitive, place, waiter, ticket, .. } = *deadline;
        // The wait and what goes back with it end at once for a search: in between, that would seem to be held for ever.
        let _unseen = (!fault!(SearchSeesHalfAnExpiry)).then(|| self.detecting.lock());
        let contents = self.contents(primitive.space(), place.address());
        // Else its loop came first.
        let is_it = |found: &Waiter| found.ticket() == ticket || fault!(ExpiryOfAFormerWait);
        if contents.waiters.get(waiter).is_none_or(|found| !is_it(found)) {
            return;
        }
        let order = primitive.order();
        let begun =
            if order == Order::Notified { Err(contents) } else { Section::begin(self, contents, primitive, place) };
        let beside = match begun {
            Ok(mut section) => {
                let beside = section.expire(waiter);
                section.finish();
                beside
            }
            Err(mut contents) => {
                let mut wakes = Wakes::default();
                let beside = contents.expire(order, place.address(), waiter, &mut wakes);
                drop(contents);
                wakes.carry_out(&*self.timers);
                beside
            }
        };
        if let Some(beside) = beside.filter(|_| !fault!(ExpiredSetKeepsItsLocks)) {
            beside.expired(self);
        }
    }

    /// A waiter that may be settled leaves, or what it was settled with passes on: its thread ends, or nobody wants it.
    pub(crate) fn drop_waiter(&self, primitive: &'static dyn Primitive, place: Place, id: WaiterId, why: Leaving) {
        let address = place.address();
        let mut contents = self.contents(primitive.space(), address);
        let (hold, agent) = (contents.waiters[id].hold, contents.waiters[id].agent);
        match contents.collect(id) {
            Some(settlement) => {
                if let Settlement::Granted { .. } = settlement {
                    contents.stats.ended_without(hold, why);
                }
                drop(contents);
                self.refuse(primitive, place, hold, agent, settlement);
            }
            None => {
                let _: Result<(), Corrupt> = self.leave(contents, primitive, place, id, why);
            }
        }
    }

    /// A waiter leaves. False if it is settled: then it stays, for its thread to collect. A waiter of corrupt words is gone.
    pub(crate) fn try_leave(
        &self,
        primitive: &'static dyn Primitive,
        place: Place,
        id: WaiterId,
        why: Leaving,
    ) -> Result<bool, Corrupt> {
        let contents = self.contents(primitive.space(), place.address());
        if contents.waiters[id].settlement.is_some() && !fault!(SettledWaiterLeaves) {
            return Ok(false);
        }
        self.leave(contents, primitive, place, id, why).map(|()| true)
    }

    fn leave<'e>(
        &'e self,
        mut contents: MutexGuard<'e, Contents>,
        primitive: &'static dyn Primitive,
        place: Place,
        id: WaiterId,
        why: Leaving,
    ) -> Result<(), Corrupt> {
        if primitive.order() == Order::Notified {
            // There are no words of ours.
            contents.abandon_queue(place.address(), id);
            return Ok(());
        }
        match Section::begin(self, contents, primitive, place) {
            Ok(mut section) => {
                section.leave(id, why);
                section.finish();
                Ok(())
            }
            Err(mut contents) => {
                contents.abandon_queue(place.address(), id);
                Err(Corrupt)
            }
        }
    }

    /// All asynchronous waiters of `agent` at `address`, whose words were overwritten, are settled; returns their tokens.
    pub(crate) fn settle_corrupt(&self, address: usize, agent: AgentId) -> Vec<u32> {
        let mut contents = self.contents(Space::Words, address);
        let Some((queue, waiters)) = contents.queue(address) else { return Vec::new() };
        let Some(group) = queue.group(agent) else { return Vec::new() };
        let mut ids: Vec<WaiterId> = group.waiters(waiters).collect();
        if fault!(OverwrittenWaitsEndOneByOne) {
            ids.truncate(1);
            group.agent.leave_notice(Notice::Offer(address));
        }
        queue.reservation.take_if(|reservation| reservation.agent == agent);
        let mut tokens = Vec::with_capacity(ids.len());
        for id in ids {
            if let Kind::Async { token, .. } = contents.waiters[id].kind {
                tokens.push(token);
            }
            contents.settle_silently(address, id, Settlement::Corrupt);
        }
        contents.forget_if_empty(address);
        tokens
    }

    /// The code of a waiter knows that it was notified: that does not pass on any more.
    pub(crate) fn learned(&self, primitive: &'static dyn Primitive, place: Place, settlement: Settlement) {
        let Settlement::Notified(ticket) = settlement else { return };
        let mut contents = self.contents(primitive.space(), place.address());
        if let Some((queue, waiters)) = contents.queue(place.address()) {
            queue.learned(waiters, ticket);
        }
    }

    /// Passes on what a waiter was settled with, since its code never knew of it.
    pub(crate) fn refuse(
        &self,
        primitive: &'static dyn Primitive,
        place: Place,
        hold: Option<Hold>,
        agent: AgentId,
        settlement: Settlement,
    ) {
        match settlement {
            Settlement::Granted { abandoned_by, .. } => {
                let Some(hold) = hold else { return };
                if let Ok(mut section) = self.open(primitive, place) {
                    section.revoke(hold, agent, abandoned_by);
                    section.finish();
                }
            }
            Settlement::Notified(_) if fault!(EndSwallowsNotification) => {}
            Settlement::Notified(ticket) => {
                let mut wakes = Wakes::default();
                self.contents(primitive.space(), place.address()).pass_on(place.address(), ticket, &mut wakes);
                wakes.carry_out(&*self.timers);
            }
            Settlement::Corrupt | Settlement::Refused { .. } | Settlement::Expired => {}
        }
    }

    /// The end of an agent whose waits are all gone: whoever waits for what it holds alone gets it, marked abandoned.
    /// Primitives without waiters keep its id, by which the next to come knows the same.
    pub fn thread_ended(&self, agent: AgentId) {
        #[cfg(feature = "audit")]
        self.check_register(agent);
        // First the end, then the scan: whoever queues after the scan has seen its bucket finds an owner that has ended.
        if !fault!(EndsAfterTheScan) {
            self.agents.remove(agent);
        }
        self.give_back_holds(agent);
        for address in self.queued_places_of(agent) {
            let Some(Ok(mut section)) = self.open_queued(address) else { continue };
            if section.free_ended_owner() && !fault!(ScanLetsNobodyIn) {
                section.hand_off();
            }
            section.finish();
        }
        if fault!(EndsAfterTheScan) {
            self.agents.remove(agent);
        }
    }

    /// The addresses of the primitives with waiters that `agent` owns.
    fn queued_places_of(&self, agent: AgentId) -> Vec<usize> {
        let mut addresses = Vec::new();
        for bucket in self.buckets(Space::Words) {
            let contents = bucket.contents.lock();
            let owned = contents
                .queues
                .values()
                .filter(|queue| queue.primitive.owner(queue.primitive.read(queue.place)) == agent);
            addresses.extend(owned.map(|queue| queue.place.address()));
        }
        addresses
    }
}
