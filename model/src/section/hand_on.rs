//! The one way on for a free, unfenced word: for unlock, leave, the end of a lease, and death.

use super::Locked;
use crate::agent::{Id, NOBODY};
use crate::fault::Fault;
use crate::queue::Way;

impl Locked<'_> {
    pub(super) fn hand_on(&mut self) {
        let blocked = self.first_blocked();
        let end = blocked.map_or(usize::MAX, |(place, ..)| place);
        let ahead = self.state.queue.parties_before(end);

        for (place, &party) in ahead.iter().enumerate() {
            if !std::mem::take(&mut self.state.party(party).claimed) {
                continue;
            }
            if self.state.agent(party).is_blocked_natively() {
                continue; // it could not come for it
            }
            if !self.protocol.has(Fault::ReservesWithoutOffers) {
                self.offer(&ahead[..place]);
            }
            self.reserve_for(party);
            return;
        }

        if let Some((_, id, aged)) = blocked {
            let lingering = self.lingering();
            let is_passed_by = self.protocol.has(Fault::LingererFirst) && lingering.is_some();
            if aged && !self.state.cool && !self.protocol.has(Fault::NeverGives) && !is_passed_by {
                if !self.protocol.has(Fault::GivesWithoutOffers) {
                    self.offer(&ahead);
                }
                self.grant(id);
                self.state.cool = true;
                return;
            }
            if let Some(id) = lingering {
                self.offer(&ahead);
                self.grant(id);
                return;
            }
            // One woken thread at a time: it takes the word, or sets W when it finds it taken.
            if !self.state.queue.any_woken()
                && let Some(waiter) = self.state.queue.find_mut(id, Way::Blocked)
            {
                waiter.woken = true;
            }
        }
        // A loop may be busy for ever, so none of them counts as the one on its way.
        self.offer(&ahead);
    }

    /// The first blocked waiter that can be counted on: its place, whose it is, and whether it has aged.
    fn first_blocked(&self) -> Option<(usize, Id, bool)> {
        let count_away = self.protocol.has(Fault::BatonToAway);
        let mut waiters = self.state.queue.iter().enumerate();
        let (place, waiter) = waiters.find(|(_, w)| w.is_blocked() && (!w.away || count_away))?;
        Some((place, waiter.agent, waiter.aged))
    }

    /// The blocked waiter that looks on, if it still waits. Whether it does nobody can know; the word is safe with it.
    fn lingering(&self) -> Option<Id> {
        let id = self.state.lingering;
        self.state.queue.find(id, Way::Blocked).filter(|waiter| !waiter.away).map(|_| id)
    }

    fn grant(&mut self, id: Id) {
        if self.state.lingering == id {
            self.state.lingering = NOBODY;
        }
        if !self.protocol.has(Fault::GrantLeavesQueued) {
            self.state.queue.remove(id, Way::Blocked);
        }
        self.give_to(id);
    }

    /// Nobody but this party, and parties ahead of it, may take the word until the lease is over.
    fn reserve_for(&mut self, party: Id) {
        self.state.reserved_for = party;
        self.state.word.fenced = true;
        self.offer(&[party]);
    }

    /// Tells these loops that the word is free. Delivered by this thread once it has left the bucket.
    fn offer(&mut self, parties: &[Id]) {
        let most = if self.protocol.has(Fault::OffersFirstOnly) { 1 } else { usize::MAX };
        for &party in parties.iter().take(most) {
            let already = std::mem::replace(&mut self.state.party(party).offered, true);
            if !already && self.protocol.scenario.split_offers {
                self.state.errand(self.thread).add(party);
            }
        }
    }
}
