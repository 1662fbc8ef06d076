//! The native side of `lock`, `lockAsync`, their one-try forms, and `unlock`.

use super::Locked;
use crate::barging::agent::{At, Hold, Id, Verb};
use crate::barging::fault::Fault;
use crate::barging::queue::{Waiter, Way};

impl Locked<'_> {
    pub(super) fn verb(&mut self, id: Id) {
        match self.state.agent(id).at {
            At::Calling(Verb::Unlock) => self.unlock(id),
            At::Calling(verb) => self.lock(id, verb, None),
            At::Decided(verb, takes) => self.lock(id, verb, Some(takes)),
            at => unreachable!("a verb at {at:?}"),
        }
    }

    fn unlock(&mut self, id: Id) {
        let agent = self.state.agent_mut(id);
        agent.hold = Hold::No;
        agent.at = At::Js;
        self.state.word = self.state.word.release();
        if !self.protocol.has(Fault::UnlockWakesNobody) {
            self.hand_off();
        }
    }

    /// `decided`: only under a fault, what the word looked like before the bucket was locked.
    fn lock(&mut self, id: Id, verb: Verb, decided: Option<bool>) {
        let freed = self.free_dead_owner();
        let open = decided.unwrap_or(self.state.word.is_open());
        if open && (!verb.is_async() || self.protocol.may_take_async(self.state, id)) {
            self.protocol.note_overtaking(self.state, id, verb);
            self.take(id);
            return;
        }
        if verb.is_once() {
            self.state.agent_mut(id).at = At::Js;
        } else {
            self.enqueue(id, verb);
        }
        // Freed on the dead owner's behalf, and not taken: the death scan will not find it any more.
        if freed && !(verb.is_once() && self.protocol.has(Fault::TryFreesSilently)) {
            self.hand_off();
        }
        // This thread's loop cannot turn while it is blocked, so its reservation goes on. The thread is in the queue
        // already: what it gives up may well come back to it.
        if verb == Verb::Lock && self.state.reserved_for == id && !self.protocol.has(Fault::OwnReservationKept) {
            self.reserve_for_nobody();
            if !self.protocol.has(Fault::OwnReservationDropped) {
                self.hand_off();
            }
        }
    }

    fn enqueue(&mut self, id: Id, verb: Verb) {
        let (way, at) = if verb.is_async() {
            (self.protocol.free_task(self.state, id).expect("only called with a free task"), At::Js)
        } else {
            (Way::Blocked, At::Parked)
        };
        self.state.queue.push(Waiter::new(id, way));
        self.state.agent_mut(id).at = at;
    }
}
