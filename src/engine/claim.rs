//! Waiters come for what they wait for: a blocked thread that is woken, and an event loop that was offered it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::parker::Parker;
use super::primitive::{Hold, Order};
use super::queue::{Kind, Reservation, Settlement, Turn, Waiter, WaiterId};
use super::section::Section;
use crate::agents::{Agent, AgentId};
use crate::sync;

/// The outcome of a loop's coming for what it was offered.
pub(crate) enum Claim {
    /// Its first waiter has it.
    Granted {
        /// The waiter's.
        token: u32,
        /// The settlement of its wait.
        settlement: Settlement,
    },
    /// Another holds it: the next to release it will reserve it for this loop.
    Remembered,
    /// Another holds it: the loop may park until then at the latest, to be handed over to directly. It must claim again.
    Park(Arc<Parker>, Instant),
    /// No wait of this loop is for it, or this very thread holds it.
    InVain,
}

/// Whether a loop that comes in vain may park.
#[derive(Clone, Copy)]
pub(crate) enum Parks {
    /// It has parked in this turn, or has other things to do.
    Not,
    /// It may, for a fraction of the time since this: when it last parked.
    Since(Instant),
}

impl Section<'_> {
    /// A blocked waiter that was woken, or returns, tries to get in; if it cannot, it keeps its place. It may have been
    /// settled in the meantime.
    pub(crate) fn arrive(&mut self, id: WaiterId, is_going_away: bool) -> Option<Settlement> {
        if let Some(settlement) = self.contents.collect(id) {
            return Some(settlement);
        }
        if self.primitive.order() != Order::Barging {
            return None;
        }
        let was_freed = self.free_ended_owner();
        let waits_on = self.is_behind_an_exclusive(id) && !fault!(SliceEndsBeforeWriters)
            || self.gathers_ahead(Some(id)) && !fault!(SliceEndsBeforeGatherers);
        let waiter = &self.contents.waiters[id];
        if let Some(hold) = waiter.hold.filter(|_| !waits_on)
            && let Some(state) = self.primitive.grant(self.state, hold, waiter.agent)
        {
            let waiter = self.contents.remove(self.place.address(), id);
            self.contents.stats.served(&waiter);
            let settlement = self.admit(state);
            self.admit_others(hold);
            return Some(settlement);
        }
        let (queue, waiters) = self.queue().expect("a waiter has a queue");
        queue.lost(waiters, id);
        if let Kind::Blocked { away, .. } = &mut waiters[id].kind {
            *away = is_going_away || (*away && fault!(ReturnedThreadStaysAway));
        }
        if was_freed && !fault!(SliceEndFreesSilently) {
            self.hand_off();
        }
        if !is_going_away {
            self.bound_lease();
        }
        None
    }

    /// Whether a waiter that asks for a shared hold must not pass one ahead of it that asks for an exclusive one.
    fn is_behind_an_exclusive(&self, id: WaiterId) -> bool {
        let is_shared = self.contents.waiters[id].hold.is_some_and(Hold::is_shared);
        let queue = || &self.contents.queues[&self.place.address()];
        is_shared && queue().is_behind_an_exclusive(&self.contents.waiters, id)
    }

    /// Whether what is free is to be left to one that gathers it, ahead of a waiter or of whoever comes now.
    pub(super) fn gathers_ahead(&self, id: Option<WaiterId>) -> bool {
        if !self.primitive.is_divided() {
            return false;
        }
        let Some(queue) = self.contents.queues.get(&self.place.address()) else { return false };
        queue.gathers_ahead(&self.contents.waiters, id, |waiter| self.has_aged(waiter))
    }

    /// Whether a waiter has waited so long that the next turn is its own.
    pub(super) fn has_aged(&self, waiter: &Waiter) -> bool {
        sync::since(waiter.since) >= self.engine.patience.grant_after
    }

    /// The first asynchronous waiter of `agent` gets in if it can and nobody before it is to have it; else the claim is
    /// remembered.
    pub(crate) fn claim(&mut self, agent: &Arc<Agent>, parks: impl FnOnce(u32) -> Parks) -> Claim {
        if fault!(ClaimForNobodyFrees) {
            self.free_ended_owner();
        }
        if !self.has_group(agent.id) {
            // An offer that outlived its waiter. Whoever comes for nobody must not free an ended owner either: the scan
            // of that thread's end would not find it any more.
            return Claim::InVain;
        }
        let was_freed = self.free_ended_owner();
        let (queue, waiters) = self.contents.queue(self.place.address()).expect("it has a group");
        let group = queue.group(agent.id).expect("it has a group");
        group.turn = Turn::Idle;
        let first = group.first();
        let Kind::Async { token, .. } = waiters[first].kind else {
            unreachable!("groups have asynchronous waiters only")
        };
        let hold = waiters[first].hold.expect("who is offered a lock waits for one");
        // A reservation for it is over: it has come.
        let was_kept = self.drop_reservation_of(agent.id);
        let may_claim = was_kept || self.may_claim(agent.id, first, hold);
        let Some(state) = self.primitive.grant(self.state, hold, agent.id).filter(|_| may_claim) else {
            let claim = self.remember_claim(agent, first, parks(token));
            // It was kept for a wait that is gone, and this one asks for more.
            let was_opened = was_kept && !fault!(ClaimInVainOpensSilently);
            if was_freed && !fault!(ClaimInVainFreesSilently) || was_opened {
                self.hand_off();
            }
            return claim;
        };
        let settlement = self.admit(state);
        let waiter = self.contents.remove(self.place.address(), first);
        self.contents.stats.served(&waiter);
        self.admit_others(hold);
        Claim::Granted { token, settlement }
    }

    /// Whether a loop whose first waiter asks for `hold`, and for which nothing is kept, may have what there is. Beside a loop that
    /// will share it it may share it; what is reserved for a loop behind it it takes over, if it can use it.
    fn may_claim(&mut self, agent: AgentId, first: WaiterId, hold: Hold) -> bool {
        if self.is_behind_an_exclusive(first) && !fault!(ClaimsBeforeWriters)
            || self.gathers_ahead(Some(first)) && !fault!(ClaimsBeforeGatherers)
        {
            return false;
        }
        let (queue, _) = self.contents.queue(self.place.address()).expect("it has a group");
        let Some(Reservation { agent: other, hold: kept, .. }) = queue.reservation else { return true };
        if self.primitive.grant(self.state, hold, agent).is_some() {
            return true;
        }
        let is_before_me = queue.group_index(other).is_none_or(|place| Some(place) < queue.group_index(agent));
        if is_before_me && !fault!(ClaimsWhatIsKeptForAnother) {
            return false;
        }
        let open = self.primitive.unreserve(self.state, kept);
        if self.primitive.grant(open, hold, agent).is_none() {
            return false;
        }
        queue.reservation = None;
        if let Some(behind) = queue.group(other)
            && !fault!(DisplacedLoopIsForgotten)
        {
            behind.turn = Turn::Owed;
        }
        self.state = open;
        true
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
}

/// Whether the owner of what is at `address` can go on to release it while `agent` sleeps. One that was handed it while
/// blocked for it has not noted its end yet.
fn can_run(owner: &Agent, agent: &Agent, address: usize) -> bool {
    let is_elsewhere = owner.os_thread != agent.os_thread || fault!(ParksBesideTheHolder);
    let is_free = owner.blockage().is_none_or(|blockage| blockage.address == address) || fault!(ParksForABlockedHolder);
    is_elsewhere && is_free
}
