//! A loop comes, on its own thread, for the lock that it was offered; and what becomes of a lock reserved for one that
//! does not come in time.

use super::Locked;
use crate::agent::{At, Hold, Id, NOBODY, Stall};
use crate::enabled::TOP_LEVEL;
use crate::fault::Fault;

impl Locked<'_> {
    pub(super) fn claim(&mut self, id: Id) {
        self.state.party(id).offered = false;
        self.claim_for_first(id);
        let agent = self.state.agent_mut(id);
        agent.stall = Stall::No;
        agent.at = match agent.at {
            At::Claiming(words) if words > 1 => At::Claiming(words - 1),
            _ if agent.hold == Hold::Granted => At::Returning,
            _ => At::Js,
        };
    }

    fn claim_for_first(&mut self, id: Id) {
        if self.protocol.has(Fault::StaleClaimFrees) {
            self.free_dead_owner();
        }
        // An offer may outlive the party. Whoever comes for nobody must not free a dead owner's word either: it would not
        // take it, and the death scan would not find it any more.
        let Some((place, waiter)) = self.state.queue.first_of_party(id) else { return };
        let way = waiter.way;
        self.free_dead_owner();
        let owner = self.state.word.owner;
        if owner != NOBODY || !self.may_claim(id, place) {
            // If this very thread holds the lock, its own unlock offers again.
            let forgotten = self.protocol.has(Fault::ClaimsForgotten)
                || owner == NOBODY && self.protocol.has(Fault::ClaimOfReservedForgotten);
            self.state.party(id).claimed = owner != id && !forgotten;
            return;
        }
        // The one it was reserved for comes later, and has not come in vain.
        let reserved_for = self.state.reserved_for;
        if reserved_for != NOBODY && reserved_for != id {
            self.state.party(reserved_for).claimed = true;
        }
        self.reserve_for_nobody();
        self.state.queue.remove(id, way);
        self.party_left(id);
        let party = self.state.party(id);
        party.claimed = false;
        party.level = 0;
        self.give_to(id);
    }

    /// A free word may be claimed unless it is reserved for a party whose first waiter came earlier.
    fn may_claim(&self, id: Id, place: usize) -> bool {
        let reserved_for = self.state.reserved_for;
        let Some((reserved_place, _)) = self.state.queue.first_of_party(reserved_for) else { return true };
        reserved_for == id || place < reserved_place && !self.protocol.has(Fault::ReservationNotTakenOver)
    }

    pub(super) fn lease_over(&mut self) {
        let fault = self.protocol.fault;
        let reserved_for = self.state.reserved_for;
        self.reserve_for_nobody();
        if fault != Some(Fault::LeaseNeverGrows) {
            let level = &mut self.state.party(reserved_for).level;
            *level = (*level + 1).min(TOP_LEVEL);
        }
        if fault != Some(Fault::LeaseEndsSilently) {
            self.hand_on();
        }
    }
}
