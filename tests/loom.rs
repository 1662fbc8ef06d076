//! Models of the real code: loom runs each of them with every interleaving of its threads (within a bound on preemptions).
//!
//! `RUSTFLAGS="--cfg loom" cargo test --release --no-default-features --test loom`
//!
//! A wake-up that is lost shows as a deadlock, which loom reports; two holders at once, as a concurrent access to `data`.
#![cfg(loom)]

#[path = "loom/blocking.rs"]
mod blocking;
mod common;
#[path = "loom/deadlocks.rs"]
mod deadlocks;
#[path = "loom/ends.rs"]
mod ends;
#[path = "loom/event_loops.rs"]
mod event_loops;
#[path = "loom/futex.rs"]
mod futex;
#[path = "loom/parking.rs"]
mod parking;
#[path = "loom/spinning.rs"]
mod spinning;

use common::{Locks as _, LocksAsync as _};
use std::sync::Arc;
use std::time::Duration;

use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;

use common::{ManualClock, event_loop, model, spawn, turn};
use sablock::agents::{Agent, Notice};
use sablock::clients::LockSet;
use sablock::engine::{Change, Hold, HoldOwner, Primitive};
use sablock::engine::{Engine, Patience};
use sablock::engine::{EventLoop, Reply, Settled};
use sablock::engine::{Failure, Limit, Outcome};
use sablock::memory::Place;
use sablock::primitives::mutex::{MUTEX, Word};
use sablock::sync::Thread;

/// One word, what it guards, and the engine.
struct World {
    engine: Engine,
    clock: ManualClock,
    word: AtomicU32,
    beside: AtomicU32,
    third: AtomicU32,
    data: UnsafeCell<u32>,
}

// SAFETY: `data` is touched by holders of `word` only; that is what the models show, since loom checks each access.
unsafe impl Send for World {}
unsafe impl Sync for World {}

impl World {
    fn new(patience: Patience) -> Arc<Self> {
        let clock = ManualClock::default();
        let engine = Engine::new(1, 70_000, patience, Box::new(clock.clone()));
        let [word, beside, third] = [(); 3].map(|()| AtomicU32::new(0));
        Arc::new(Self { engine, clock, word, beside, third, data: UnsafeCell::new(0) })
    }

    /// A world, and an agent that holds its word.
    fn held(patience: Patience) -> (Arc<Self>, Arc<Agent>) {
        let world = Self::new(patience);
        let me = world.enter();
        world.lock(&me, Limit::Endless);
        (world, me)
    }

    fn word(&self) -> Place {
        // SAFETY: `self.word` is an aligned atomic; every thread of a model keeps the world until its waits are over.
        unsafe { Place::new(std::ptr::NonNull::from(&self.word).cast(), 0) }
    }

    /// A second word.
    fn beside(&self) -> Place {
        // SAFETY: as in `word`.
        unsafe { Place::new(std::ptr::NonNull::from(&self.beside).cast(), 4) }
    }

    /// A third.
    fn third(&self) -> Place {
        // SAFETY: as in `word`.
        unsafe { Place::new(std::ptr::NonNull::from(&self.third).cast(), 8) }
    }

    /// A holder's work.
    fn touch(&self) {
        // SAFETY: the caller holds the word.
        self.data.with_mut(|data| unsafe { *data += 1 });
    }

    fn enter(&self) -> Arc<Agent> {
        self.engine.agents.add(0).unwrap()
    }

    /// As `lock()` in JS: one compare-exchange, then the slow path.
    fn lock(&self, agent: &Arc<Agent>, limit: Limit) -> Outcome {
        if self.word.compare_exchange(0, agent.id, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
            return Outcome::GRANTED;
        }
        self.engine.lock(agent, self.word(), HoldOwner::Thread, limit, &mut || true).unwrap()
    }

    /// As `unlock()` in JS.
    fn unlock(&self, agent: &Arc<Agent>) {
        if self.word.compare_exchange(agent.id, 0, Ordering::SeqCst, Ordering::SeqCst).is_err() {
            self.engine.unlock(agent, self.word(), HoldOwner::Thread).unwrap();
        }
    }

    fn hold_once(&self) {
        let agent = self.enter();
        assert_eq!(self.lock(&agent, Limit::Endless), Outcome::GRANTED);
        assert_eq!(Word(self.word.load(Ordering::SeqCst)).owner(), agent.id, "the word says so too");
        self.touch();
        self.unlock(&agent);
    }

    /// As [`World::hold_once`], by `lockAll()`: nothing but the lock orders what is done to the data.
    fn hold_among_several(&self) {
        let agent = self.enter();
        let hold = Hold::exclusive(HoldOwner::Thread);
        let mut set = LockSet::new([(&MUTEX as &'static dyn Primitive, self.word(), hold)]);
        let outcome = set.lock(&self.engine, &agent, Limit::Endless, &mut || true);
        assert_eq!(outcome.unwrap(), Outcome::GRANTED);
        self.touch();
        self.unlock(&agent);
    }

    fn expect_free(&self, holds: u32) {
        assert_eq!(Word(self.word.load(Ordering::SeqCst)), Word(0));
        // SAFETY: the model's threads are joined.
        self.data.with(|data| assert_eq!(unsafe { *data }, holds));
    }
}

/// Grants at once, or never: in a model everybody has waited for long. Nobody spins, and no loop parks.
fn patience(grants: bool) -> Patience {
    let grant_after = if grants { Duration::ZERO } else { Duration::MAX };
    let [spin, spin_queued, longest_park] = [Duration::ZERO; 3];
    Patience { grant_after, grant_every: Duration::ZERO, spin, spin_queued, longest_park, ..Patience::default() }
}

/// `lockAsync`, awaited.
fn hold_once_async(world: &World) {
    let (mut waits, parked) = event_loop(&world.engine);
    match waits.lock(world.word(), HoldOwner::Thread, Limit::Endless).unwrap() {
        Reply::Now(attempt) => assert_eq!(attempt, Outcome::GRANTED),
        Reply::Pending { token, .. } => {
            let outcome = Ok(Outcome::GRANTED);
            assert_eq!(turn(&mut waits, &parked), Settled { token, place: world.word(), is_for_hold: true, outcome });
            assert_eq!(waits.next_settled(), None);
        }
    }
    world.touch();
    let agent = Arc::clone(waits.agent());
    world.unlock(&agent);
}

/// One that waits gives up at once, or has the word in time, when another waits too and `me` unlocks.
fn timeout_against_unlock(world: &Arc<World>, me: &Arc<Agent>) {
    let patient = spawn(world, World::hold_once);
    let hasty = spawn(world, |world| {
        let agent = world.enter();
        // Queues, and finds its time over at once.
        if world.lock(&agent, Limit::Until(sablock::sync::now())) != Outcome::TimedOut {
            world.unlock(&agent);
        }
    });
    world.touch();
    world.unlock(me);
    patient.join().unwrap();
    hasty.join().unwrap();
    world.expect_free(2);
}
