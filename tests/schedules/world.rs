//! A program's world: an engine, things that are locked, names, and a store of goods that some wait for.

use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU32 as Count, Ordering};
use std::time::Duration;

use sablock::agents::{Agent, AgentId};
use sablock::clients::{Clients, Name, Names};
use sablock::engine::{Engine, EventLoop, Hold, HoldOwner, Limit, Mode, Outcome, Patience, Primitive, Reply, Request};
use sablock::memory::Place;
use sablock::primitives::event::SET;
use sablock::primitives::mutex::{MUTEX, Word};
use sablock::primitives::rwlock::RWLOCK;
use sablock::primitives::semaphore::{FAIR_SEMAPHORE, SEMAPHORE};
use sablock::sync::AtomicU32;

use super::clock::VirtualClock;
use super::meeting::Meeting;
use super::outside::Outside;
use super::reached::{Reached, reached};
use super::room::{PERMITS, Room};
use super::{below, one_in, trace};

/// Things that any actor locks; after these comes the mutex of the store, and then where those wait who find it empty.
const THINGS: usize = 3;
const STORE: usize = THINGS;
const CONDITION: usize = THINGS + 1;
/// An event, which some pass.
const GATE: usize = THINGS + 2;
/// The index of the place where some meet.
pub const MEETING: usize = THINGS + 3;
const NAMES: usize = 2;
/// The number of the main thread among the actors.
pub const MAIN: usize = 99;

/// The address of words: in each program the same, by which queues are looked for and sets ordered.
fn words(index: usize) -> NonNull<[AtomicU32; 2]> {
    thread_local! {
        static WORDS: &'static mut [MaybeUninit<[AtomicU32; 2]>] = Box::leak(Box::new_uninit_slice(MEETING + 1));
    }
    WORDS.with(|words| NonNull::from(&words[index]).cast())
}

/// The place of these words.
pub fn place(index: usize) -> Place {
    // SAFETY: two aligned atomics, which stay for ever.
    unsafe { Place::new(words(index).cast(), 8 * index) }
}

/// One thing that is locked.
pub struct Thing {
    pub primitive: &'static dyn Primitive,
    index: usize,
    pub room: Room,
}

impl Thing {
    fn random(index: usize) -> Self {
        let kinds: [&'static dyn Primitive; 4] = [&MUTEX, &RWLOCK, &SEMAPHORE, &FAIR_SEMAPHORE];
        let primitive = if index == STORE { kinds[0] } else { kinds[[0, 0, 0, 1, 1, 1, 2, 3][below(8)]] };
        Self { primitive, index, room: Room::new(primitive.about().name) }
    }

    pub fn place(&self) -> Place {
        place(self.index)
    }

    /// Whether it is a lock, of which the engine finds deadlocks.
    pub fn is_lock(&self) -> bool {
        self.primitive.about().registered != Some("permits")
    }

    /// One of the ways to hold it.
    pub fn random_hold(&self) -> Hold {
        let owner = if one_in(2) { HoldOwner::Thread } else { HoldOwner::Guard };
        if !self.is_lock() {
            Hold::permits(1 + below(PERMITS as usize) as u32, PERMITS)
        } else if self.primitive.is(&RWLOCK) && !one_in(3) {
            Hold::shared(owner)
        } else {
            Hold::exclusive(owner)
        }
    }

    /// To hold it so that nobody else does.
    fn whole(&self) -> Hold {
        if self.is_lock() { Hold::exclusive(HoldOwner::Thread) } else { Hold::permits(PERMITS, PERMITS) }
    }

    /// Whether the mark is set that somebody's thread ended inside. In a mutex and a readers-writer lock it is the same bit.
    pub fn is_marked(&self) -> bool {
        self.is_lock() && Word(self.place().word().load(Ordering::SeqCst)).is_abandoned()
    }

    /// Overwrites its word, with what the package never writes, or as if it were free and nobody waited; the store's for good.
    fn spoil(&self) {
        self.room.spoil();
        let odd = if self.is_lock() { 7 } else { 1 << 30 };
        let word = if self.index == STORE { u32::MAX } else { [0, odd, u32::MAX][below(3)] };
        self.place().word().store(word, Ordering::SeqCst);
    }

    /// The fast path of JS: true if one compare-exchange has taken it.
    pub fn try_enter(&self, hold: Hold, agent: AgentId) -> bool {
        self.primitive.try_enter(self.place(), Request::Hold(hold), agent)
    }

    /// The fast path of `unlock()`: true if one compare-exchange has released it.
    pub fn try_release(&self, hold: Hold, agent: AgentId) -> bool {
        self.primitive.is(&MUTEX)
            && hold.owner() == HoldOwner::Thread
            && self.place().word().compare_exchange(agent, 0, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }
}

/// The mood of a world: what its actors do.
pub struct Mood {
    /// Once in so many times a thread ends where it is.
    pub ends: usize,
    /// The number of tries, and of waits that have an end, of four waits.
    tries: usize,
    timed: usize,
    /// The ways in which a thread locks, and a loop asks.
    pub acts: Vec<Act>,
    pub asks: Vec<Ask>,
}

/// An act of a thread that blocks.
#[derive(Clone, Copy)]
pub enum Act {
    One,
    Both,
    All,
    FreeSlot,
}

/// A request of an event loop.
#[derive(Clone, Copy)]
pub enum Ask {
    Thing,
    All,
    Name,
    Outside,
}

impl Mood {
    fn random() -> Self {
        Self {
            ends: [10, 60, 400][below(3)],
            tries: below(3),
            timed: below(3),
            acts: some_of(&[Act::One, Act::Both, Act::All, Act::FreeSlot]),
            asks: some_of(&[Ask::Thing, Ask::Thing, Ask::All, Ask::Name, Ask::Outside]),
        }
    }
}

/// One of them at least.
fn some_of<T: Copy>(all: &[T]) -> Vec<T> {
    let some: Vec<_> = all.iter().filter(|_| one_in(2)).copied().collect();
    if some.is_empty() { vec![all[0]] } else { some }
}

/// The history of an event that lets one pass each time that it is set.
#[derive(Default)]
pub struct Gate {
    pub sets: Count,
    pub passed: Count,
    /// The number that ended before they had.
    pub ended: Count,
    /// The number that live who are to pass, and have not yet.
    pub passers: Count,
}

/// The world that the actors of a program share.
pub struct World {
    pub engine: &'static Engine,
    pub names: Names<'static>,
    pub clock: VirtualClock,
    /// The last is the store's.
    pub things: Vec<Thing>,
    pub named: [Room; NAMES],
    /// The goods that the store's mutex guards.
    pub goods: Count,
    /// Which actors are event loops.
    pub actors: Vec<bool>,
    /// Whether each takes something from the store.
    pub takes: Vec<bool>,
    /// The number of these that live, and have not yet.
    pub takers: Count,
    /// Whether each passes the gate.
    pub passes: Vec<bool>,
    pub gate: Gate,
    pub meeting: Meeting,
    pub outside: Outside,
    /// Whose end has begun.
    terminated: Vec<AtomicBool>,
    /// The mood of its actors, drawn for each world, so that what is rare among everything is common in some.
    pub mood: Mood,
    /// Locks are wanted in either order.
    pub is_crosswise: bool,
    /// Blocked threads look up now and then: else they are not reported of an end, nor of words that were overwritten.
    pub has_slices: bool,
}

impl World {
    pub fn random() -> Self {
        for index in 0..=MEETING {
            // SAFETY: of those who used them before, all have ended.
            unsafe { words(index).write([0, 0].map(AtomicU32::new)) };
        }
        let has_slices = !one_in(3);
        let clock = VirtualClock::default();
        let some = |time| if one_in(2) { time } else { Duration::ZERO };
        let whole = Patience::default();
        let patience = Patience {
            slice: if has_slices { Duration::from_millis(25) } else { Duration::from_secs(3600) },
            grant_after: if one_in(4) { Duration::MAX } else { some(whole.grant_after) },
            grant_every: some(whole.grant_every),
            lease: some(whole.lease),
            spin: some(whole.spin),
            spin_queued: some(whole.spin_queued),
            longest_park: some(whole.longest_park),
            ..whole
        };
        let engine: &'static Engine = Box::leak(Box::new(Engine::new(1, 70_000, patience, Box::new(clock.clone()))));
        let actors: Vec<_> = (0..2 + below(3)).map(|_| one_in(2)).collect();
        let mut things: Vec<_> = (0..1 + below(THINGS)).map(Thing::random).collect();
        // Only of locks does the engine say that they are wanted crosswise.
        let is_crosswise = things.iter().all(Thing::is_lock) && one_in(2);
        things.push(Thing::random(STORE));
        let [takes, passes] = [(); 2].map(|()| actors.iter().map(|_| one_in(2)).collect::<Vec<_>>());
        Self {
            engine,
            names: Names::new(engine),
            clock,
            things,
            named: [(); NAMES].map(|()| Room::new("name")),
            goods: Count::new(0),
            takers: Count::new(takes.iter().filter(|takes| **takes).count() as u32),
            takes,
            gate: Gate {
                passers: Count::new(passes.iter().filter(|passes| **passes).count() as u32),
                ..Gate::default()
            },
            passes,
            meeting: Meeting::random(actors.len()),
            outside: Outside::random(),
            terminated: actors.iter().map(|_| AtomicBool::new(false)).collect(),
            actors,
            mood: Mood::random(),
            is_crosswise,
            has_slices,
        }
    }

    /// Returns the things that any actor locks.
    pub fn common_things(&self) -> &[Thing] {
        &self.things[..self.things.len() - 1]
    }

    pub fn is_any_spoiled(&self) -> bool {
        self.things.iter().any(|thing| thing.room.is_spoiled())
    }

    /// The number of the store's mutex among the things.
    pub fn store(&self) -> usize {
        self.things.len() - 1
    }

    /// Returns the place where those wait who find the store empty.
    pub fn condition(&self) -> Place {
        place(CONDITION)
    }

    /// Returns the place of the event.
    pub fn gate(&self) -> Place {
        place(GATE)
    }

    /// Whether the event is set.
    pub fn is_open(&self) -> bool {
        self.gate().word().load(Ordering::SeqCst) & SET != 0
    }

    pub fn name(&self, index: usize) -> Name {
        Name::new(0, &[index as u16])
    }

    pub fn is_terminated(&self, number: usize) -> bool {
        self.terminated[number].load(Ordering::SeqCst)
    }

    /// Does what any actor may do to the others now and then.
    pub fn meddle(&self, agent: &Agent) {
        if self.has_slices && one_in(8) {
            self.terminated[below(self.actors.len())].store(true, Ordering::SeqCst);
        }
        if self.has_slices && one_in(24) {
            let index = below(self.things.len());
            trace(agent, || format!("overwrites {index}"));
            self.things[index].spoil();
        }
    }

    /// Returns the time that a wait may take.
    pub fn random_limit(&self) -> Limit {
        let Mood { tries, timed, .. } = self.mood;
        match below(4) {
            chance if chance < tries => Limit::Once,
            chance if chance < tries + timed => Limit::after(Duration::from_micros([0, 100, 2_000, 30_000][below(4)])),
            _ => Limit::Endless,
        }
    }

    fn expect_free_names(&self) {
        let agent = self.engine.agents.add(0).unwrap();
        let mut waits = EventLoop::with_clients(self.engine, agent, Clients::new(&self.names));
        for (index, room) in self.named.iter().enumerate() {
            let (request, reply) = waits.request_name(self.name(index), Mode::Exclusive, false, Limit::Once).unwrap();
            let Reply::Now(Outcome::Granted { abandoned_by, .. }) = reply else { panic!("name {index} is not free") };
            room.enter(MAIN, request.hold, abandoned_by);
            room.expect_all_reported(false);
            waits.release_name(request.number).unwrap();
        }
        waits.end();
        assert_eq!(self.names.query(0).iter().count(), 0, "somebody has or awaits a name");
    }

    /// All actors have ended: what is locked is free, each end inside was reported but once, and nothing is left.
    pub fn expect_rest(self: Box<Self>) {
        let stats = self.engine.stats();
        reached(Reached::HeldAfterAWait, stats.contended);
        reached(Reached::HandedOver, stats.handovers);
        reached(Reached::LeaseEnded, stats.passed_by);
        let next = self.engine.agents.add(0).unwrap();
        for thing in self.things.iter().filter(|thing| !thing.room.is_spoiled()) {
            let (place, hold) = (thing.place(), thing.whole());
            let request = Request::Hold(hold);
            let outcome = self.engine.wait(&next, thing.primitive, place, request, Limit::Once, &mut || true).unwrap();
            let Outcome::Granted { abandoned_by, .. } = outcome else {
                panic!("the {} is not free: {:#x}", thing.primitive.name(), place.word().load(Ordering::SeqCst))
            };
            thing.room.enter(MAIN, hold, abandoned_by);
            // A report that comes back while others read is in the mark alone.
            thing.room.expect_all_reported(thing.primitive.is(&RWLOCK) && thing.is_marked());
            assert_eq!(self.engine.release(&next, thing.primitive, place, hold), Ok(true));
        }
        self.engine.thread_ended(next.id);
        let Gate { sets, passed, ended, .. } = &self.gate;
        let [sets, passed, ended] = [sets, passed, ended].map(|count| count.load(Ordering::Relaxed));
        // As often as it was set, one passed, or can. What comes back from one that ended may find it set already.
        let passed = passed + u32::from(self.is_open());
        assert!((passed..=passed + ended).contains(&sets), "{sets} times set, {passed} passed or can, {ended} ended");
        self.meeting.expect_rest();
        self.expect_free_names();
        assert_eq!(self.engine.audit(), Vec::<String>::new());
        assert_eq!(self.engine.left(), Vec::<String>::new());
        assert_eq!(self.clock.deadlines(), 0, "deadlines are kept");
        assert!((stats.blocked, stats.pending) == (0, 0), "{stats:?}");
        let engine = std::ptr::from_ref(self.engine).cast_mut();
        drop(self);
        // SAFETY: made by `Box::leak`; all who used it have ended.
        drop(unsafe { Box::from_raw(engine) });
    }
}
