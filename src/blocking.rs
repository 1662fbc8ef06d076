//! How a thread blocks: in slices, between which it looks whether it is being terminated or debugged.
//!
//! What it waits for, and what others tell it meanwhile, is the business of whoever implements [`BlockingWait`].

use std::time::{Duration, Instant};

use crate::agent::AgentId;
use crate::mutex::Limit;
use crate::parker::Parker;
use crate::sync;

/// A blocked thread looks up from its sleep this often.
const SLICE: Duration = Duration::from_millis(25);

/// The pause between two slices said that the thread is to end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interrupted;

/// Whoever calls a verb that blocks; a closure that only pauses will do.
pub trait Caller {
    /// Called between two slices; false: the thread is to end. It may take as long as it likes, and may call back into the lot.
    fn pause(&mut self) -> bool;

    /// The thread has queued for a word that `owner` holds (0: it is kept for an event loop).
    fn queued(&mut self, owner: AgentId, since: Instant) {
        let _ = (owner, since);
    }
}

impl<F: FnMut() -> bool> Caller for F {
    fn pause(&mut self) -> bool {
        self()
    }
}

/// A thread that is queued and about to sleep.
pub(crate) trait BlockingWait {
    /// How the wait ends.
    type Answer;
    /// How it fails.
    type Failure: From<Interrupted>;

    /// Where it sleeps.
    fn parker(&self) -> &Parker;

    /// For how long.
    fn limit(&self) -> Limit;

    /// Goes on by what it has been called for; `None`: it waits on.
    fn answer(&self) -> Result<Option<Self::Answer>, Self::Failure>;

    /// Looks once more, before a pause (`away`: nobody may count on it for a while) and after it.
    fn look(&self, away: bool) -> Result<Option<Self::Answer>, Self::Failure>;

    /// Leaves the queue because its time is over, unless it is too late for that.
    fn give_up(&self) -> Result<Self::Answer, Self::Failure>;

    /// Leaves the queue because the thread ends; what its code never learnt of is passed on.
    fn end(&self);

    /// Sleeps until the wait is over.
    fn sleep(&self, caller: &mut dyn Caller) -> Result<Self::Answer, Self::Failure> {
        let mut slice_end = sync::now() + SLICE;
        loop {
            let deadline = if let Limit::Until(at) = self.limit() { at } else { slice_end };
            self.parker().park_until(slice_end.min(deadline));
            if let Some(answer) = self.answer()? {
                return Ok(answer);
            }
            let now = sync::now();
            if matches!(self.limit(), Limit::Until(at) if now >= at) {
                return self.give_up();
            }
            if now >= slice_end {
                if let Some(answer) = self.look(true)? {
                    return Ok(answer);
                }
                if !caller.pause() {
                    self.end();
                    return Err(Interrupted.into());
                }
                if let Some(answer) = self.look(false)? {
                    return Ok(answer);
                }
                slice_end = sync::now() + SLICE;
            }
        }
    }
}
