//! Conditions: to release a mutex and wait for a notification in one step, and to hold the mutex again afterwards.
//!
//! The waiter is queued before the mutex is free, so that whoever takes it and notifies finds it there.
//! A notification is the waiter's only once it holds the mutex again: until then the end of its thread passes it on.

use std::sync::Arc;

use super::futex::FUTEX;
use super::mutex::MUTEX;
use crate::agents::Agent;
use crate::engine::{Caller, Corrupt, Engine, Failure, Hold, Limit, Outcome, Request};
use crate::memory::Place;

/// Why a wait for a condition ended without the mutex being held again.
#[derive(Debug)]
pub enum ConditionFailure {
    /// The agent did not hold the mutex so; nothing was changed.
    NotHeld,
    /// The mutex's word holds what this package did not write; nothing was changed.
    Corrupt,
    /// The mutex could not be locked again.
    NotLocked(Failure),
}

impl From<Corrupt> for ConditionFailure {
    fn from(_: Corrupt) -> Self {
        Self::Corrupt
    }
}

impl Engine {
    /// Releases `hold` of `mutex`, which `agent` has, waits at `place`, and locks the mutex again. Returns whether it was
    /// notified, and how the mutex was acquired.
    ///
    /// `limit` is for the notification; to lock again takes as long as it takes. The rest is as for [`Engine::wait`] and
    /// [`Engine::release`].
    pub fn wait_released(
        &self,
        agent: &Arc<Agent>,
        place: Place,
        mutex: Place,
        hold: Hold,
        limit: Limit,
        caller: &mut dyn Caller,
    ) -> Result<(bool, Outcome), ConditionFailure> {
        let early = fault!(ConditionReleasesFirst).then(|| self.release(agent, &MUTEX, mutex, hold));
        let wait = self.queue_for_notification(agent, &FUTEX, place, limit);
        match early.unwrap_or_else(|| self.release(agent, &MUTEX, mutex, hold)) {
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
        match self.wait(agent, &MUTEX, mutex, Request::Hold(hold), Limit::Endless, caller) {
            Ok(outcome) => {
                if let Some(settlement) = settlement {
                    // The end of the thread may have begun since its last slice: then its code will not learn of it.
                    if !caller.pause() {
                        if let Outcome::Granted { abandoned_by } = outcome {
                            self.give_back(agent, &MUTEX, mutex, hold, abandoned_by);
                        }
                        self.refuse(&FUTEX, place, None, agent.id, settlement);
                        return Err(ConditionFailure::NotLocked(Failure::Interrupted));
                    }
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
