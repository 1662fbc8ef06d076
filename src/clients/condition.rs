//! Conditions: to release a lock and wait for a notification in one step, and to hold the lock again afterwards.
//!
//! The waiter is queued before the lock is free, so that whoever takes it and notifies finds it there.
//! A notification is the waiter's only once it holds the lock again: until then the end of its thread passes it on.

use std::sync::Arc;

use crate::agents::Agent;
use crate::engine::{
    Caller, Client, Corrupt, Engine, EventLoop, Failure, Hold, Limit, Outcome, Primitive, Reply, ReplyError, Request,
};
use crate::memory::Place;
use crate::primitives::futex::FUTEX;

/// Why a wait for a condition ended without the lock being held again.
#[derive(Debug)]
pub enum ConditionFailure {
    /// The agent did not hold the lock so; nothing was changed.
    NotHeld,
    /// The lock's words hold what this package did not write; nothing was changed.
    Corrupt,
    /// The lock could not be taken again.
    NotLocked(Failure),
}

impl From<Corrupt> for ConditionFailure {
    fn from(_: Corrupt) -> Self {
        Self::Corrupt
    }
}

impl Engine {
    /// Releases `hold` of `lock`, which `agent` has, waits at `place`, and takes the lock again. Returns whether it was
    /// notified, and how the lock was acquired.
    ///
    /// `limit` is for the notification; to take the lock again takes as long as it takes. The rest is as for [`Engine::wait`] and
    /// [`Engine::release`].
    #[expect(clippy::too_many_arguments, reason = "a lock, and what the wait is for")]
    pub fn wait_released(
        &self,
        agent: &Arc<Agent>,
        place: Place,
        lock: &'static dyn Primitive,
        lock_place: Place,
        hold: Hold,
        limit: Limit,
        caller: &mut dyn Caller,
    ) -> Result<(bool, Outcome), ConditionFailure> {
        let early = fault!(ConditionReleasesFirst).then(|| self.release(agent, lock, lock_place, hold));
        let wait = self.queue_for_notification(agent, &FUTEX, place, limit);
        match early.unwrap_or_else(|| self.release(agent, lock, lock_place, hold)) {
            Ok(true) => {}
            Ok(false) => {
                wait.drop();
                return Err(ConditionFailure::NotHeld);
            }
            Err(Corrupt) => {
                wait.drop();
                return Err(ConditionFailure::Corrupt);
            }
        }
        let settlement = self.blocked(agent, place, || wait.sleep_until_settled(caller));
        let settlement = settlement.map_err(ConditionFailure::NotLocked)?;
        match self.wait(agent, lock, lock_place, Request::Hold(hold), Limit::Endless, caller) {
            Ok(outcome) => {
                // The end of the thread may have begun since its last slice: then its code has neither the lock nor the
                // notification.
                if !caller.goes_on() {
                    if let Outcome::Granted { abandoned_by, .. } = outcome
                        && !fault!(ConditionKeepsLockWhileEnding)
                    {
                        self.give_back(agent, lock, lock_place, hold, abandoned_by);
                    }
                    if let Some(settlement) = settlement {
                        self.refuse(&FUTEX, place, None, agent.id, settlement);
                    }
                    return Err(ConditionFailure::NotLocked(Failure::Interrupted));
                }
                if let Some(settlement) = settlement {
                    self.learned(&FUTEX, place, settlement);
                }
                Ok((settlement.is_some(), outcome))
            }
            Err(failure) => {
                if let Some(settlement) = settlement.filter(|_| !fault!(ConditionKeepsNotification)) {
                    self.refuse(&FUTEX, place, None, agent.id, settlement);
                }
                Err(ConditionFailure::NotLocked(failure))
            }
        }
    }
}

impl<C: Client> EventLoop<'_, C> {
    /// Releases `hold` of `lock` and waits for a notification at `place`, in one step; see [`Engine::release`].
    /// Once the wait is settled, the thread's code takes the lock again and then calls [`EventLoop::accept`].
    pub fn wait_released(
        &mut self,
        place: Place,
        lock: &'static dyn Primitive,
        lock_place: Place,
        hold: Hold,
        limit: Limit,
    ) -> Result<Reply, ReplyError> {
        // Queued before it is released, so that whoever takes the lock and notifies finds it there.
        let reply = self.wait(&FUTEX, place, Request::Notification, limit)?;
        let Reply::Pending { token, .. } = reply else { return Err(ReplyError::NotHeld) };
        self.keep(token);
        match self.engine().release(self.agent(), lock, lock_place, hold) {
            Ok(true) => Ok(reply),
            Ok(false) => {
                self.drop_wait(token);
                Err(ReplyError::NotHeld)
            }
            Err(Corrupt) => {
                self.drop_wait(token);
                Err(ReplyError::Corrupt)
            }
        }
    }
}
