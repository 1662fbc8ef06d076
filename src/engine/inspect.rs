//! Snapshots for people: who holds, who waits. They change nothing, and keep a bucket locked only while they copy.

use std::time::{Duration, Instant};

use super::primitive::{Mode, Primitive, Space, State};
use super::queue::{Queue, Waiter, Waiters};
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

/// Who waits in a queue; or nobody.
fn copy(queue: Option<&Queue>, waiters: &Waiters) -> Vec<Copied> {
    let copied = |(ticket, id)| {
        let waiter: &Waiter = &waiters[id];
        let (agent, is_blocking, since) = (waiter.agent, waiter.is_blocking(), waiter.since);
        Copied { ticket, agent, is_blocking, mode: waiter.hold.map(|hold| hold.mode), since }
    };
    queue.into_iter().flat_map(|queue| queue.tickets(waiters)).map(copied).collect()
}

impl Engine {
    /// A primitive and who waits for it.
    pub fn inspect(&self, primitive: &dyn Primitive, place: Place) -> LockView {
        let contents = self.contents(primitive.space(), place.address());
        let state = primitive.read(place);
        let waiters = copy(contents.queues.get(&place.address()), &contents.waiters);
        drop(contents);
        self.view(primitive, state, waiters)
    }

    /// Every place where somebody waits for such a primitive, in no order. A snapshot of each, and not one of all: one bucket
    /// after the other is locked.
    pub fn inspect_all(&self, primitive: &'static dyn Primitive) -> Vec<(Place, LockView)> {
        let copies = self.buckets(primitive.space()).flat_map(|bucket| {
            let contents = bucket.contents.lock();
            let queues = contents.queues.values().filter(|queue| queue.primitive.name() == primitive.name());
            // The memory lives, since whoever is queued keeps its buffer.
            let copied = queues
                .map(|queue| (queue.place, primitive.read(queue.place), copy(Some(queue), &contents.waiters)))
                .collect::<Vec<_>>();
            drop(contents);
            copied
        });
        copies.map(|(place, state, waiters)| (place, self.view(primitive, state, waiters))).collect()
    }

    fn view(&self, primitive: &dyn Primitive, state: State, mut waiters: Vec<Copied>) -> LockView {
        waiters.sort_unstable_by_key(|waiter| waiter.ticket);
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
            waiters: waiters.into_iter().map(view).collect(),
        }
    }

    /// The hold of a primitive at this moment, if somebody waits who has seen it begin, or has come since: W is set, so that
    /// nothing but a section can have ended it in between.
    pub fn hold(&self, place: Place) -> Option<HoldView> {
        let contents = self.contents(Space::Words, place.address());
        let queue = contents.queues.get(&place.address())?;
        let primitive = queue.primitive;
        let state = primitive.read(place);
        let owner = self
            .agents
            .get(primitive.owner(state))
            .filter(|_| primitive.is_waiting(state) || fault!(HoldThatMayEndUnseen))?;
        Some(HoldView { serial: queue.hold_serial, thread: owner.thread })
    }
}
