//! Conditions: to free a word and wait for a notification in one step, and to hold the word again afterwards.
//!
//! The waiter stands in the line before the word is free, so that whoever takes the word and notifies finds it there.
//! A notification is the waiter's only once it holds the word again: until then the end of its thread passes it on.

use std::sync::Arc;

use crate::agent::Agent;
use crate::blocking::Caller;
use crate::futex::Outcome;
use crate::location::Location;
use crate::lot::Lot;
use crate::mutex::{Attempt, Failure, Limit, Refusal};
use crate::shared_word::SharedWord;

/// Why a wait for a condition ended without the word being held again.
#[derive(Debug)]
pub enum ConditionFailure {
    /// The agent did not hold the word in this way; nothing was changed.
    Refused(Refusal),
    /// The word could not be locked again.
    NotHeld(Failure),
}

impl Lot {
    /// Frees `word`, which `agent` holds by a guard or by itself, waits at `location`, and locks `word` again.
    ///
    /// `limit` is for the notification; to lock again takes as long as it takes. The rest is as for [`Lot::lock`] and
    /// [`Lot::unlock`].
    pub fn wait_unlocked(
        &self,
        agent: &Arc<Agent>,
        location: Location,
        word: SharedWord,
        guarded: bool,
        limit: Limit,
        caller: &mut dyn Caller,
    ) -> Result<(Outcome, Attempt), ConditionFailure> {
        let address = location.address();
        let wait = self.line_wait(&mut self.lines(address), address, limit);
        if let Err(refusal) = self.unlock(agent, word, guarded) {
            self.leave_line(address, wait.id());
            return Err(ConditionFailure::Refused(refusal));
        }
        let told = match self.sleep_in_line(agent, &wait, caller) {
            Ok(told) => told,
            Err(interrupted) => return Err(ConditionFailure::NotHeld(interrupted.into())),
        };
        match self.lock(agent, word, guarded, Limit::Endless, caller) {
            Ok(attempt) => Ok((Outcome::of(told), attempt)),
            Err(failure) => {
                if let Some(told) = told {
                    self.pass_on(address, told);
                }
                Err(ConditionFailure::NotHeld(failure))
            }
        }
    }
}
