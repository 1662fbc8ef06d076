//! The mutex for blocking threads: the slow paths of `lock`, `tryLock`, `unlock` and `markConsistent`.
//!
//! JS comes here only when its one compare-exchange failed. Asynchronous waits are in [`crate::event_loop`].

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::agent::{Agent, AgentId, Blockage};
use crate::blocking::{BlockingWait, Caller, Interrupted};
use crate::deadlock::Hop;
use crate::lot::queue::NodeId;
use crate::lot::{Corrupt, Leaving, Lot};
use crate::parker::{Call, Parker};
use crate::shared_word::SharedWord;
use crate::sync;

/// How long a wait may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// One try, no wait.
    Once,
    /// Until then.
    Until(Instant),
    /// For ever.
    Endless,
}

impl Limit {
    /// Until `time` from now; for ever if no clock can count that far.
    pub fn after(time: Duration) -> Self {
        sync::now().checked_add(time).map_or(Self::Endless, Self::Until)
    }
}

/// What came of an attempt to lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Attempt {
    /// The agent holds the word.
    Acquired {
        /// The dead holder whose end this agent has to report.
        abandoned_by: Option<AgentId>,
    },
    /// It was held, or reserved, or the time was over.
    NotAcquired,
}

/// Why a blocking attempt ended without an answer.
#[derive(Debug)]
pub enum Failure {
    /// The word holds what no sablock wrote.
    Corrupt,
    /// The wait could never end: who waits for which word, beginning with this thread.
    Deadlock(Vec<Hop>),
    /// The pause between two slices said that the thread is to end.
    Interrupted,
}

impl From<Corrupt> for Failure {
    fn from(_: Corrupt) -> Self {
        Self::Corrupt
    }
}

impl From<Interrupted> for Failure {
    fn from(_: Interrupted) -> Self {
        Self::Interrupted
    }
}

/// Why an unlock was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The agent does not hold the word in this way; nothing was changed.
    NotOwner,
    /// The word holds what no sablock wrote.
    Corrupt,
}

impl From<Corrupt> for Refusal {
    fn from(_: Corrupt) -> Self {
        Self::Corrupt
    }
}

impl Lot {
    /// Locks `word` for `agent`, whose thread this is, blocking it as long as `limit` says.
    ///
    /// When the caller's pause answers false the thread leaves the queue and the call fails.
    pub fn lock(
        &self,
        agent: &Arc<Agent>,
        word: SharedWord,
        guarded: bool,
        limit: Limit,
        caller: &mut dyn Caller,
    ) -> Result<Attempt, Failure> {
        if limit != Limit::Once && self.spin(agent.id, word, guarded) {
            return Ok(Attempt::Acquired { abandoned_by: None });
        }
        let mut section = self.open(word)?;
        section.free_dead_owner();
        if section.word().is_takeable() {
            let abandoned_by = section.take(agent.id, guarded);
            section.close().carry_out(self);
            return Ok(Attempt::Acquired { abandoned_by });
        }
        if limit == Limit::Once {
            section.close().carry_out(self);
            return Ok(Attempt::NotAcquired);
        }
        if limit == Limit::Endless && section.word().owner() == agent.id {
            section.note_deadlock();
            section.close().carry_out(self);
            return Err(Failure::Deadlock(vec![Hop { thread: agent.thread, byte_offset: word.byte_offset }]));
        }

        let parker = Arc::new(Parker::new());
        let (owner, since) = (section.word().owner(), sync::now());
        let id = section.push_blocked(agent.id, Arc::clone(&parker), guarded, since);
        if section.drop_reservation_of(agent.id) {
            // It was kept for this thread's own loop, which cannot come while the thread is blocked.
            section.hand_on();
        }
        let blockage = Blockage {
            address: word.address(),
            byte_offset: word.byte_offset,
            endless: limit == Limit::Endless,
            serial: self.serial(),
        };
        let outer = agent.set_blockage(Some(blockage));
        section.close().carry_out(self);
        caller.queued(owner, since);

        let wait = BlockedWait { lot: self, word, parker, id, limit };
        let outcome = match self.find_cycle(agent, blockage) {
            Some(cycle) => match wait.withdraw(Leaving::Deadlocked) {
                Ok(Attempt::NotAcquired) => Err(Failure::Deadlock(cycle)),
                other => other,
            },
            None => match wait.linger() {
                Some(attempt) => Ok(attempt),
                None => wait.sleep(caller),
            },
        };
        agent.set_blockage(outer);
        outcome
    }

    /// Unlocks `word`, which `here` (the agent of this thread) holds by a guard or by itself.
    ///
    /// If the loop of this very thread has waits, it must drain its inbox soon: it is not woken for what it is offered here.
    pub fn unlock(&self, here: &Arc<Agent>, word: SharedWord, guarded: bool) -> Result<(), Refusal> {
        let mut section = self.open(word)?;
        let is_held = section.word().is_held_by(here.id, guarded);
        if is_held {
            section.release();
        }
        section.close().carry_out_beside(self, Some(here));
        if is_held { Ok(()) } else { Err(Refusal::NotOwner) }
    }

    /// Takes the mark of abandonment off `word`, which `agent` holds.
    pub fn mark_consistent(&self, agent: AgentId, word: SharedWord) -> Result<(), Refusal> {
        let mut section = self.open(word)?;
        let is_held = section.word().owner() == agent;
        if is_held {
            section.mark_consistent();
        }
        section.close().carry_out(self);
        if is_held { Ok(()) } else { Err(Refusal::NotOwner) }
    }
}

/// A thread that is queued for a word.
struct BlockedWait<'l> {
    lot: &'l Lot,
    word: SharedWord,
    parker: Arc<Parker>,
    id: NodeId,
    limit: Limit,
}

impl BlockingWait for BlockedWait<'_> {
    type Answer = Attempt;
    type Failure = Failure;

    fn parker(&self) -> &Parker {
        &self.parker
    }

    fn limit(&self) -> Limit {
        self.limit
    }

    fn answer(&self) -> Result<Option<Attempt>, Failure> {
        match self.parker.call() {
            Call::Granted(abandoned_by) => Ok(Some(Attempt::Acquired { abandoned_by })),
            Call::Woken => Ok(self.look(false)?.or_else(|| self.linger())),
            Call::None => Ok(None),
        }
    }

    /// Tries to take the word; keeps its place if it cannot.
    fn look(&self, away: bool) -> Result<Option<Attempt>, Failure> {
        let Ok(mut section) = self.lot.open(self.word) else { return self.despair() };
        let attempt = match self.parker.call() {
            Call::Granted(abandoned_by) => Some(Attempt::Acquired { abandoned_by }),
            _ => section.arrive(self.id, away),
        };
        section.close().carry_out(self.lot);
        Ok(attempt)
    }

    fn give_up(&self) -> Result<Attempt, Failure> {
        self.withdraw(Leaving::TimedOut)
    }

    /// Leaves the queue because the thread ends; a grant that its code never saw is passed on.
    fn end(&self) {
        let Ok(mut section) = self.lot.open(self.word) else {
            let _: Result<Attempt, Failure> = self.despair();
            return;
        };
        match self.parker.call() {
            Call::Granted(unreported) => section.revoke(unreported),
            _ => section.leave(self.id, Leaving::Ending),
        }
        section.close().carry_out(self.lot);
    }
}

impl BlockedWait<'_> {
    /// Looks on for as long as a sleep and a wake-up would cost, in case the word comes meanwhile.
    fn linger(&self) -> Option<Attempt> {
        self.parker.linger(self.lot.linger_time(self.word)?);
        match self.parker.call() {
            Call::Granted(abandoned_by) => Some(Attempt::Acquired { abandoned_by }),
            Call::None | Call::Woken => None,
        }
    }

    /// Leaves the queue, unless the word was granted in the meantime.
    fn withdraw(&self, why: Leaving) -> Result<Attempt, Failure> {
        let Ok(mut section) = self.lot.open(self.word) else { return self.despair() };
        let attempt = match self.parker.call() {
            Call::Granted(abandoned_by) => Attempt::Acquired { abandoned_by },
            _ => {
                section.leave(self.id, why);
                Attempt::NotAcquired
            }
        };
        section.close().carry_out(self.lot);
        Ok(attempt)
    }

    /// Leaves the queue of a word that somebody else has overwritten.
    fn despair<T>(&self) -> Result<T, Failure> {
        self.lot.forget(self.word, self.id, || matches!(self.parker.call(), Call::Granted(_)));
        Err(Failure::Corrupt)
    }
}
