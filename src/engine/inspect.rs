//! Snapshots for people: who holds, who waits. They change nothing, and keep a bucket locked only while they copy.

use std::time::{Duration, Instant};

use super::contents::Contents;
use super::primitive::{Primitive, Space, State};
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
    /// The mode in which it will hold, in messages.
    pub mode: &'static str,
    /// The time that it has waited.
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
    /// The holders as the registers of holds have them, and how much each holds.
    pub registered: Vec<(ThreadId, u32)>,
    /// The waiters, in order.
    pub waiters: Vec<WaiterView>,
}

/// A hold of a primitive with waiters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HoldView {
    /// Tells it from every other hold of this primitive.
    pub serial: u64,
    /// The holder's thread.
    pub thread: ThreadId,
}

/// The copy of a waiter that is made under the bucket's lock.
#[derive(Clone)]
struct Copied {
    ticket: u64,
    agent: AgentId,
    is_blocking: bool,
    mode: &'static str,
    since: Instant,
}

/// The copy of a primitive that is made under the bucket's lock.
struct Snapshot {
    state: State,
    registered: Vec<(AgentId, u32)>,
    waiters: Vec<Copied>,
}

impl Snapshot {
    /// `room` is for the waiters.
    fn new(primitive: &dyn Primitive, place: Place, contents: &Contents, room: Vec<Copied>) -> Self {
        let address = place.address();
        Self {
            state: primitive.read(place),
            registered: contents.held(address).map(|held| (held.agent, held.count)).collect(),
            waiters: copy(contents.queues.get(&address), &contents.waiters, room),
        }
    }
}

/// Copies the waiters of a queue; none if there is no queue.
fn copy(queue: Option<&Queue>, waiters: &Waiters, mut room: Vec<Copied>) -> Vec<Copied> {
    let Some(queue) = queue else { return room };
    let copied = |(ticket, id)| {
        let waiter: &Waiter = &waiters[id];
        let (agent, is_blocking, since) = (waiter.agent, waiter.is_blocking(), waiter.since);
        Copied { ticket, agent, is_blocking, mode: queue.primitive.mode_of(waiter.hold), since }
    };
    room.extend(queue.tickets(waiters).map(copied));
    room
}

/// Room for so many waiters. Its memory is written to once: a page that is touched first while the bucket is locked would
/// make the others wait for the system.
fn room_for(len: usize) -> Vec<Copied> {
    let nobody = Copied { ticket: 0, agent: 0, is_blocking: false, mode: "", since: sync::now() };
    let mut room = vec![nobody; len];
    room.clear();
    room
}

impl Engine {
    /// A primitive, who holds it, and who waits for it.
    pub fn inspect(&self, primitive: &dyn Primitive, place: Place) -> LockView {
        let (space, address) = (primitive.space(), place.address());
        let len = self.contents(space, address).queues.get(&address).map_or(0, Queue::len);
        let room = room_for(len);
        let snapshot = Snapshot::new(primitive, place, &self.contents(space, address), room);
        self.view(primitive, snapshot)
    }

    /// The same without those who wait, however many they are.
    pub fn holders(&self, primitive: &dyn Primitive, place: Place) -> LockView {
        let address = place.address();
        let snapshot = {
            let contents = self.contents(primitive.space(), address);
            let registered = contents.held(address).map(|held| (held.agent, held.count)).collect();
            Snapshot { state: primitive.read(place), registered, waiters: Vec::new() }
        };
        self.view(primitive, snapshot)
    }

    /// Every place where somebody waits, for whatever primitive, in no order. A snapshot of each, and not one of all: one
    /// lock after the other is looked at.
    pub fn inspect_all(&self) -> Vec<(&'static dyn Primitive, Place, LockView)> {
        let buckets = [Space::Words, Space::Notifications].into_iter().flat_map(|space| self.buckets(space));
        let queued = buckets.flat_map(|bucket| {
            let contents = bucket.contents.lock();
            let queues = contents.queues.values().filter(|queue| !queue.is_empty());
            queues.map(|queue| (queue.primitive, queue.place, queue.len())).collect::<Vec<_>>()
        });
        let snapshots = queued.filter_map(|(primitive, place, len)| {
            let room = room_for(len);
            let contents = self.contents(primitive.space(), place.address());
            // The memory lives, since whoever is queued keeps its buffer; of those who were, it may be gone.
            let still = contents.queues.get(&place.address()).filter(|queue| !queue.is_empty())?;
            let (primitive, place) = (still.primitive, still.place);
            Some((primitive, place, Snapshot::new(primitive, place, &contents, room)))
        });
        snapshots.map(|(primitive, place, snapshot)| (primitive, place, self.view(primitive, snapshot))).collect()
    }

    /// For what somebody waits at this place, in the table of primitives with words of their own.
    pub fn queued_at(&self, place: Place) -> Option<&'static dyn Primitive> {
        let contents = self.contents(Space::Words, place.address());
        contents.queues.get(&place.address()).map(|queue| queue.primitive)
    }

    /// Returns the waiters at an address, in order.
    pub(crate) fn waiters_at(&self, contents: &Contents, address: usize) -> Vec<WaiterView> {
        self.waiter_views(copy(contents.queues.get(&address), &contents.waiters, Vec::new()))
    }

    fn waiter_views(&self, mut waiters: Vec<Copied>) -> Vec<WaiterView> {
        waiters.sort_unstable_by_key(|waiter| waiter.ticket);
        let now = sync::now();
        let view = |waiter: Copied| WaiterView {
            thread: self.agents.thread(waiter.agent).unwrap_or_default(),
            is_blocking: waiter.is_blocking,
            mode: waiter.mode,
            waited: now.saturating_duration_since(waiter.since),
        };
        waiters.into_iter().map(view).collect()
    }

    fn view(&self, primitive: &dyn Primitive, Snapshot { state, registered, waiters }: Snapshot) -> LockView {
        let thread = |agent| self.agents.thread(agent).unwrap_or_default();
        let owner = primitive.owner(state);
        LockView {
            state,
            owner: self.agents.thread(owner),
            owner_has_ended: self.agents.standing(owner) == Standing::Ended,
            registered: registered.into_iter().map(|(agent, count)| (thread(agent), count)).collect(),
            waiters: self.waiter_views(waiters),
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
