//! Several locks at once: all of them or none.
//!
//! They are taken one after the other in the order of their addresses, which is the same for every thread: so those who want
//! several never wait for each other in a circle. While one is awaited, those before it are held. Who does not get them all
//! gives back what it has, unmarked, since its code never ran with it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use super::block::{Caller, Failure, Limit, Outcome};
use super::event_loop::{EventLoop, Reply, ReplyError, Settled};
use super::primitive::{Hold, Mode, Primitive, Request, State};
use super::table::Engine;
use crate::agents::{Agent, AgentId};
use crate::memory::Place;
use crate::sync;

/// A lock of a set.
struct Part {
    primitive: &'static dyn Primitive,
    place: Place,
    hold: Hold,
    /// Its place in the list of whoever asked.
    index: usize,
    /// The agent whose thread ended inside, which whoever gets the set has to report.
    abandoned_by: Option<AgentId>,
}

/// A wait for one lock of a set that is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PartWait {
    /// Which lock, as its place in the list of whoever asked.
    pub index: usize,
    /// Who held it alone when the wait began; 0 for nobody.
    pub owner: AgentId,
    /// How long it took.
    pub waited: Duration,
}

/// Locks that are wanted together.
#[derive(Default)]
pub struct LockSet {
    /// In the order in which they are taken; each lock once.
    parts: Vec<Part>,
    /// How many of them are held: the first ones.
    held: usize,
    /// The lock that was awaited last, or could not be had, as its place in the list of whoever asked.
    pub stopped_at: Option<usize>,
    /// The waits of a thread that blocked for it.
    pub waits: Vec<PartWait>,
}

impl LockSet {
    /// A lock that is named several times counts once: exclusively, if that is asked for once.
    pub fn new(wanted: impl IntoIterator<Item = (&'static dyn Primitive, Place, Hold)>) -> Self {
        let part = |(index, (primitive, place, hold))| Part { primitive, place, hold, index, abandoned_by: None };
        let mut parts: Vec<Part> = wanted.into_iter().enumerate().map(part).collect();
        parts.sort_by_key(|part| (part.place.address(), part.hold.mode != Mode::Exclusive));
        parts.dedup_by(|other, first| {
            other.place.address() == first.place.address() && other.primitive.name() == first.primitive.name()
        });
        Self { parts, ..Self::default() }
    }

    /// As if all of them were held, and these agents' ends were still to be reported, each with the lock's place in the list.
    #[must_use]
    pub fn all_held(mut self, reports: &[(usize, AgentId)]) -> Self {
        self.held = self.parts.len();
        for part in &mut self.parts {
            let report = reports.iter().find(|(index, _)| *index == part.index);
            part.abandoned_by = report.map(|(_, agent)| *agent);
        }
        self
    }

    /// The locks' places in the list of whoever asked, each lock once, in the order in which they are taken.
    pub fn indices(&self) -> impl Iterator<Item = usize> {
        self.parts.iter().map(|part| part.index)
    }

    /// The ended agents that whoever has got the set has to report, each with the lock's place in the list.
    pub fn reports(&self) -> impl Iterator<Item = (usize, AgentId)> {
        self.parts.iter().filter_map(|part| Some((part.index, part.abandoned_by?)))
    }

    /// Where they are.
    pub fn places(&self) -> impl Iterator<Item = Place> {
        self.parts.iter().map(|part| part.place)
    }

    /// The lock that is taken next; `None` if all of them are held.
    fn next(&self) -> Option<&Part> {
        self.parts.get(self.held)
    }

    fn granted(&mut self, abandoned_by: Option<AgentId>) {
        self.parts[self.held].abandoned_by = abandoned_by;
        self.held += 1;
    }
}

/// Passes on what its caller wants to know, and notes when a wait began.
struct Noting<'c> {
    caller: &'c mut dyn Caller,
    queued: Option<(AgentId, Instant)>,
}

impl Caller for Noting<'_> {
    fn pause(&mut self) -> bool {
        self.caller.pause()
    }

    fn queued(&mut self, owner: AgentId, state: State, since: Instant) {
        self.queued = Some((owner, since));
        self.caller.queued(owner, state, since);
    }
}

impl Engine {
    /// Takes all locks of the set, or none, blocking the thread of `agent`, which is this one. If it fails, nothing of the set
    /// is held.
    pub fn lock_all(
        &self,
        agent: &Arc<Agent>,
        set: &mut LockSet,
        limit: Limit,
        caller: &mut dyn Caller,
    ) -> Result<Outcome, Failure> {
        let mut caller = Noting { caller, queued: None };
        while let Some(&Part { primitive, place, hold, index, .. }) = set.next() {
            let request = Request::Hold(hold);
            if primitive.try_enter(place, request, agent.id) {
                self.note_hold(primitive, place, agent.id, hold);
                set.granted(None);
                continue;
            }
            let outcome = self.wait(agent, primitive, place, request, limit, &mut caller);
            if let Some((owner, since)) = caller.queued.take() {
                set.waits.push(PartWait { index, owner, waited: sync::now().saturating_duration_since(since) });
            }
            let Ok(Outcome::Granted { abandoned_by }) = outcome else {
                set.stopped_at = Some(index);
                self.give_back_all(agent, set);
                return outcome;
            };
            set.granted(abandoned_by);
        }
        Ok(Outcome::GRANTED)
    }

    /// Gives back what is held of the set, as if it had not been acquired.
    pub fn give_back_all(&self, here: &Arc<Agent>, set: &mut LockSet) {
        for part in set.parts[..set.held].iter_mut().rev() {
            self.give_back(here, part.primitive, part.place, part.hold, part.abandoned_by.take());
        }
        set.held = 0;
    }
}

/// The sets of an event loop that are not its code's yet.
#[derive(Default)]
pub(super) struct PendingSets {
    /// By the token of the wait for the lock that comes next.
    waiting: FxHashMap<u32, (LockSet, Limit)>,
    /// The set of the wait that was settled last, until the next is: the thread's code may not know of it yet.
    settled: Option<(LockSet, Limit)>,
}

impl EventLoop<'_> {
    /// Takes all locks of the set, or waits for the next one to be had; what it has is held meanwhile, and the set is taken.
    /// Once that wait is settled as granted, [`EventLoop::go_on`] is due. However else it ends, nothing of the set is held.
    pub fn lock_all(&mut self, set: &mut LockSet, limit: Limit) -> Result<Reply, ReplyError> {
        while let Some(&Part { primitive, place, hold, index, .. }) = set.next() {
            set.stopped_at = Some(index);
            match self.wait(primitive, place, Request::Hold(hold), limit) {
                Ok(Reply::Now(Outcome::Granted { abandoned_by })) => set.granted(abandoned_by),
                Ok(Reply::Pending(token)) => {
                    self.sets.waiting.insert(token, (std::mem::take(set), limit));
                    return Ok(Reply::Pending(token));
                }
                reply => {
                    self.engine.give_back_all(&self.agent, set);
                    return reply;
                }
            }
        }
        Ok(Reply::Now(Outcome::GRANTED))
    }

    /// Goes on with the set whose next lock has just been granted; `None` if there is none.
    pub fn go_on(&mut self) -> Option<Result<Reply, ReplyError>> {
        let (mut set, limit) = self.sets.settled.take()?;
        let reply = self.lock_all(&mut set, limit);
        if !matches!(reply, Ok(Reply::Pending(_))) {
            self.sets.settled = Some((set, limit));
        }
        Some(reply)
    }

    /// The set of the pending wait, or of the one that was settled last.
    pub fn set_of(&self, pending: Option<u32>) -> Option<&LockSet> {
        let set = match pending {
            Some(token) => self.sets.waiting.get(&token),
            None => self.sets.settled.as_ref(),
        };
        set.map(|(set, _)| set)
    }

    /// The thread's code knows of the set that was settled last; it had to go on with it if it is not complete.
    pub(super) fn accept_set(&mut self) {
        if let Some((mut set, _)) = self.sets.settled.take()
            && set.next().is_some()
        {
            self.engine.give_back_all(&self.agent, &mut set);
        }
    }

    /// Nobody wants the set that was settled last. False if there is none.
    pub(super) fn refuse_set(&mut self) -> bool {
        let Some((mut set, _)) = self.sets.settled.take() else { return false };
        self.engine.give_back_all(&self.agent, &mut set);
        true
    }

    /// A wait was settled: if it was for a lock of a set, the set has that lock, or none any more. True if so: what was
    /// granted is the set's to give back.
    pub(super) fn settle_set(&mut self, settled: &Settled) -> bool {
        let Some((mut set, limit)) = self.sets.waiting.remove(&settled.token) else { return false };
        if let Ok(Outcome::Granted { abandoned_by }) = settled.outcome {
            set.granted(abandoned_by);
        } else {
            self.engine.give_back_all(&self.agent, &mut set);
        }
        self.sets.settled = Some((set, limit));
        true
    }

    /// The wait was taken back.
    pub(super) fn cancel_set(&mut self, token: u32) {
        if let Some((mut set, _)) = self.sets.waiting.remove(&token) {
            self.engine.give_back_all(&self.agent, &mut set);
        }
    }

    /// The environment has ended.
    pub(super) fn end_sets(&mut self) {
        for (_, (mut set, _)) in std::mem::take(&mut self.sets.waiting) {
            self.engine.give_back_all(&self.agent, &mut set);
        }
    }
}
