//! An event loop deals with its notices: it comes for what it was offered, and collects what others have settled.

use super::claim::{Claim, Parks};
use super::client::Client;
use super::event_loop::{Delivery, EventLoop, PendingWait, Unaccepted};
use super::primitive::Corrupt;
use super::queue::Settlement;
use super::reply::Settled;
use super::wait::Outcome;
use crate::agents::{Notice, SPARE};
use crate::sync;

impl<C: Client> EventLoop<'_, C> {
    /// The next wait of this loop that is over. Calling it again says that the thread's code knows of the one before.
    pub fn next_settled(&mut self) -> Option<Settled> {
        match self.unaccepted.take() {
            Some(Unaccepted::Settled { wait, settlement, .. }) => {
                self.engine.learned(wait.primitive, wait.place, settlement);
            }
            Some(Unaccepted::Client) => self.clients.accepted(&self.agent),
            Some(Unaccepted::Kept { .. }) | None => {}
        }
        loop {
            let Some(notice) = self.notices.pop_front() else {
                self.agent.drain(&mut self.notices);
                if self.notices.is_empty() {
                    self.notices.shrink_to(SPARE);
                    return None;
                }
                continue;
            };
            let settled = match notice {
                Notice::Offer(address) => {
                    // Once in a turn is enough to wait for: a loop that waits for many locks has other things to do.
                    let may_wait = (!self.has_parked || fault!(ParksTwiceInATurn)) && self.notices.is_empty();
                    self.claim(address, may_wait)
                }
                Notice::Settled(token) => self.deliver(token),
                Notice::Message(message) => {
                    self.clients.message(message);
                    None
                }
            };
            if settled.is_some() {
                return settled;
            }
        }
    }

    /// Whether it has parked in this turn: then its thread says when the next begins.
    pub fn has_parked(&self) -> bool {
        self.has_parked
    }

    /// Its thread's loop turns once more. What drains in between, be it by microtasks, is of one turn.
    pub fn turned(&mut self) {
        self.has_parked = false;
    }

    /// The loop comes for what it was offered, and waits for a moment if it comes in vain and may.
    fn claim(&mut self, address: usize, may_wait: bool) -> Option<Settled> {
        let (waits, last_park) = (&self.waits, self.last_park);
        let parks = |token: u32| {
            let stays_awake = waits.get(token).is_some_and(|wait| wait.stays_awake) && !fault!(ParksThoughItStaysAwake);
            if may_wait && !stays_awake { Parks::Since(last_park) } else { Parks::Not }
        };
        let mut section = match self.engine.open_queued(address)? {
            Ok(section) => section,
            Err(Corrupt) => return self.end_group(address),
        };
        let (primitive, place) = (section.primitive, section.place);
        let claim = section.claim(&self.agent, parks);
        section.finish();
        match claim {
            Claim::Granted { token, settlement } => Some(self.claimed(token, settlement)),
            Claim::InVain => None,
            Claim::Park(parker, until) => {
                // Until the lock is handed over to this loop: then a notice is in its inbox.
                parker.sleep_until(until);
                self.last_park = sync::now();
                self.has_parked = true;
                self.claim(address, false)
            }
            Claim::Remembered if may_wait && self.engine.spin_until_reserved(primitive, place) => {
                // Kept for this loop, most likely: so it need not sleep and be woken once more.
                self.claim(address, false)
            }
            Claim::Remembered => None,
        }
    }

    fn claimed(&mut self, token: u32, settlement: Settlement) -> Settled {
        let wait = self.waits.remove(token);
        self.settled(token, wait, settlement)
    }

    fn settled(&mut self, token: u32, wait: PendingWait<C::Of>, settlement: Settlement) -> Settled {
        if !fault!(GrantedWaitKeepsDeadline) {
            self.stop_clock(&wait);
        }
        let PendingWait { primitive, place, hold, .. } = wait;
        if let (Settlement::Granted { .. }, Some(hold)) = (settlement, hold) {
            self.engine.note_hold(primitive, place, self.agent.id, hold);
        }
        let settled = Settled { token, place, is_for_hold: hold.is_some(), outcome: settlement.outcome() };
        let is_clients = self.clients.settled(&self.agent, wait.of, &settled);
        self.unaccepted = match settlement {
            _ if is_clients => Some(Unaccepted::Client),
            Settlement::Granted { .. } | Settlement::Notified(_) => {
                Some(Unaccepted::Settled { token, wait, settlement })
            }
            Settlement::Refused { .. } | Settlement::Corrupt | Settlement::Expired => None,
        };
        settled
    }

    /// The words at `address` were overwritten: all waits of this loop for them end.
    fn end_group(&mut self, address: usize) -> Option<Settled> {
        let tokens = self.engine.settle_corrupt(address, self.agent.id);
        self.notices.extend(tokens.into_iter().map(Notice::Settled));
        None
    }

    /// A wait was settled by another thread, if this is not an old notice.
    fn deliver(&mut self, token: u32) -> Option<Settled> {
        let wait = self.waits.get(token)?;
        if wait.delivery == Delivery::KeptAndReturned {
            return None;
        }
        if wait.delivery == Delivery::Kept && self.settlement(wait)? != Settlement::Expired {
            self.stop_clock(wait);
            let place = wait.place;
            self.waits[token].delivery = Delivery::KeptAndReturned;
            self.unaccepted = Some(Unaccepted::Kept { token });
            return Some(Settled { token, place, is_for_hold: false, outcome: Ok(Outcome::GRANTED) });
        }
        let settlement = self.collect(wait)?;
        let wait = self.waits.remove(token);
        Some(self.settled(token, wait, settlement))
    }
}
