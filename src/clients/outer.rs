//! Requests for what is kept outside of the process: each is a wait of the engine, which an outsider settles.
//!
//! The wait is queued before the outsider knows of it, so that whoever answers finds it there. An answer is put down under the lock
//! under which its wait is settled, and is taken once, by whoever ends the request: the code that waited; or its time, its abort, or
//! the end of its thread, which give back what was granted. There are three kinds ([`Outside`]): locks in stores
//! (`outer_store.rs`), locks of files, and lists of their holders (`outer_file.rs`).

use std::sync::Arc;

use super::held::{Held, StoreHold, ThreadHold, Told};
use super::outer_requests::{Answered, Late, OuterRequest, OuterRequests, OuterWait, Outside};
use super::{ClientLoop, Whose};
use crate::agents::Agent;
use crate::desk::{Desk, Question};
use crate::engine::{Caller, Engine, Expiry, Failure, Limit, Outcome, Reply, ReplyError, Request};
use crate::files::FileHold;
use crate::primitives::futex::OUTER;
use crate::sync;

impl ClientLoop<'static> {
    /// Asks, and blocks the thread for the answer; `None` when the time is over.
    ///
    /// No loop is borrowed while it blocks: the answer is to be [taken in](Self::take_in).
    pub fn ask_outside_blocking<K: Outside>(
        engine: &'static Engine,
        here: &Arc<Agent>,
        kind: K,
        question: K::Question,
        limit: Limit,
        caller: &mut dyn Caller,
    ) -> Result<Option<Answered>, Failure> {
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
            Ok(Outcome::Granted { .. } | Outcome::Refused { .. }) => Ok(request.collect()),
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
    pub fn take_in(&mut self, answered: Answered) -> (u64, Told) {
        self.clients.outer.take_in(answered)
    }

    /// Asks, and awaits the answer: the reply of the engine, and the number of the request. `beside` goes back as well when the
    /// time is over.
    pub fn ask_outside<K: Outside>(
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
        let index = self.clients.outer.waits.insert(Arc::clone(&request) as _);
        self.belongs_to(token, Whose::Outer(index));
        if matches!(limit, Limit::Until(_)) {
            self.expires_with(token, Arc::new(Late { request: Arc::clone(&request), beside }));
        }
        K::ask(&request, question);
        request.asked();
        Ok((reply, number))
    }

    /// Returns the news of the wait that was returned last, with the number of its request; once.
    pub fn take_told(&mut self) -> Option<(u64, Told)> {
        self.clients.outer.told.take()
    }

    /// Returns what the thread holds by a request.
    pub fn held(&mut self, number: u64) -> Option<&mut Held> {
        self.clients.outer.holds.get_mut(&number)
    }

    /// Removes a request that is over; returns what the thread holds by it.
    pub fn remove_held(&mut self, number: u64) -> Option<Held> {
        self.clients.outer.holds.remove(&number)
    }

    /// Takes in a lock of a file that the thread got at once. Returns its number.
    pub fn hold_file(&mut self, hold: FileHold) -> u64 {
        self.clients.outer.insert(|_| Held::File(ThreadHold::new(hold)))
    }

    /// Awaits that nothing is left of the request that was given up last: refused if nothing is.
    pub fn wait_left(&mut self) -> Result<Reply, ReplyError> {
        let request = self.clients.outer.given_up.take();
        match request.as_ref().and_then(|request| request.remains()) {
            Some(remains) => self.wait(&OUTER, remains, Request::NotificationWhile(0), Limit::Revocable),
            None => Ok(Reply::Now(Outcome::Refused { found: 0 })),
        }
    }

    /// Tells the lock worker what it is to know until the number that this returns is released; nobody waits for an answer.
    pub fn tell_store(&mut self, desk: &Arc<Desk>, question: Question) -> u64 {
        let number = self.clients.outer.insert(|number| Held::Store(StoreHold::told(desk, number)));
        desk.tell(number, question);
        number
    }

    /// The next hold that was lost, which its code may not know.
    pub fn next_lost(&mut self) -> Option<u64> {
        let OuterRequests { lost, holds, .. } = &mut self.clients.outer;
        std::iter::from_fn(|| lost.pop_front()).find(|number| holds.contains_key(number))
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
pub(super) mod tests;
