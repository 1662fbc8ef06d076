//! Requests for what is kept outside of the process: each is a wait of the engine, which an outsider settles.
//!
//! The wait is queued before the outsider knows of it, so that whoever answers finds it there. An answer is put down under the lock
//! under which its wait is settled, and is taken once, by whoever ends the request: the code that waited; or its time, its abort, or
//! the end of its thread, which give back what was granted. There are three kinds ([`Outside`]): locks in stores
//! (`outer_store.rs`), locks of files, and lists of their holders (`outer_file.rs`).

use std::sync::Arc;

use super::outer_file::{FileHolders, InFile, ThreadHold};
use super::outer_requests::{Answered, Late, OuterRequest, OuterRequests, Outside};
use super::outer_store::{InStore, StoreHold};
use super::{ClientLoop, Clients, Whose};
use crate::agents::Agent;
use crate::desk::{Desk, Loss, Question};
use crate::engine::{Caller, Engine, Expiry, Failure, Limit, Outcome, Reply, ReplyError, Request};
use crate::files::FileHold;
use crate::primitives::futex::OUTER;
use crate::sync;

/// A kind with its part of a thread's clients.
pub trait Asked: Outside {
    /// That part.
    fn part<'c>(clients: &'c mut Clients<'_>) -> &'c mut OuterRequests<Self>;
    /// The owner of the wait for a request with this index.
    const WHOSE: fn(index: u32) -> Whose;
}

impl Asked for InStore {
    fn part<'c>(clients: &'c mut Clients<'_>) -> &'c mut OuterRequests<Self> {
        &mut clients.in_stores
    }
    const WHOSE: fn(u32) -> Whose = Whose::InStore;
}

impl Asked for InFile {
    fn part<'c>(clients: &'c mut Clients<'_>) -> &'c mut OuterRequests<Self> {
        &mut clients.in_files
    }
    const WHOSE: fn(u32) -> Whose = Whose::InFile;
}

impl Asked for FileHolders {
    fn part<'c>(clients: &'c mut Clients<'_>) -> &'c mut OuterRequests<Self> {
        &mut clients.file_holders
    }
    const WHOSE: fn(u32) -> Whose = Whose::FileHolders;
}

impl ClientLoop<'static> {
    /// Asks, and blocks the thread for the answer; `None` when the time is over.
    ///
    /// No loop is borrowed while it blocks: the answer is to be [taken in](Self::take_in).
    pub fn ask_outside_blocking<K: Asked>(
        engine: &'static Engine,
        here: &Arc<Agent>,
        kind: K,
        question: K::Question,
        limit: Limit,
        caller: &mut dyn Caller,
    ) -> Result<Option<Answered<K>>, Failure> {
        let request = OuterRequest::new(engine, here, kind);
        let place = request.place();
        let limit = limit.deadline().map_or(limit, Limit::Until);
        let wait = engine.queue_for_notification(here, &OUTER, place, limit);
        let slice_end = sync::now() + engine.patience.slice;
        let until = if let Limit::Until(at) = limit { slice_end.min(at) } else { slice_end };
        let outcome = engine.blocked(here, place, || {
            K::ask_here(&request, question, until);
            wait.sleep(caller)
        });
        match outcome {
            Ok(Outcome::Granted { .. } | Outcome::Refused { .. }) => {
                Ok(request.take().map(|answer| Answered { request, answer }))
            }
            Ok(Outcome::TimedOut) => {
                request.give_up();
                K::leave_blocking(&request, caller).map(|()| None)
            }
            Err(failure) => {
                request.give_up();
                Err(failure)
            }
        }
    }

    /// The answer for which the thread has blocked, with the number of its request: what is granted is held from now on.
    pub fn take_in<K: Asked>(&mut self, answered: Answered<K>) -> (u64, K::Told) {
        K::part(&mut self.clients).take_in(answered)
    }

    /// Asks, and awaits the answer: the reply of the engine, and the number of the request. `beside` goes back as well when the
    /// time is over.
    pub fn ask_outside<K: Asked>(
        &mut self,
        kind: K,
        question: K::Question,
        limit: Limit,
        beside: Option<Arc<dyn Expiry>>,
    ) -> Result<(Reply, u64), ReplyError> {
        let request = OuterRequest::new(self.engine(), self.agent(), kind);
        let number = request.number;
        let reply = self.wait(&OUTER, request.place(), Request::Notification, limit)?;
        let Reply::Pending { token, .. } = reply else { return Ok((reply, number)) };
        let index = K::part(&mut self.clients).waits.insert(Arc::clone(&request));
        self.belongs_to(token, (K::WHOSE)(index));
        if matches!(limit, Limit::Until(_)) {
            self.expires_with(token, Arc::new(Late { request: Arc::clone(&request), beside }));
        }
        K::ask(&request, question);
        request.asked();
        Ok((reply, number))
    }

    /// Returns the outcome of the wait that was returned last, with the number of its request; once.
    pub fn take_told<K: Asked>(&mut self) -> Option<(u64, K::Told)> {
        K::part(&mut self.clients).told.take()
    }

    /// Returns the thread's hold by a request.
    pub fn outside_hold<K: Asked>(&mut self, number: u64) -> Option<&mut K::Hold> {
        K::part(&mut self.clients).holds.get_mut(&number)
    }

    /// Returns the thread's holds by these requests.
    pub fn outside_holds<K: Asked<Hold: Clone>>(&mut self, numbers: &[i64]) -> Vec<K::Hold> {
        let holds = &K::part(&mut self.clients).holds;
        numbers.iter().filter_map(|number| holds.get(&(*number as u64)).cloned()).collect()
    }

    /// Removes a request that is over; returns the thread's hold by it.
    pub fn remove_outside<K: Asked>(&mut self, number: u64) -> Option<K::Hold> {
        K::part(&mut self.clients).holds.remove(&number)
    }

    /// Takes in a lock of a file that the thread got at once. Returns its number.
    pub fn hold_file(&mut self, hold: FileHold) -> u64 {
        self.clients.in_files.insert(|_| ThreadHold::new(hold))
    }

    /// Awaits that nothing is left of the wait for a file that was given up last: refused if nothing is.
    pub fn wait_left(&mut self) -> Result<Reply, ReplyError> {
        let Some(request) = self.clients.in_files.given_up.take() else {
            return Ok(Reply::Now(Outcome::Refused { found: 0 }));
        };
        self.wait(&OUTER, request.kind.remains(), Request::NotificationWhile(0), Limit::Revocable)
    }

    /// Tells the lock worker what it is to know until the number that this returns is released; nobody waits for an answer.
    pub fn tell_store(&mut self, desk: &Arc<Desk>, question: Question) -> u64 {
        let number = self.clients.in_stores.insert(|number| StoreHold::told(desk, number));
        desk.tell(number, question);
        number
    }

    /// The next hold in a store that was lost, which its code may not know.
    pub fn next_lost(&mut self) -> Option<u64> {
        let Clients { in_stores, lost, .. } = &mut self.clients;
        std::iter::from_fn(|| lost.pop_front()).find(|number| in_stores.holds.contains_key(number))
    }

    /// Releases what is held in a store, if `has_ended`, or it was lost inside, with a mark, where that leaves one. Returns how it
    /// was lost before, if it was.
    pub fn release_store(&mut self, number: u64, has_ended: bool) -> Option<Loss> {
        let hold = self.remove_outside::<InStore>(number)?;
        let lost = hold.lost();
        hold.release(has_ended || lost.is_some());
        lost
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
pub(super) mod tests;
