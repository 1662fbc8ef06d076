//! A section: one decision on a primitive's frozen words and its queue, and the transitions that it may make.
//!
//! It begins under the bucket's lock by setting W, which makes every fast path on the words fail, decides on the frozen
//! state, and ends by writing the words. How waiters get in is in [`super::handoff`].

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::parker::Parker;
use super::primitive::{Corrupt, Entry, Facts, Hold, Mode, Order, Primitive, Request, Space, State};
use super::queue::{Kind, Queue, Reservation, Settlement, Turn, WaiterId, Waiters};
use super::stats::Leaving;
use super::table::{Contents, Engine};
use super::wakes::Wakes;
use crate::agents::{Agent, AgentId, Notice, Standing};
use crate::memory::Place;
use crate::sync::{self, MutexGuard};

/// What became of whoever came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Entered {
    /// It has what it asked for.
    Granted {
        /// The agent whose thread ended inside, which it has to report.
        abandoned_by: Option<AgentId>,
    },
    /// There was nothing to wait for.
    Refused,
    /// It has to wait.
    Wait,
}

/// What came of a loop's coming for what it was offered.
pub(crate) enum Claim {
    /// Its first waiter has it.
    Granted {
        /// The waiter's.
        token: u32,
        /// The agent whose thread ended inside, which it has to report.
        abandoned_by: Option<AgentId>,
    },
    /// Another holds it: the next to release it will reserve it for this loop.
    Remembered,
    /// Another holds it: the loop may park until then at the latest, to be handed over to directly. It must claim again.
    Park(Arc<Parker>, Instant),
    /// Nobody of this loop waits for it, or this very thread holds it.
    InVain,
}

/// Whether a loop that comes in vain may park.
#[derive(Clone, Copy)]
pub(crate) enum Parks {
    /// It has parked in this drain, or has other things to do.
    Not,
    /// It may, for a fraction of the time since this: when it last parked.
    Since(Instant),
}

/// A primitive, frozen, and its queue, locked. Must be closed.
pub(crate) struct Section<'e> {
    pub(super) engine: &'e Engine,
    pub(super) contents: MutexGuard<'e, Contents>,
    pub(super) primitive: &'static dyn Primitive,
    pub(super) place: Place,
    /// The state that it was frozen in.
    frozen: State,
    /// The state to be written at the end.
    pub(super) state: State,
    /// The agent whose thread ended inside, which the next to get in will report.
    pub(super) abandoned_by: Option<AgentId>,
    pub(super) wakes: Wakes,
}

impl Engine {
    /// Begins a section.
    pub(crate) fn open(&self, primitive: &'static dyn Primitive, place: Place) -> Result<Section<'_>, Corrupt> {
        let contents = self.contents(primitive.space(), place.address());
        Section::begin(self, contents, primitive, place).map_err(|_| Corrupt)
    }

    /// Begins a section at `address`, if anybody is queued there; only then its memory is known to live.
    pub(crate) fn open_queued(&self, address: usize) -> Option<Result<Section<'_>, Corrupt>> {
        let contents = self.contents_at(address);
        let queue = contents.queues.get(&address)?;
        let (primitive, place) = (queue.primitive, queue.place);
        Some(Section::begin(self, contents, primitive, place).map_err(|_| Corrupt))
    }
}

impl<'e> Section<'e> {
    /// Fails with the bucket's lock if the words are corrupt.
    fn begin(
        engine: &'e Engine,
        mut contents: MutexGuard<'e, Contents>,
        primitive: &'static dyn Primitive,
        place: Place,
    ) -> Result<Self, MutexGuard<'e, Contents>> {
        let queue = contents.queues.get_mut(&place.address());
        let facts = Facts {
            is_queued: queue.is_some(),
            is_reserved: queue.as_ref().is_some_and(|queue| queue.reservation.is_some()),
            agents: &engine.agents,
        };
        let is_other = queue.as_ref().is_some_and(|queue| queue.primitive.name() != primitive.name());
        let frozen = if is_other { Err(Corrupt) } else { primitive.freeze(place, &facts) };
        let abandoned_by = queue.and_then(|queue| queue.abandoned_by.take_if(|_| frozen.is_ok()));
        let Ok(state) = frozen else { return Err(contents) };
        Ok(Self { engine, contents, primitive, place, frozen: state, state, abandoned_by, wakes: Wakes::default() })
    }

    /// Ends the section: the words thaw, then the bucket's lock is released.
    pub(crate) fn close(self) -> Wakes {
        let Self { mut contents, primitive, place, frozen, mut state, abandoned_by, wakes, .. } = self;
        let address = place.address();
        let mut is_queued = false;
        let Contents { queues, hold_serials, .. } = &mut *contents;
        if let Some(queue) = queues.get_mut(&address) {
            is_queued = !queue.is_empty();
            queue.abandoned_by = abandoned_by;
            let may_have_changed = !primitive.is_waiting(frozen) && !fault!(UnseenHoldsAreOne);
            if primitive.owner(state) != primitive.owner(frozen) || may_have_changed {
                // Without W the owner may have changed unseen.
                *hold_serials += 1;
                queue.hold_serial = *hold_serials;
            }
            contents.forget_if_empty(address);
        }
        if let Some(ended) = abandoned_by
            && !is_queued
            && !fault!(EndForgottenWithLastWaiter)
        {
            // Nobody is left who could report it: the words themselves tell the next to come.
            state = primitive.remember_ended(state, ended);
        }
        let contents = (!fault!(ThawsAfterTheBucket)).then_some(contents);
        primitive.thaw(place, frozen, state, is_queued);
        drop(contents);
        wakes
    }

    /// Ends the section and wakes whom it concerns.
    pub(crate) fn finish(self) {
        let engine = self.engine;
        self.close().carry_out(&*engine.timers);
    }

    /// As [`Section::finish`], on the thread of `here`, whose loop is about to drain its inbox anyway.
    pub(crate) fn finish_beside(self, here: &Arc<Agent>) {
        let engine = self.engine;
        self.close().carry_out_beside(&*engine.timers, Some(here));
    }

    /// What it is.
    pub(crate) fn primitive(&self) -> &'static dyn Primitive {
        self.primitive
    }

    /// Where it is.
    pub(crate) fn place(&self) -> Place {
        self.place
    }

    /// Its state, as it will be written.
    pub(crate) fn state(&self) -> State {
        self.state
    }

    /// Who holds it alone, as it will be written.
    pub(crate) fn owner(&self) -> AgentId {
        self.primitive.owner(self.state)
    }

    /// An owner whose thread has ended loses it. True if there was one: then, unless the caller gets in itself, it has to
    /// hand off.
    pub(crate) fn free_ended_owner(&mut self) -> bool {
        let owner = self.owner();
        let is_ended = owner != 0 && self.engine.agents.standing(owner) == Standing::Ended;
        if is_ended {
            self.abandoned_by = Some(owner);
            self.state = self.primitive.ended(self.state);
        }
        is_ended
    }

    /// `agent` comes.
    pub(crate) fn enter(&mut self, agent: AgentId, request: Request) -> Entered {
        let is_queued = self.queue().is_some();
        match self.primitive.enter(self.state, request, agent, is_queued) {
            Entry::Granted(state) => {
                let entered = self.granted(state);
                if let Some(hold) = request.hold() {
                    self.note_holder(agent, hold);
                    self.admit_others(hold);
                }
                entered
            }
            Entry::Wait => Entered::Wait,
            Entry::Refused => Entered::Refused,
        }
    }

    fn granted(&mut self, state: State) -> Entered {
        self.state = state;
        Entered::Granted { abandoned_by: self.take_report() }
    }

    /// The ended owner that whoever gets in now has to report.
    pub(super) fn take_report(&mut self) -> Option<AgentId> {
        self.contents.stats.abandoned += u64::from(self.abandoned_by.is_some());
        self.abandoned_by.take()
    }

    /// The holder releases, and the next gets in. False if it does not hold it so: then nothing changes.
    pub(crate) fn release(&mut self, hold: Hold, agent: AgentId) -> bool {
        let Some(state) = self.primitive.release(self.state, hold, agent) else { return false };
        if !self.forget_holder(agent, hold) {
            return false;
        }
        self.state = state;
        if !fault!(ReleaseLetsNobodyIn) {
            self.hand_off();
        }
        true
    }

    /// Takes back what was granted to a thread whose code never ran with it; `abandoned_by` is what it would have reported.
    /// If its code did run after all and released it, nothing changes.
    pub(crate) fn revoke(&mut self, hold: Hold, agent: AgentId, abandoned_by: Option<AgentId>) {
        let agent = if fault!(RevokesAnothersHold) { self.owner() } else { agent };
        let Some(state) = self.primitive.release(self.state, hold, agent) else { return };
        if !self.forget_holder(agent, hold) {
            return;
        }
        self.state = state;
        self.abandoned_by = self.abandoned_by.or(abandoned_by);
        if !fault!(RevokedHoldIsLost) {
            self.hand_off();
        }
    }

    /// Others may get in beside one that has just got in.
    fn admit_others(&mut self, hold: Hold) {
        if hold.mode != Mode::Exclusive {
            self.hand_off();
        }
    }

    /// Replaces the state, for what a primitive does besides; returns the new one, or `None` if that cannot be.
    pub(crate) fn update(&mut self, change: impl FnOnce(State) -> Option<State>) -> Option<State> {
        self.state = change(self.state)?;
        Some(self.state)
    }

    /// The thread of `agent` has ended: what its register says goes back, and others get in.
    pub(super) fn give_back(&mut self, agent: AgentId) {
        let Some(slot) = self.contents.take_slot(self.place.address(), agent) else { return };
        let counts = slot.read();
        if counts.sum() > 0 {
            self.engine.note_ended(&mut self.contents, self.primitive, self.place, agent);
        }
        if !fault!(RegisterIsNotGivenBack) {
            self.state = self.primitive.given_back(self.state, counts);
        }
        self.hand_off();
    }

    /// Puts this thread at the end of the queue, to sleep in `parker`.
    pub(crate) fn push_blocked(
        &mut self,
        agent: AgentId,
        parker: Arc<Parker>,
        hold: Option<Hold>,
        is_endless: bool,
        since: Instant,
    ) -> WaiterId {
        self.contents.stats.queued(hold, true);
        self.state = self.primitive.queued(self.state, hold);
        let arrival = self.contents.arrival(since, hold, is_endless);
        let (queue, waiters) = self.contents.queue_or_new(self.place, self.primitive);
        let id = queue.push_blocked(waiters, arrival, agent, parker);
        queue.spinning = Some(id);
        id
    }

    /// Puts a pending promise of `agent` at the end of the queue.
    pub(crate) fn push_async(
        &mut self,
        agent: &Arc<Agent>,
        token: u32,
        hold: Option<Hold>,
        is_endless: bool,
    ) -> WaiterId {
        self.contents.stats.queued(hold, false);
        self.state = self.primitive.queued(self.state, hold);
        let arrival = self.contents.arrival(sync::now(), hold, is_endless);
        let (queue, waiters) = self.contents.queue_or_new(self.place, self.primitive);
        queue.push_async(waiters, arrival, agent, token)
    }

    /// The owner itself would wait, and for ever.
    pub(crate) fn note_deadlock(&mut self) {
        self.contents.stats.deadlocks += 1;
    }

    /// Whether `agent` has asynchronous waiters here.
    pub(crate) fn has_group(&mut self, agent: AgentId) -> bool {
        self.queue().is_some_and(|(queue, _)| queue.group_index(agent).is_some())
    }

    /// Whether it is reserved for `agent`; if so it no longer is.
    pub(crate) fn drop_reservation_of(&mut self, agent: AgentId) -> bool {
        // Of the queue as it is: the last waiter may just have left it.
        let Some((queue, _)) = self.contents.queue(self.place.address()) else { return false };
        let had = queue.reservation.take_if(|reservation| reservation.agent == agent).is_some();
        if had {
            self.state = self.primitive.unreserve(self.state);
        }
        had
    }

    /// A blocked waiter that was woken, or returns, tries to get in; if it cannot, it keeps its place. It may have been
    /// settled in the meantime.
    pub(crate) fn arrive(&mut self, id: WaiterId, is_going_away: bool) -> Option<Settlement> {
        if let Some(settlement) = self.contents.collect(id) {
            return Some(settlement);
        }
        if self.primitive.order() != Order::Barging {
            return None;
        }
        self.free_ended_owner();
        let waiter = &self.contents.waiters[id];
        if let Some(hold) = waiter.hold
            && let Some(state) = self.primitive.grant(self.state, hold, waiter.agent)
        {
            let waiter = self.contents.remove(self.place.address(), id);
            self.contents.stats.served(&waiter);
            self.state = state;
            let abandoned_by = self.take_report();
            self.admit_others(hold);
            return Some(Settlement::Granted { abandoned_by });
        }
        let (queue, waiters) = self.queue().expect("a waiter has a queue");
        queue.lost(waiters, id);
        if let Kind::Blocked { away, .. } = &mut waiters[id].kind {
            *away = is_going_away;
        }
        None
    }

    /// The first asynchronous waiter of `agent` gets in if it can and nobody before it is to have it; else the claim is
    /// remembered.
    pub(crate) fn claim(&mut self, agent: &Arc<Agent>, parks: Parks) -> Claim {
        if fault!(ClaimForNobodyFrees) {
            self.free_ended_owner();
        }
        if !self.has_group(agent.id) {
            // An offer that outlived its waiter. Whoever comes for nobody must not free an ended owner either: the scan
            // of that thread's end would not find it any more.
            return Claim::InVain;
        }
        self.free_ended_owner();
        let (queue, waiters) = self.contents.queue(self.place.address()).expect("it has a group");
        let mine = queue.group_index(agent.id).expect("it has a group");
        let others = queue.reservation.filter(|reservation| reservation.agent != agent.id);
        let is_before_me =
            |reservation: Reservation| queue.group_index(reservation.agent).is_none_or(|place| place < mine);
        let is_kept_from_me = others.is_some_and(is_before_me) && !fault!(ClaimsWhatIsKeptForAnother);
        let group = queue.group(agent.id).expect("it has a group");
        group.turn = Turn::Idle;
        let first = group.first();
        let hold = waiters[first].hold.expect("who is offered a lock waits for one");
        let open = if is_kept_from_me {
            None
        } else {
            self.primitive.grant(self.primitive.unreserve(self.state), hold, agent.id)
        };
        let Some(state) = open else { return self.remember_claim(agent, first, parks) };
        let Kind::Async { token } = waiters[first].kind else { unreachable!("groups have asynchronous waiters only") };
        if let Some(behind) = others.and_then(|reservation| queue.group(reservation.agent)) {
            behind.turn = Turn::Claimed;
        }
        queue.reservation = None;
        self.state = state;
        let waiter = self.contents.remove(self.place.address(), first);
        self.contents.stats.served(&waiter);
        let abandoned_by = self.take_report();
        self.admit_others(hold);
        Claim::Granted { token, abandoned_by }
    }

    /// The claim is remembered, unless this very thread holds it: then its release offers again, since W is set.
    fn claim_in_vain(&mut self, agent: &Arc<Agent>) -> Claim {
        if self.owner() == agent.id && !fault!(RemembersClaimOnItsOwnHold) {
            return Claim::InVain;
        }
        let (queue, _) = self.queue().expect("it has a group");
        if !fault!(ClaimInVainForgotten) {
            queue.group(agent.id).expect("it has a group").turn = Turn::Claimed;
        }
        Claim::Remembered
    }

    /// It could not get in: its claim is remembered, or the loop parks.
    fn remember_claim(&mut self, agent: &Arc<Agent>, first: WaiterId, parks: Parks) -> Claim {
        let Parks::Since(last) = parks else { return self.claim_in_vain(agent) };
        let waited = sync::since(self.contents.waiters[first].since.max(last));
        let patience = self.engine.patience;
        let longest = if fault!(ParksWithoutBound) { Duration::MAX } else { patience.longest_park };
        let time = waited.mul_f64(patience.park_fraction).min(longest);
        let (owner, address) = (self.owner(), self.place.address());
        let can_hand_over = || match self.engine.agents.get(owner) {
            Some(owner) => can_run(&owner, agent, address),
            None => fault!(ParksThoughNobodyHolds),
        };
        if time.is_zero() || time < patience.shortest_park || !can_hand_over() {
            return self.claim_in_vain(agent);
        }
        let (queue, _) = self.queue().expect("it has a group");
        let group = queue.group(agent.id).expect("it has a group");
        let parker = Arc::new(Parker::current());
        group.turn = Turn::Parked(Arc::clone(&parker));
        Claim::Park(parker, sync::now() + time)
    }

    /// A waiter gives up, or its thread ends; others may get in for that. Not a settled one.
    pub(crate) fn leave(&mut self, id: WaiterId, why: Leaving) {
        let waiter = self.contents.remove(self.place.address(), id);
        self.contents.stats.left(&waiter, why);
        self.state = self.primitive.left(self.state);
        if !self.has_group(waiter.agent) && !fault!(ReservationOutlivesItsLoop) {
            self.drop_reservation_of(waiter.agent);
        }
        if !fault!(LeaverLetsNobodyIn) {
            self.hand_off();
        }
    }

    /// If the lease `generation` still stands, it is over.
    pub(super) fn end_lease(&mut self, generation: u64) {
        let Some((queue, _)) = self.queue() else { return };
        if queue.reservation.take_if(|reservation| reservation.generation == generation).is_none() {
            return;
        }
        self.contents.stats.passed_by += 1;
        self.state = self.primitive.unreserve(self.state);
        if !fault!(LeaseEndLetsNobodyIn) {
            self.hand_off();
        }
    }

    /// One that came and does not wait has left as well.
    pub(crate) fn turn_away(&mut self, hold: Option<Hold>) {
        self.state = self.primitive.left(self.primitive.queued(self.state, hold));
        self.hand_off();
    }

    pub(super) fn queue(&mut self) -> Option<(&mut Queue, &mut Waiters)> {
        self.contents.queue(self.place.address()).filter(|(queue, _)| !queue.is_empty())
    }
}

/// Whether the owner of what is at `address` can go on to release it while `agent` sleeps. One that was handed it while
/// blocked for it has not noted its end yet.
fn can_run(owner: &Agent, agent: &Agent, address: usize) -> bool {
    let is_elsewhere = owner.os_thread != agent.os_thread || fault!(ParksBesideTheHolder);
    let is_free = owner.blockage().is_none_or(|blockage| blockage.address == address) || fault!(ParksForABlockedHolder);
    is_elsewhere && is_free
}

impl Engine {
    /// The lease `generation` on the primitive at `address` is over: if it still stands, others get in.
    pub fn end_lease(&self, address: usize, generation: u64) {
        if let Some(Ok(mut section)) = self.open_queued(address) {
            section.end_lease(generation);
            section.finish();
        }
    }

    /// A waiter that may be settled leaves, or what it was settled with passes on: its thread ends, or nobody wants it.
    pub(crate) fn drop_waiter(&self, primitive: &'static dyn Primitive, place: Place, id: WaiterId, why: Leaving) {
        let address = place.address();
        let mut contents = self.contents(primitive.space(), address);
        let (hold, agent) = (contents.waiters[id].hold, contents.waiters[id].agent);
        match contents.collect(id) {
            Some(settlement) => {
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
        if primitive.space() == Space::Notifications {
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
            if let Kind::Async { token } = contents.waiters[id].kind {
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
            Settlement::Granted { abandoned_by } => {
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
            Settlement::Corrupt | Settlement::Refused => {}
        }
    }

    /// The end of an agent whose waits are all gone: whoever waits for what it holds alone gets it, marked abandoned.
    /// Primitives without waiters keep its id, by which the next to come knows the same.
    pub fn thread_ended(&self, agent: AgentId) {
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
