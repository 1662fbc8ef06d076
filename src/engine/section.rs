//! A section: one decision on a primitive's frozen words and its queue, and the transitions that it may make.
//!
//! It begins under the bucket's lock by setting W, which makes every fast path on the words fail, decides on the frozen
//! state, and ends by writing the words. How waiters get in is in [`super::handoff`], how they come for it in [`super::claim`],
//! how they leave in [`super::leave`].

use std::sync::Arc;
use std::time::Instant;

use super::contents::Contents;
use super::limit::Limit;
use super::parker::Parker;
use super::primitive::{Change, Corrupt, Decision, Facts, Hold, Primitive, Request, State};
use super::queue::{Queue, Settlement, WaiterId, Waiters};
use super::table::Engine;
use super::timers::Deadline;
use super::wakes::Wakes;
use crate::agents::{Agent, AgentId, Standing};
use crate::memory::Place;
use crate::sync::{self, MutexGuard};

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
    pub(super) fn begin(
        engine: &'e Engine,
        mut contents: MutexGuard<'e, Contents>,
        primitive: &'static dyn Primitive,
        place: Place,
    ) -> Result<Self, MutexGuard<'e, Contents>> {
        #[cfg(feature = "audit")]
        contents.check_queue(place.address());
        let queue = contents.queues.get_mut(&place.address());
        let facts = Facts {
            is_queued: queue.is_some(),
            is_reserved: queue.as_ref().is_some_and(|queue| queue.reservation.is_some()),
            agents: &engine.agents,
        };
        let is_other = queue.as_ref().is_some_and(|queue| !queue.primitive.is(primitive));
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
        let mut is_waiting = false;
        let Contents { queues, hold_serials, waiters, .. } = &mut *contents;
        if let Some(queue) = queues.get_mut(&address) {
            is_queued = !queue.is_empty();
            // If all who are first in line know that they may come, fast paths go on working meanwhile.
            is_waiting = is_queued && queue.must_be_looked_at(waiters);
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
            // No waiter is left who could report it: the words themselves tell the next to come.
            state = primitive.remember_ended(state, ended);
        }
        let contents = (!fault!(ThawsAfterTheBucket)).then_some(contents);
        primitive.thaw(place, frozen, state, is_waiting);
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

    /// Returns the state that a waiter that queues now finds.
    pub(crate) fn found(&self) -> u32 {
        self.primitive.found(self.state)[0]
    }

    /// Returns the agent that holds it alone, as it will be written.
    pub(crate) fn owner(&self) -> AgentId {
        self.primitive.owner(self.state)
    }

    /// An owner whose thread has ended loses it. True if there was one: then, unless the caller gets in itself, it has to
    /// hand off.
    pub(crate) fn free_ended_owner(&mut self) -> bool {
        let owner = self.primitive.remembered(self.state);
        let is_ended = owner != 0 && self.engine.agents.standing(owner) == Standing::Ended;
        if is_ended {
            self.abandoned_by = Some(owner);
            self.state = self.primitive.ended(self.state);
        }
        is_ended
    }

    /// `agent` comes. Returns how its wait is settled; `None` if it has to wait.
    pub(crate) fn enter(&mut self, agent: AgentId, request: Request) -> Option<Settlement> {
        let is_queued = self.queue().is_some();
        if self.gathers_ahead(None) && !fault!(NewcomerTakesWhatIsGathered) {
            return None;
        }
        match self.primitive.enter(self.state, request, agent, is_queued) {
            Decision::Granted(state) => {
                let settlement = self.admit(state);
                if let Some(hold) = request.hold() {
                    self.note_holder(agent, hold, settlement.report());
                    self.admit_others(hold);
                }
                Some(settlement)
            }
            Decision::Wait => None,
            Decision::Refused => Some(self.refusal()),
        }
    }

    /// Returns the settlement of a wait for which there is nothing to wait.
    pub(super) fn refusal(&self) -> Settlement {
        Settlement::Refused { found: self.primitive.found(self.state)[1] }
    }

    /// A waiter is let in; returns how its wait is settled.
    pub(super) fn admit(&mut self, state: State) -> Settlement {
        let found = self.primitive.found(if fault!(FindsWhatItLeaves) { state } else { self.state })[0];
        self.state = state;
        if let Some((queue, _)) = self.contents.queue(self.place.address()) {
            queue.kept_since = None;
        }
        Settlement::Granted { abandoned_by: self.take_report(), found }
    }

    /// The ended owner that the next to get in has to report.
    pub(super) fn take_report(&mut self) -> Option<AgentId> {
        self.abandoned_by.take().inspect(|_| self.contents.stats.took_report())
    }

    /// The next to get in reports it: this one did not.
    pub(super) fn leave_report(&mut self, abandoned_by: Option<AgentId>) {
        if abandoned_by.is_some() {
            self.contents.stats.gave_report_back();
            self.abandoned_by = self.abandoned_by.or(abandoned_by);
        }
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
    /// If its code did run after all and released it, or it can be no one else's, nothing changes: false.
    pub(crate) fn revoke(&mut self, hold: Hold, agent: AgentId, abandoned_by: Option<AgentId>) -> bool {
        let agent = if fault!(RevokesAnothersHold) { self.owner() } else { agent };
        let Some(state) = self.primitive.release(self.state, hold, agent) else { return false };
        if !self.forget_holder(agent, hold) {
            return false;
        }
        self.state = state;
        self.leave_report(abandoned_by);
        if !fault!(RevokedHoldIsLost) {
            self.hand_off();
        }
        true
    }

    /// Others may get in beside one that has just got in.
    pub(super) fn admit_others(&mut self, hold: Hold) {
        if !hold.is_exclusive() {
            self.hand_off();
        }
    }

    /// Makes a change; false if that cannot be: then nothing changes.
    pub(crate) fn change(&mut self, change: Change, agent: AgentId) -> bool {
        let changed = self.primitive.change(self.state, change, agent);
        self.state = changed.unwrap_or(self.state);
        changed.is_some()
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
        limit: Limit,
        since: Instant,
    ) -> WaiterId {
        self.contents.stats.queued(hold, true);
        self.state = self.primitive.queued(self.state, hold);
        let arrival = self.contents.arrival(since, hold, limit);
        let (queue, waiters) = self.contents.queue_or_new(self.place, self.primitive);
        let id = queue.push_blocked(waiters, arrival, agent, parker);
        queue.spinning = Some(id);
        id
    }

    /// The deadline of the promise that is queued next.
    pub(crate) fn next_deadline(&mut self, serial: u64) -> Deadline {
        let Contents { waiters, next_ticket: ticket, .. } = &mut *self.contents;
        Deadline { serial, primitive: self.primitive, place: self.place, waiter: waiters.vacant_id(), ticket: *ticket }
    }

    /// Puts a pending promise of `agent` at the end of the queue.
    pub(crate) fn push_async(&mut self, agent: &Arc<Agent>, token: u32, hold: Option<Hold>, limit: Limit) -> WaiterId {
        self.contents.stats.queued(hold, false);
        self.state = self.primitive.queued(self.state, hold);
        let arrival = self.contents.arrival(sync::now(), hold, limit);
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
        // The queue is looked at as it is: the last waiter may just have left it.
        let Some((queue, _)) = self.contents.queue(self.place.address()) else { return false };
        let Some(had) = queue.reservation.take_if(|reservation| reservation.agent == agent) else { return false };
        self.state = self.primitive.unreserve(self.state, had.hold);
        true
    }

    pub(super) fn queue(&mut self) -> Option<(&mut Queue, &mut Waiters)> {
        self.contents.queue(self.place.address()).filter(|(queue, _)| !queue.is_empty())
    }
}
