//! Several locks at once: all of them or none.
//!
//! They are taken one after the other in the order of their addresses, which is the same for every thread: so those who want
//! several never wait for each other in a circle. While one is awaited, those before it are held. Who does not get them all
//! gives back what it has, unmarked, since its code never ran with it.

use std::sync::Arc;
use std::time::Instant;

use super::lock_set::{LockSet, Part, PartWait, WaitingSet};
use super::{ClientLoop, Whose};
use crate::agents::{Agent, AgentId};
use crate::engine::{Caller, Engine, Expiry, Failure, Limit, Outcome, Reply, ReplyError, Request};
use crate::sync;

/// Passes on what its caller wants to know, and notes when a wait began.
struct Noting<'c> {
    caller: &'c mut dyn Caller,
    queued: Option<(AgentId, Instant)>,
}

impl Caller for Noting<'_> {
    fn pause(&mut self) -> bool {
        self.caller.pause()
    }

    fn goes_on(&mut self) -> bool {
        self.caller.goes_on()
    }

    fn queued(&mut self, owner: AgentId, found: u32, since: Instant) {
        self.queued = Some((owner, since));
        self.caller.queued(owner, found, since);
    }
}

impl LockSet {
    /// Takes all locks of the set, or none, blocking the thread of `agent`, which is this one. If it fails, nothing of the set
    /// is held.
    pub fn lock(
        &mut self,
        engine: &Engine,
        agent: &Arc<Agent>,
        limit: Limit,
        caller: &mut dyn Caller,
    ) -> Result<Outcome, Failure> {
        let mut caller = Noting { caller, queued: None };
        while let Some(&Part { primitive, place, hold, index, .. }) = self.next() {
            let request = Request::Hold(hold);
            if primitive.try_enter(place, request, agent.id) {
                engine.note_hold(primitive, place, agent.id, hold);
                self.granted(None);
                continue;
            }
            let outcome = engine.wait(agent, primitive, place, request, limit, &mut caller);
            let queued = if fault!(OldWaitIsNotedAgain) { caller.queued } else { caller.queued.take() };
            if let Some((owner, since)) = queued {
                self.waits.push(PartWait { index, owner, since, waited: sync::now().saturating_duration_since(since) });
            }
            let Ok(Outcome::Granted { abandoned_by, .. }) = outcome else {
                self.stopped_at = Some(index);
                self.give_back(engine, agent);
                return outcome;
            };
            self.granted(abandoned_by);
        }
        Ok(Outcome::GRANTED)
    }
}

impl ClientLoop<'_> {
    /// Takes all locks of the set, or waits for the next one to be had; what it has is held meanwhile, and the set is taken.
    /// Once that wait is settled as granted, [`ClientLoop::go_on`] is due. However else it ends, nothing of the set is held.
    pub fn lock_all(&mut self, set: &mut LockSet, limit: Limit) -> Result<Reply, ReplyError> {
        while let Some(&Part { primitive, place, hold, index, .. }) = set.next() {
            set.stopped_at = Some(index);
            let reply = self.wait(primitive, place, Request::Hold(hold), limit);
            match reply {
                Ok(Reply::Now(Outcome::Granted { abandoned_by, .. })) => set.granted(abandoned_by),
                Ok(Reply::Pending { token, .. }) => {
                    self.belongs_to(token, Whose::Set);
                    set.set_aside(self.engine(), self.agent().id);
                    let waiting = WaitingSet::new(self.agent().id, std::mem::take(set));
                    if let Limit::Until(_) = limit {
                        self.expires_with(token, Arc::clone(&waiting) as Arc<dyn Expiry>);
                    }
                    self.clients.sets.waiting.insert(token, (waiting, limit));
                    return reply;
                }
                _ => {
                    set.give_back(self.engine(), self.agent());
                    return reply;
                }
            }
        }
        set.bring_back(self.engine(), self.agent().id);
        Ok(Reply::Now(Outcome::GRANTED))
    }

    /// Goes on with the set whose next lock has just been granted; `None` if there is none.
    pub fn go_on(&mut self) -> Option<Result<Reply, ReplyError>> {
        let (mut set, limit) = self.clients.sets.settled.take()?;
        let reply = self.lock_all(&mut set, limit);
        if !matches!(reply, Ok(Reply::Pending { .. })) {
            self.clients.sets.settled = Some((set, limit));
        }
        Some(reply)
    }

    /// The result of `look` at the set of the pending wait, or of the one that was settled last; `None` if there is none.
    pub fn look_at_set<T>(&self, pending: Option<u32>, look: impl FnOnce(&LockSet) -> T) -> Option<T> {
        match pending {
            Some(token) => self.clients.sets.waiting.get(&token).map(|(waiting, _)| waiting.look(look)),
            None => self.clients.sets.settled.as_ref().map(|(set, _)| look(set)),
        }
    }
}
