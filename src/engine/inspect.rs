//! Snapshots for people: who holds, who waits. They change nothing, and keep a bucket locked only while they copy.

use std::time::{Duration, Instant};

use super::primitive::{Mode, Primitive, State};
use super::table::Engine;
use crate::agents::{AgentId, Standing, ThreadId};
use crate::memory::Place;
use crate::sync;

/// One waiter.
#[derive(Debug)]
pub struct WaiterView {
    /// Its thread.
    pub thread: ThreadId,
    /// Whether the thread is blocked; else a promise is pending.
    pub is_blocking: bool,
    /// How it will hold.
    pub mode: Option<Mode>,
    /// How long it has waited.
    pub waited: Duration,
}

/// A primitive and its queue.
#[derive(Debug)]
pub struct LockView {
    /// Its state.
    pub state: State,
    /// The thread of the owner, running or ended; `None` if nobody holds it alone, or the words are foreign.
    pub owner: Option<ThreadId>,
    /// Whether the owner's thread has ended.
    pub owner_has_ended: bool,
    /// Who waits, in order.
    pub waiters: Vec<WaiterView>,
}

/// A hold of a primitive that somebody waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HoldView {
    /// Tells it from every other hold of this primitive.
    pub serial: u64,
    /// The holder's thread.
    pub thread: ThreadId,
}

/// What is copied of a waiter under the bucket's lock.
struct Copied {
    ticket: u64,
    agent: AgentId,
    is_blocking: bool,
    mode: Option<Mode>,
    since: Instant,
}

impl Engine {
    /// A primitive and who waits for it.
    pub fn inspect(&self, primitive: &dyn Primitive, place: Place) -> LockView {
        let contents = self.contents(primitive.space(), place.address());
        let state = primitive.read(place);
        let mut copied: Vec<Copied> = Vec::new();
        if let Some(queue) = contents.queues.get(&place.address()) {
            copied.extend(queue.tickets(&contents.waiters).map(|(ticket, id)| {
                let waiter = &contents.waiters[id];
                let (agent, is_blocking, since) = (waiter.agent, waiter.is_blocking(), waiter.since);
                Copied { ticket, agent, is_blocking, mode: waiter.hold.map(|hold| hold.mode), since }
            }));
        }
        drop(contents);
        copied.sort_unstable_by_key(|waiter| waiter.ticket);
        let now = sync::now();
        let view = |waiter: Copied| WaiterView {
            thread: self.agents.thread(waiter.agent).unwrap_or_default(),
            is_blocking: waiter.is_blocking,
            mode: waiter.mode,
            waited: now.saturating_duration_since(waiter.since),
        };
        let owner = primitive.owner(state);
        LockView {
            state,
            owner: self.agents.thread(owner),
            owner_has_ended: owner != 0 && self.agents.standing(owner) == Standing::Ended,
            waiters: copied.into_iter().map(view).collect(),
        }
    }

    /// The hold of a primitive at this moment, if somebody waits who has seen it begin, or has come since: W is set, so that
    /// nothing but a section can have ended it in between.
    pub fn hold(&self, primitive: &dyn Primitive, place: Place) -> Option<HoldView> {
        let contents = self.contents(primitive.space(), place.address());
        let queue = contents.queues.get(&place.address())?;
        let state = primitive.read(place);
        let owner = self
            .agents
            .get(primitive.owner(state))
            .filter(|_| primitive.is_waiting(state) || fault!(HoldThatMayEndUnseen))?;
        Some(HoldView { serial: queue.hold_serial, thread: owner.thread })
    }
}
