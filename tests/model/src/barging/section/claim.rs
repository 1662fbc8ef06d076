//! A loop comes, on its own thread, for the lock that it was offered; it sleeps for a while where it finds it held; and
//! what becomes of a lock reserved for one that does not come in time.

use super::Locked;
use crate::barging::agent::{At, Hold, Id, NOBODY, Stall};
use crate::barging::fault::Fault;

impl Locked<'_> {
    pub(super) fn claim(&mut self, id: Id, parks: bool) {
        self.state.group(id).offered = false;
        let parks = parks && self.protocol.may_park(self.state, id);
        if parks {
            self.state.group(id).parked = true;
        } else {
            self.claim_for_first(id);
        }
        self.claimed(id, parks);
    }

    /// Whatever it was that ended its sleep, it looks once more.
    pub(super) fn park_over(&mut self, id: Id) {
        let group = self.state.group(id);
        group.parked = false;
        group.passed_by = false;
        let has_it = self.state.agent(id).hold == Hold::Granted;
        if has_it && self.protocol.has(Fault::SleeperDropsGrant) {
            self.state.agent_mut(id).hold = Hold::No;
        } else if !has_it && self.protocol.has(Fault::SleepEndsWithoutClaim) {
        } else if !has_it {
            self.claim_for_first(id);
        }
        self.claimed(id, false);
    }

    fn claimed(&mut self, id: Id, parks: bool) {
        let agent = self.state.agent_mut(id);
        agent.stall = Stall::No;
        agent.at = match agent.at {
            At::Claiming(words) if parks => At::Asleep(words),
            _ if parks => At::Asleep(1),
            At::Claiming(words) | At::Asleep(words) if words > 1 => At::Claiming(words - 1),
            _ if agent.hold == Hold::Granted => At::Returning,
            _ => At::Js,
        };
    }

    fn claim_for_first(&mut self, id: Id) {
        if self.protocol.has(Fault::StaleClaimFrees) {
            self.free_dead_owner();
        }
        // An offer may outlive the group. Whoever comes for nobody must not free a dead owner's word either: it would not
        // take it, and the death scan would not find it any more.
        let Some((place, waiter)) = self.state.queue.first_of_group(id) else { return };
        let way = waiter.way;
        self.free_dead_owner();
        let owner = self.state.word.owner;
        if owner != NOBODY || !self.may_claim(id, place) {
            // If this very thread holds the lock, its own unlock offers again.
            let forgotten = self.protocol.has(Fault::ClaimsForgotten)
                || owner == NOBODY && self.protocol.has(Fault::ClaimOfReservedForgotten);
            self.state.group(id).claimed = owner != id && !forgotten;
            return;
        }
        // The one it was reserved for comes later, and has not come in vain.
        let reserved_for = self.state.reserved_for;
        if reserved_for != NOBODY && reserved_for != id {
            self.state.group(reserved_for).claimed = true;
        }
        self.reserve_for_nobody();
        self.state.queue.remove(id, way);
        self.group_left(id);
        let group = self.state.group(id);
        group.claimed = false;
        self.grant_to(id);
    }

    /// A free word may be claimed unless it is reserved for a group whose first waiter came earlier.
    fn may_claim(&self, id: Id, place: usize) -> bool {
        let reserved_for = self.state.reserved_for;
        let Some((reserved_place, _)) = self.state.queue.first_of_group(reserved_for) else { return true };
        reserved_for == id || place < reserved_place && !self.protocol.has(Fault::ReservationNotTakenOver)
    }

    pub(super) fn lease_over(&mut self) {
        self.reserve_for_nobody();
        if !self.protocol.has(Fault::LeaseEndsSilently) {
            self.hand_off();
        }
    }
}
