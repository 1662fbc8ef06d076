//! The hand-off of a free word that is not reserved: after an unlock, a leaving, the end of a lease, the end of a thread.

use super::Locked;
use crate::barging::agent::{Id, NOBODY};
use crate::barging::fault::Fault;
use crate::barging::queue::Way;
use crate::barging::scenario::Bound;

impl Locked<'_> {
    pub(super) fn hand_off(&mut self) {
        let blocked = self.first_blocked();
        let overtakes = self.protocol.has(Fault::SleeperOvertakes);
        let end = blocked.filter(|_| !overtakes).map_or(usize::MAX, |(place, ..)| place);
        let ahead = self.state.queue.groups_before(end);

        self.note_passed_by();
        if self.protocol.has(Fault::SleeperFirst)
            && let Some(place) = ahead.iter().position(|&group| self.state.agent(group).group.parked)
        {
            return self.hand_to_sleeper(&ahead, place);
        }
        for (place, &group) in ahead.iter().enumerate() {
            if self.state.agent(group).group.parked && !self.protocol.has(Fault::SleeperForgotten) {
                return self.hand_to_sleeper(&ahead, place);
            }
            if !std::mem::take(&mut self.state.group(group).claimed) {
                continue;
            }
            if self.state.agent(group).is_blocked_natively() {
                continue; // it could not come for it
            }
            if !self.protocol.has(Fault::ReservesWithoutOffers) {
                self.offer(&ahead[..place]);
            }
            self.reserve_for(group);
            return;
        }

        if let Some((_, id, aged)) = blocked {
            let spinning = self.spinning();
            let is_passed_by = self.protocol.has(Fault::SpinnerFirst) && spinning.is_some();
            if aged && !self.state.cool && !self.protocol.has(Fault::NeverHandsOver) && !is_passed_by {
                if !self.protocol.has(Fault::HandsOverWithoutOffers) {
                    self.offer(&ahead);
                }
                self.grant(id);
                self.state.cool = true;
                return;
            }
            if let Some(id) = spinning {
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
        // A loop may be busy for ever, so none of them counts as the one that comes.
        self.offer(&ahead);
    }

    /// The first blocked waiter that can be counted on: its place, whose it is, and whether it has aged.
    fn first_blocked(&self) -> Option<(usize, Id, bool)> {
        let count_away = self.protocol.has(Fault::WakesAway);
        let mut waiters = self.state.queue.iter().enumerate();
        let (place, waiter) = waiters.find(|(_, w)| w.is_blocked() && (!w.away || count_away))?;
        Some((place, waiter.agent, waiter.aged))
    }

    /// The blocked waiter that looks on, if it still waits. Whether it does nobody can know; the word is safe with it.
    fn spinning(&self) -> Option<Id> {
        let id = self.state.spinning;
        self.state.queue.find(id, Way::Blocked).filter(|waiter| !waiter.away).map(|_| id)
    }

    fn grant(&mut self, id: Id) {
        if self.state.spinning == id {
            self.state.spinning = NOBODY;
        }
        if !self.protocol.has(Fault::GrantLeavesQueued) {
            self.state.queue.remove(id, Way::Blocked);
        }
        self.grant_to(id);
    }

    /// A loop that sleeps for the word has it at once.
    fn hand_to_sleeper(&mut self, ahead: &[Id], place: usize) {
        let id = ahead[place];
        self.offer(&ahead[..place]);
        let Some((_, waiter)) = self.state.queue.first_of_group(id) else { return };
        let way = waiter.way;
        self.state.queue.remove(id, way);
        self.group_left(id);
        self.state.group(id).parked = false;
        self.grant_to(id);
    }

    /// Only for the scenarios in which holds are shorter than the sleep of a loop.
    fn note_passed_by(&mut self) {
        if self.protocol.scenario.bound != Bound::ShortHolds {
            return;
        }
        for id in self.state.ids() {
            let group = self.state.group(id);
            group.passed_by = group.parked;
        }
    }

    /// Keeps the word for this group, and groups ahead of it, until the lease is over.
    fn reserve_for(&mut self, group: Id) {
        self.state.reserved_for = group;
        self.state.word = self.state.word.reserve(true);
        self.offer(&[group]);
    }

    /// Tells these loops that the word is free. Delivered by this thread once it has left the bucket.
    fn offer(&mut self, groups: &[Id]) {
        let most = if self.protocol.has(Fault::OffersFirstOnly) { 1 } else { usize::MAX };
        for &group in groups.iter().take(most) {
            let already = std::mem::replace(&mut self.state.group(group).offered, true);
            if !already && self.protocol.scenario.split_offers {
                self.state.outbox(self.thread).add(group);
            }
        }
    }
}
