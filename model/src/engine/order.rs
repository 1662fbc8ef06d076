//! Whose turn it is: the one way on for a word that may have something to give.

use super::fault::Fault;
use super::section::Locked;
use super::state::Waiter;
use super::step::Way;
use crate::primitives::{Id, NOBODY, Request};

impl Locked<'_> {
    pub(super) fn hand_off(&mut self) {
        if self.engine.is_strict(self.word) { self.hand_off_in_order() } else { self.hand_off_barging() }
    }

    /// The first in the queue gets it, event loop or not; then the next, while there is something for it.
    fn hand_off_in_order(&mut self) {
        let mut waiters: Vec<Waiter> = self.state.waiters(self.word).copied().collect();
        if self.engine.has(Fault::BatchOfOne) {
            waiters.truncate(1);
        }
        for waiter in waiters {
            if !self.give(waiter) && !self.engine.has(Fault::BatchSkips) {
                return;
            }
        }
    }

    /// Down the queue, while there would be something for each: blocked readers get it, loops are offered it, and the
    /// first blocked writer gets it if it has aged; else it is woken.
    fn hand_off_barging(&mut self) {
        if self.state.reserved_for[self.word] != NOBODY {
            return self.offer_again();
        }
        let waiters: Vec<Waiter> = self.state.waiters(self.word).copied().collect();
        for waiter in waiters {
            let Waiter { agent, way, request, .. } = waiter;
            if self.granted(request, agent).is_none() {
                if self.engine.has(Fault::BatchSkips) {
                    continue;
                }
                return;
            }
            match (way, request) {
                (Way::Async, _) => {
                    if self.offer(agent, request) {
                        return;
                    }
                }
                (Way::Blocked, Request::Exclusive) if !waiter.aged => {
                    let is_woken = self.state.waiters(self.word).any(|w| w.woken);
                    if let Some(place) = self.state.place(agent, self.word).filter(|_| !is_woken) {
                        self.state.queue[place].woken = true;
                    }
                    return;
                }
                (Way::Blocked, _) => {
                    self.give(waiter);
                    if request == Request::Exclusive || self.engine.has(Fault::BatchOfOne) {
                        return;
                    }
                }
            }
        }
    }

    /// The loop that the word is kept for may have come while a reader counted itself in vain. (Else its lease ends.)
    fn offer_again(&mut self) {
        let id = self.state.reserved_for[self.word];
        let Some(place) = self.state.place(id, self.word) else { return };
        let request = self.state.queue[place].request;
        let kept = self.value;
        self.value = kept.reserve(None);
        let could_have_it = self.granted(request, id).is_some();
        self.value = kept;
        if could_have_it && !self.engine.has(Fault::KeptAndNotOfferedAgain) {
            self.state.part_mut(id, self.word).offered = true;
        }
    }

    /// A grant by this thread to another, final. False: there is nothing for it.
    fn give(&mut self, waiter: Waiter) -> bool {
        let Some(value) = self.granted(waiter.request, waiter.agent) else { return false };
        self.value = value;
        self.note_order(waiter);
        self.take_out(waiter.agent);
        self.state.part_mut(waiter.agent, self.word).granted = Some((waiter.way, waiter.request));
        true
    }

    /// True: the word is kept for it, since it came before in vain.
    fn offer(&mut self, id: Id, request: Request) -> bool {
        let blocked = matches!(self.state.agent(id).at, super::state::At::Parked(_));
        let part = self.state.part_mut(id, self.word);
        part.offered = true;
        let reserves = std::mem::take(&mut part.claimed) && !blocked;
        if reserves {
            self.value = self.value.reserve(Some(request));
            self.state.reserved_for[self.word] = id;
        }
        // A word that is kept for a reader keeps out writers only.
        reserves && request == Request::Exclusive
    }
}
