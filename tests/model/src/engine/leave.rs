//! Ways out of the queue without the word: timeout, abort, the clock, the end of a thread; and what that leaves behind.

use super::fault::Fault;
use super::section::Locked;
use super::state::{At, Intent, Life, Slot, Waiter};
use super::step::Way;
use crate::primitives::{Id, NOBODY, Request};

impl Locked<'_> {
    /// Too late once it is granted.
    pub(super) fn quit(&mut self, id: Id) {
        if self.state.part(id, self.word).granted.is_some() {
            if self.engine.has(Fault::QuitAfterGrant) {
                self.state.part_mut(id, self.word).granted = None;
                self.state.agent_mut(id).at = At::Js;
            } else {
                self.accept(id);
            }
            return;
        }
        if self.take_out(id).is_some_and(|waiter| waiter.way == Way::Blocked) {
            self.state.agent_mut(id).at = At::Js;
        }
        self.left();
    }

    /// The time of a promise is over: it leaves, or what it was granted and its loop has not come for passes on.
    pub(super) fn expire(&mut self, id: Id) {
        if self.state.part(id, self.word).granted.is_none() {
            self.take_out(id);
            if !self.engine.has(Fault::ExpiryLetsNobodyIn) {
                self.left();
            }
        } else if !self.engine.has(Fault::ExpiredWaitKeepsItsGrant)
            && let Some((_, request)) = self.state.part_mut(id, self.word).granted.take()
        {
            self.value = self.value.release(request);
            self.hand_off();
        }
    }

    /// The first of two waits of a loop gives up; the other stands at the end of the queue. What is kept for the loop stays so.
    pub(super) fn ask_next(&mut self, id: Id, request: Request) {
        let Some(place) = self.state.place(id, self.word) else { return };
        let first = self.state.queue.remove(place);
        self.state.queue.push(Waiter { request, aged: false, ..first });
        self.left();
    }

    fn left(&mut self) {
        let looks_free = self.value.owner() == NOBODY && !self.state.agents.iter().any(|a| a.parts[self.word].has > 0);
        if looks_free || !self.engine.has(Fault::LeaverLooksForFreeWord) {
            self.hand_off();
        }
    }

    /// A grant that it does not know of goes on as if it had never been; what it holds for certain is given back; and in any case
    /// somebody looks whose turn it is, since the thread may have ended just before it would have.
    pub(super) fn leave(&mut self, id: Id) {
        let grant = self.state.part_mut(id, self.word).granted.take();
        if let Some((_, request)) = grant.filter(|_| !self.engine.has(Fault::EndKeepsGrant)) {
            self.value = self.value.release(request);
        }
        let waited = self.take_out(id).is_some();
        let slot = self.state.part(id, self.word).slot;
        if !self.engine.has(Fault::EndForgetsRegister) {
            self.give_back(id, slot);
        }
        let is_held = slot.count > 0 || grant.is_some() || waited;
        let part = self.state.part_mut(id, self.word);
        part.slot = Slot::default();
        part.inside = None;
        part.given_back = true;
        if is_held || !self.engine.has(Fault::EndLooksAtHeldOnly) {
            self.hand_off();
        }
        let frees_one = self.engine.has(Fault::EndFreesOneWord);
        let agent = self.state.agent_mut(id);
        let words = self.engine.words.len();
        if frees_one || agent.parts[..words].iter().all(|part| part.given_back) {
            agent.life = Life::Marking;
        }
    }

    fn give_back(&mut self, id: Id, slot: Slot) {
        let unit = self.unit(id);
        let unit_count = unit.count();
        let certain = match slot.intent {
            _ if self.engine.has(Fault::DoubtGivenBack) => slot.count,
            Intent::Release => slot.count.saturating_sub(unit_count),
            Intent::None | Intent::Acquire => slot.count,
        };
        let in_slots = self.engine.is_in_slots(unit);
        if !in_slots && certain > 0 {
            self.value = self.value.release(unit);
        }
        let part = self.state.part_mut(id, self.word);
        part.in_doubt = slot.intent != Intent::None;
        if !in_slots {
            part.has = part.has.saturating_sub(certain);
        }
    }
}
