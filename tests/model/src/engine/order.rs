//! Whose turn it is: the one way on for a word that may have something to give.

use super::fault::Fault;
use super::section::Locked;
use super::state::{State, Waiter, Wrong};
use super::step::Way;
use crate::primitives::{Id, NOBODY, Request, Word};

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
    /// first blocked writer gets it if it has aged; else it is woken, as all behind it whom permits are left for. A thread that is
    /// away, or a loop that was offered the word and has not come, holds up nobody; a loop that permits are to be gathered for is
    /// asked first whether it comes.
    fn hand_off_barging(&mut self) {
        let waiters: Vec<Waiter> = self.state.waiters(self.word).copied().collect();
        for waiter in waiters.into_iter().filter(|waiter| !waiter.away) {
            let Waiter { agent, way, request, .. } = waiter;
            if self.granted(request, agent).is_none() {
                let part = self.state.part_mut(agent, self.word);
                if way == Way::Async && request.gathers() && !part.claimed && !self.engine.has(Fault::GathersUnasked) {
                    part.offered = true;
                    continue;
                }
                let has_not_come = way == Way::Async && part.offered;
                if has_not_come && !self.engine.has(Fault::WaitsForStalledLoop) || self.engine.has(Fault::BatchSkips) {
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
                (Way::Blocked, Request::Permits(_)) if !waiter.aged => return self.wake_blocked(),
                (Way::Blocked, _) => {
                    self.give(waiter);
                    if request == Request::Exclusive || self.engine.has(Fault::BatchOfOne) {
                        return;
                    }
                }
            }
        }
    }

    /// Wakes a blocked waiter that could be served with all before it.
    fn wake_blocked(&mut self) {
        let mut left = self.value;
        for place in 0..self.state.queue.len() {
            let waiter = self.state.queue[place];
            if waiter.word != self.word || waiter.way == Way::Async || waiter.away {
                continue;
            }
            let Some(rest) = left.grant(waiter.request, waiter.agent, None) else { return };
            left = rest;
            self.state.queue[place].woken = true;
            if self.engine.has(Fault::BatchOfOne) {
                return;
            }
        }
    }

    /// Whether nobody may pass who comes for permits, or waits at `place`: one of the first in line has aged, asks for several and
    /// will come for them.
    pub(super) fn is_behind_a_gatherer(&self, place: usize) -> bool {
        gathers_ahead(self.state, self.word, place)
    }

    /// In strict order, nobody is served while one that came before waits; in barging order, no reader while a writer that came
    /// before does, unless the word was kept for the reader.
    pub(super) fn note_order(&mut self, served: Waiter) {
        let Some(place) = self.state.place(served.agent, self.word) else { return };
        let overtakes = if self.engine.is_strict(self.word) {
            self.state.queue[..place].iter().any(|waiter| waiter.word == self.word)
        } else {
            self.must_not_pass(place)
        };
        if overtakes {
            self.state.wrong = Some(Wrong::Overtaken);
        }
    }

    /// Ghost: somebody was served who had to leave it to others.
    pub(super) fn note_gatherer(&mut self, gathers: bool) {
        if gathers && !self.engine.is_strict(self.word) {
            self.state.wrong = Some(Wrong::Overtaken);
        }
    }

    /// Whether it must leave to others what it could have.
    pub(super) fn must_not_pass(&self, place: usize) -> bool {
        self.is_behind_a_writer(place) || matches!(self.value, Word::Semaphore(_)) && self.is_behind_a_gatherer(place)
    }

    /// Whether a reader waits behind a writer that will come: one that is not away, nor a loop that was offered the word and
    /// has not come.
    fn is_behind_a_writer(&self, place: usize) -> bool {
        let will_come = |w: &Waiter| match w.way {
            Way::Blocked => !w.away,
            Way::Async => !self.state.part(w.agent, self.word).offered,
        };
        let ahead = || self.state.queue[..place].iter().filter(|w| w.word == self.word);
        self.state.queue[place].request == Request::Shared
            && ahead().any(|w| w.request == Request::Exclusive && will_come(w))
    }

    /// Whether a release has to look at the queue: one of the first in line knows of nothing that it could come for.
    pub(super) fn must_look(&self) -> bool {
        let waiters = self.state.waiters(self.word).filter(|waiter| !waiter.away);
        for Waiter { agent, way, woken, .. } in waiters.copied() {
            match way {
                Way::Blocked => return !woken && !self.engine.has(Fault::WOfTheWokenOnly),
                Way::Async if !self.state.part(agent, self.word).offered => return true,
                Way::Async => {}
            }
        }
        false
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

    /// True: the word is kept for it, to write, since it came before in vain. One word is kept for one loop: others that came in
    /// vain have their turn afterwards.
    fn offer(&mut self, id: Id, request: Request) -> bool {
        let blocked = matches!(self.state.agent(id).at, super::state::At::Parked(_));
        let is_kept = self.state.reserved_for[self.word] != NOBODY;
        let forgets = self.engine.has(Fault::OneLeaseInABatch);
        let part = self.state.part_mut(id, self.word);
        part.offered = true;
        if blocked || is_kept && forgets {
            part.claimed = false;
        }
        if is_kept || !part.claimed {
            return false;
        }
        part.claimed = false;
        if request == Request::Shared && self.engine.has(Fault::KeepsNothingForReaders) {
            return false;
        }
        self.value = self.value.reserve(request);
        self.state.reserved_for[self.word] = id;
        self.state.kept[self.word] = request;
        // A word that is kept for a reader keeps out writers only.
        request == Request::Exclusive
    }
}

/// Whether one of the first in line, ahead of `place`, is to have the permits that come back: it has aged, asks for several, and
/// is there, or its loop has come and could not be let in.
pub fn gathers_ahead(state: &State, word: usize, place: usize) -> bool {
    let ahead = state.queue[..place].iter().filter(|waiter| waiter.word == word && !waiter.away);
    for waiter in ahead {
        let gathers = waiter.aged && waiter.request.gathers();
        match waiter.way {
            Way::Blocked => return gathers,
            Way::Async if gathers && state.part(waiter.agent, word).has_come_in_vain() => return true,
            Way::Async => {}
        }
    }
    false
}
