//! Requests for locks that are kept outside of the process: each is a wait of the engine, which its desk settles.
//!
//! The wait is queued before the desk knows of it, so that whoever answers finds it there. An answer is put down under the lock
//! under which its wait is settled, and is taken once, by whoever ends the request: the code that waited; or its time, its abort, or
//! the end of its thread, which give back what was granted.

use std::sync::Arc;

use super::outer_requests::{Answered, Late, OuterHold, OuterRequest};
use super::{ClientLoop, Whose};
use crate::agents::Agent;
use crate::desk::{Answer, Desk, Lease, Loss, Question};
use crate::engine::{Caller, Engine, Expiry, Failure, Limit, Outcome, Reply, ReplyError, Request};
use crate::primitives::outer::OUTER;

impl ClientLoop<'static> {
    /// Asks, and blocks the thread for the answer; `None` when the time is over.
    ///
    /// No loop is borrowed while it blocks: the answer is to be [taken in](Self::take_in).
    pub fn ask_outer_blocking(
        engine: &'static Engine,
        here: &Arc<Agent>,
        desk: &Arc<Desk>,
        question: Question,
        limit: Limit,
        caller: &mut dyn Caller,
    ) -> Result<Option<Answered>, Failure> {
        let request = OuterRequest::new(engine, here, desk, question.is_shared);
        let place = request.place();
        let limit = limit.deadline().map_or(limit, Limit::Until);
        let wait = engine.queue_for_notification(here, &OUTER, place, limit);
        desk.ask(request.number, question, Arc::clone(&request) as _);
        let outcome = engine.blocked(here, place, || wait.sleep(caller));
        match outcome {
            Ok(Outcome::Granted { .. } | Outcome::Refused { .. }) => {
                Ok(request.take().map(|answer| Answered { request, answer }))
            }
            Ok(Outcome::TimedOut) => {
                request.give_up();
                Ok(None)
            }
            Err(failure) => {
                request.give_up();
                Err(failure)
            }
        }
    }

    /// The answer for which the thread has blocked, with the number of its request: what is granted is held from now on.
    pub fn take_in(&mut self, answered: Answered) -> (u32, Answer) {
        self.clients.outers.take_in(answered)
    }

    /// Asks, and awaits the answer: the reply of the engine, and the number of the request. `beside` goes back as well when the
    /// time is over.
    pub fn ask_outer(
        &mut self,
        desk: &Arc<Desk>,
        question: Question,
        limit: Limit,
        beside: Option<Arc<dyn Expiry>>,
    ) -> Result<(Reply, u32), ReplyError> {
        let request = OuterRequest::new(self.engine(), self.agent(), desk, question.is_shared);
        let number = request.number;
        let reply = self.wait(&OUTER, request.place(), Request::Notification, limit)?;
        let Reply::Pending { token, .. } = reply else { return Ok((reply, number)) };
        self.belongs_to(token, Whose::Outer(number));
        if matches!(limit, Limit::Until(_)) {
            self.expires_with(token, Arc::new(Late { request: Arc::clone(&request), beside }));
        }
        self.clients.outers.waits.insert(number, Arc::clone(&request));
        desk.ask(number, question, request);
        Ok((reply, number))
    }

    /// Tells the lock worker what it is to know until the number that this returns is released; nobody waits for an answer.
    pub fn tell_outer(&mut self, desk: &Arc<Desk>, question: Question) -> u32 {
        let (number, lease) = (Desk::number(), Lease::endless());
        let hold = OuterHold { desk: Arc::clone(desk), number, lease, is_shared: true, is_in: false };
        self.clients.outers.holds.insert(number, hold);
        desk.tell(number, question);
        number
    }

    /// The answer to the request whose wait was returned last, with its number; once.
    pub fn take_answer(&mut self) -> Option<(u32, Answer)> {
        self.clients.outers.answer.take()
    }

    /// The next hold that was lost, which its code may not know.
    pub fn next_lost(&mut self) -> Option<u32> {
        let outers = &mut self.clients.outers;
        std::iter::from_fn(|| outers.lost.pop_front()).find(|number| outers.holds.contains_key(number))
    }

    /// The hold of a request.
    pub fn outer_hold(&self, number: u32) -> Option<&OuterHold> {
        self.clients.outers.holds.get(&number)
    }

    /// The loss of what a request holds, if there was one.
    pub fn outer_loss(&self, number: u32) -> Option<Loss> {
        self.outer_hold(number)?.lease.lost()
    }

    /// Whether code runs with what is held. Without it, the end of its thread leaves no mark.
    pub fn note_outer_in(&mut self, number: u32, is_in: bool) {
        if let Some(hold) = self.clients.outers.holds.get_mut(&number) {
            hold.is_in = is_in;
        }
    }

    /// Releases what is held, if `has_ended` with the mark of who ended inside, where that leaves one. Returns how it was lost
    /// before, if it was.
    pub fn release_outer(&mut self, number: u32, has_ended: bool) -> Option<Loss> {
        self.clients.outers.release(number, has_ended)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
