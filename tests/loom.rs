//! Models of the real code: loom runs each of them with every interleaving of its threads (within a bound on preemptions).
//!
//! `RUSTFLAGS="--cfg loom" cargo test --release --no-default-features --test loom`
//!
//! A wake-up that is lost shows as a deadlock, which loom reports; two holders at once, as a concurrent access to `data`.
#![cfg(loom)]

mod common;
#[path = "loom/futex.rs"]
mod futex;

use std::sync::Arc;
use std::time::Duration;

use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;

use common::Leases;
use sablock::agents::{Agent, Notice, WaitId, Wake};
use sablock::engine::HoldOwner;
use sablock::engine::{Engine, Patience};
use sablock::engine::{EventLoop, Reply, Settled};
use sablock::engine::{Failure, Limit, Outcome};
use sablock::memory::Place;
use sablock::primitives::mutex::Word;
use sablock::sync::Thread;

/// One word, what it guards, and the engine.
struct World {
    engine: Engine,
    leases: Leases,
    word: AtomicU32,
    beside: AtomicU32,
    data: UnsafeCell<u32>,
}

// SAFETY: `data` is touched by holders of `word` only; that is what the models show, since loom checks each access.
unsafe impl Send for World {}
unsafe impl Sync for World {}

impl World {
    fn new(patience: Patience) -> Arc<Self> {
        let leases = Leases::default();
        let engine = Engine::new(1, 70_000, patience, Box::new(leases.clone()));
        Arc::new(Self { engine, leases, word: AtomicU32::new(0), beside: AtomicU32::new(0), data: UnsafeCell::new(0) })
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

    fn expect_free(&self, holds: u32) {
        assert_eq!(Word(self.word.load(Ordering::SeqCst)), Word(0));
        // SAFETY: the model's threads are joined.
        self.data.with(|data| assert_eq!(unsafe { *data }, holds));
    }
}

/// Grants at once, or never: in a model no time passes.
fn patience(grants: bool) -> Patience {
    let grant_after = if grants { Duration::ZERO } else { Duration::MAX };
    Patience { grant_after, grant_every: Duration::ZERO, ..Patience::default() }
}

/// Makes a loop turn.
struct LoopWaker(Arc<Thread>);

impl Wake for LoopWaker {
    fn wake(&self) {
        self.0.unpark();
    }
}

/// A thread's event loop, and where it sleeps between turns.
fn event_loop(world: &World) -> (EventLoop<'_>, Arc<Thread>) {
    let agent = world.enter();
    let parked = Arc::new(Thread::current());
    agent.set_waker(Some(Box::new(LoopWaker(Arc::clone(&parked)))));
    (EventLoop::new(&world.engine, agent), parked)
}

/// Turns until a wait is settled.
fn turn(waits: &mut EventLoop<'_>, parked: &Thread) -> Settled {
    loop {
        if let Some(settled) = waits.next_settled() {
            return settled;
        }
        parked.park_until(sablock::sync::now() + Duration::from_secs(1));
    }
}

/// `lockAsync`, awaited.
fn hold_once_async(world: &World) {
    let (mut waits, parked) = event_loop(world);
    match waits.lock(world.word(), HoldOwner::Thread, Limit::Endless).unwrap() {
        Reply::Now(attempt) => assert_eq!(attempt, Outcome::GRANTED),
        Reply::Pending(token) => {
            let outcome = Ok(Outcome::GRANTED);
            assert_eq!(turn(&mut waits, &parked), Settled { token, place: world.word(), is_for_hold: true, outcome });
            assert_eq!(waits.next_settled(), None);
        }
    }
    world.touch();
    let agent = Arc::clone(waits.agent());
    world.unlock(&agent);
}

fn model(bound: usize, check: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    // Preemptions at any place beyond blocking; `LOOM_MAX_PREEMPTIONS` asks for more.
    builder.preemption_bound = builder.preemption_bound.max(Some(bound));
    builder.check(check);
}

fn spawn<T: 'static>(world: &Arc<World>, act: impl FnOnce(&World) -> T + 'static) -> thread::JoinHandle<T> {
    let world = Arc::clone(world);
    thread::spawn(move || act(&world))
}

#[test]
fn lock_against_unlock() {
    for grants in [false, true] {
        model(4, move || {
            let world = World::new(patience(grants));
            let other = spawn(&world, World::hold_once);
            world.hold_once();
            other.join().unwrap();
            world.expect_free(2);
        });
    }
}

#[test]
fn three_threads_on_one_word() {
    for grants in [false, true] {
        model(3, move || {
            let world = World::new(patience(grants));
            let others = [spawn(&world, World::hold_once), spawn(&world, World::hold_once)];
            world.hold_once();
            others.into_iter().for_each(|other| other.join().unwrap());
            world.expect_free(3);
        });
    }
}

#[test]
fn timeout_against_unlock() {
    for grants in [false, true] {
        model(3, move || {
            let world = World::new(patience(grants));
            let me = world.enter();
            world.lock(&me, Limit::Endless);
            let patient = spawn(&world, World::hold_once);
            let hasty = spawn(&world, |world| {
                let agent = world.enter();
                // Queues, and finds its time over at once.
                if world.lock(&agent, Limit::Until(sablock::sync::now())) != Outcome::TimedOut {
                    world.unlock(&agent);
                }
            });
            world.touch();
            world.unlock(&me);
            patient.join().unwrap();
            hasty.join().unwrap();
            world.expect_free(2);
        });
    }
}

#[test]
fn notice_against_drain() {
    model(4, || {
        let world = World::new(patience(false));
        let agent = world.enter();
        assert!(agent.post(Notice::Offer(4)));
        let other = {
            let agent = Arc::clone(&agent);
            thread::spawn(move || agent.post(Notice::Offer(8)))
        };
        let mut drained = Vec::new();
        agent.drain(&mut drained);
        let must_wake = other.join().unwrap();
        assert!(must_wake || drained.contains(&Notice::Offer(8)), "a notice that nobody will come for");
    });
}

#[test]
fn unlock_against_claim() {
    model(4, || {
        let world = World::new(patience(false));
        let loop_ = spawn(&world, hold_once_async);
        world.hold_once();
        loop_.join().unwrap();
        world.expect_free(2);
    });
}

#[test]
fn claim_against_claim() {
    model(3, || {
        let world = World::new(patience(false));
        let me = world.enter();
        world.lock(&me, Limit::Endless);
        let loops = [spawn(&world, hold_once_async), spawn(&world, hold_once_async)];
        world.unlock(&me);
        loops.into_iter().for_each(|loop_| loop_.join().unwrap());
        world.expect_free(2);
    });
}

#[test]
fn cancel_against_grant() {
    model(3, || {
        let world = World::new(patience(false));
        let me = world.enter();
        world.lock(&me, Limit::Endless);
        let patient = spawn(&world, World::hold_once);
        let fickle = spawn(&world, |world| {
            let (mut waits, _) = event_loop(world);
            if let Reply::Pending(token) = waits.lock(world.word(), HoldOwner::Thread, Limit::Endless).unwrap() {
                // Perhaps it was offered the word already, perhaps the word is reserved for it.
                if waits.next_settled().is_none() {
                    assert!(waits.cancel(token).is_some());
                    return;
                }
            }
            let agent = Arc::clone(waits.agent());
            world.unlock(&agent);
        });
        world.unlock(&me);
        patient.join().unwrap();
        fickle.join().unwrap();
        world.expect_free(1);
    });
}

#[test]
fn lease_end_against_claim() {
    model(4, || {
        let world = World::new(patience(false));
        let me = world.enter();
        world.lock(&me, Limit::Endless);
        let (mut waits, parked) = event_loop(&world);
        let Reply::Pending(token) = waits.lock(world.word(), HoldOwner::Thread, Limit::Endless).unwrap() else {
            panic!()
        };
        world.unlock(&me);
        world.lock(&me, Limit::Once);
        // It comes and finds the word held again, or gets it; if held, the next unlock reserves the word for it.
        let settled = waits.next_settled();
        if settled.is_none() {
            world.unlock(&me);
            let clock = spawn(&world, |world| {
                let leases = std::mem::take(&mut *world.leases.0.lock());
                leases.into_iter().for_each(|(address, generation)| world.engine.end_lease(address, generation));
            });
            let rival = spawn(&world, |world| {
                let agent = world.enter();
                if world.lock(&agent, Limit::Once) != Outcome::TimedOut {
                    world.touch();
                    world.unlock(&agent);
                }
            });
            assert_eq!(turn(&mut waits, &parked).token, token);
            world.touch();
            let agent = Arc::clone(waits.agent());
            world.unlock(&agent);
            clock.join().unwrap();
            rival.join().unwrap();
            assert_eq!(Word(world.word.load(Ordering::SeqCst)), Word(0));
        }
    });
}

#[test]
fn end_of_the_holder_against_enqueue() {
    for grants in [false, true] {
        model(4, move || {
            let world = World::new(patience(grants));
            let doomed = world.enter();
            world.lock(&doomed, Limit::Endless);
            let heir = spawn(&world, |world| {
                let agent = world.enter();
                let attempt = world.lock(&agent, Limit::Endless);
                assert!(matches!(attempt, Outcome::Granted { abandoned_by: Some(70_000) }));
                world.touch();
                world.engine.mark_consistent(agent.id, world.word()).unwrap();
                world.unlock(&agent);
            });
            world.engine.thread_ended(doomed.id);
            heir.join().unwrap();
            world.expect_free(1);
        });
    }
}

#[test]
fn exactly_one_of_the_next_reports_the_end() {
    model(3, || {
        let world = World::new(patience(false));
        let doomed = world.enter();
        world.lock(&doomed, Limit::Endless);
        let found = Arc::new(AtomicU32::new(0));
        let heirs = [Limit::Endless, Limit::Until(sablock::sync::now())].map(|limit| {
            let found = Arc::clone(&found);
            spawn(&world, move |world| {
                let agent = world.enter();
                if let Outcome::Granted { abandoned_by } = world.lock(&agent, limit) {
                    found.fetch_add(u32::from(abandoned_by.is_some()), Ordering::SeqCst);
                    world.unlock(&agent);
                }
            })
        });
        world.engine.thread_ended(doomed.id);
        heirs.into_iter().for_each(|heir| heir.join().unwrap());
        assert_eq!(found.load(Ordering::SeqCst), 1);
    });
}

#[test]
fn end_of_a_waiter_against_unlock() {
    model(3, || {
        let world = World::new(patience(true));
        let me = world.enter();
        world.lock(&me, Limit::Endless);
        let doomed = spawn(&world, |world| {
            let (mut waits, _) = event_loop(world);
            let pending = waits.lock(world.word(), HoldOwner::Thread, Limit::Endless).unwrap();
            // Perhaps it is granted the word, and ends before its code knows.
            if matches!(pending, Reply::Pending(_)) {
                waits.next_settled();
                waits.end();
            } else {
                let agent = Arc::clone(waits.agent());
                world.unlock(&agent);
            }
        });
        let patient = spawn(&world, World::hold_once);
        world.unlock(&me);
        doomed.join().unwrap();
        patient.join().unwrap();
        // A hold that its code never knew of passed on unmarked.
        world.expect_free(1);
    });
}

#[test]
fn of_two_threads_that_lock_crosswise_exactly_one_finds_the_deadlock() {
    model(3, || {
        let world = World::new(patience(false));
        let found = Arc::new(AtomicU32::new(0));
        let cross = |world: &World, found: &AtomicU32, [first, then]: [Place; 2]| {
            let agent = world.enter();
            world.engine.lock(&agent, first, HoldOwner::Thread, Limit::Endless, &mut || true).unwrap();
            match world.engine.lock(&agent, then, HoldOwner::Thread, Limit::Endless, &mut || true) {
                Ok(_) => drop(world.engine.unlock(&agent, then, HoldOwner::Thread).unwrap()),
                Err(Failure::Deadlock(cycle)) => {
                    assert_eq!(cycle.len(), 2);
                    found.fetch_add(1, Ordering::SeqCst);
                }
                Err(other) => panic!("{other:?}"),
            }
            world.engine.unlock(&agent, first, HoldOwner::Thread).unwrap();
        };
        let other = {
            let found = Arc::clone(&found);
            spawn(&world, move |world| cross(world, &found, [world.beside(), world.word()]))
        };
        cross(&world, &found, [world.word(), world.beside()]);
        other.join().unwrap();
        // Where they did not meet, nobody finds one; where they did, a second one that does would be one too many,
        // and none at all would be a deadlock, which loom reports.
        assert!(found.load(Ordering::SeqCst) <= 1);
    });
}
