//! Models of the primitives beyond the mutex, each with its fast paths as JS has them: loom runs every interleaving of their
//! threads (within a bound on preemptions). A wake-up that is lost shows as a deadlock; two inside at once, as a concurrent
//! access to `data`.
#![cfg(loom)]

#[path = "loom_primitives/barrier.rs"]
mod barrier;
mod common;
#[path = "loom_primitives/exchanger.rs"]
mod exchanger;

use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;

use common::{ManualClock, event_loop, model, spawn, turn};
use sablock::agents::Agent;
use sablock::engine::{
    Change, Engine, EventLoop, Hold, HoldOwner, Limit, Outcome, Patience, Primitive, Reply, Request, Slot,
};
use sablock::memory::Place;
use sablock::primitives::event::{AUTO_RESET_EVENT, Event, MANUAL_RESET_EVENT, SET};
use sablock::primitives::latch::{self, LATCH};
use sablock::primitives::rwlock::{RWLOCK, SHARED, Word};
use sablock::primitives::semaphore::{FAIR_SEMAPHORE, SEMAPHORE, Semaphore};
use sablock::sync::Thread;

const GRANTED: Outcome = Outcome::GRANTED;
const READ: Hold = Hold::shared(HoldOwner::Thread);
const WRITE: Hold = Hold::exclusive(HoldOwner::Thread);
const PERMIT: Hold = Hold::permits(1, 1);

/// Two words, what they guard, and the engine.
struct World {
    engine: Engine,
    words: [AtomicU32; 2],
    data: UnsafeCell<u32>,
}

// SAFETY: `data` is touched by holders only; that is what the models show, since loom checks each access.
unsafe impl Send for World {}
unsafe impl Sync for World {}

impl World {
    fn new() -> Arc<Self> {
        let patience = Patience { grant_after: Duration::MAX, grant_every: Duration::ZERO, ..Patience::default() };
        let engine = Engine::new(1, 70_000, patience, Box::new(ManualClock::default()));
        Arc::new(Self { engine, words: [AtomicU32::new(0), AtomicU32::new(0)], data: UnsafeCell::new(0) })
    }

    fn place(&self) -> Place {
        // SAFETY: `self.words` are aligned atomics; every thread of a model keeps the world until its waits are over.
        unsafe { Place::new(NonNull::from(&self.words).cast(), 0) }
    }

    fn agent(&self) -> Arc<Agent> {
        self.engine.agents.add(0).unwrap()
    }

    fn exchange(&self, from: u32, to: u32) -> bool {
        self.words[0].compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    fn wait(&self, agent: &Arc<Agent>, primitive: &'static dyn Primitive, hold: Hold, limit: Limit) -> Outcome {
        self.engine.wait(agent, primitive, self.place(), Request::Hold(hold), limit, &mut || true).unwrap()
    }

    fn release(&self, agent: &Arc<Agent>, primitive: &'static dyn Primitive, hold: Hold) {
        assert!(self.engine.release(agent, primitive, self.place(), hold).unwrap());
    }

    /// A writer's work.
    fn write(&self) {
        // SAFETY: the caller holds it alone.
        self.data.with_mut(|data| unsafe { *data += 1 });
    }

    /// A reader's work.
    fn look(&self) {
        // SAFETY: the caller holds it, and no writer does.
        self.data.with(|data| assert!(unsafe { *data } < 10));
    }

    /// As `read.lock()` in JS.
    fn lock_shared(&self, agent: &Arc<Agent>) {
        let word = self.words[0].load(Ordering::Relaxed);
        let may = word == 0 || Word(word).readers() > 0 && word == SHARED | Word(word).readers();
        if !(may && self.exchange(word, SHARED | Word(word).readers() + 1)) {
            assert_eq!(self.wait(agent, &RWLOCK, READ, Limit::Endless), GRANTED);
        }
    }

    /// As `read.unlock()`.
    fn unlock_shared(&self, agent: &Arc<Agent>) {
        let word = self.words[0].load(Ordering::Relaxed);
        let readers = Word(word).readers();
        let left = if readers == 1 { 0 } else { word.wrapping_sub(1) };
        if !(readers > 0 && word == SHARED | readers && self.exchange(word, left)) {
            self.release(agent, &RWLOCK, READ);
        }
    }

    fn read_once(&self) {
        let agent = self.agent();
        self.lock_shared(&agent);
        self.look();
        self.unlock_shared(&agent);
    }

    fn write_once(&self) {
        let agent = self.agent();
        if !self.exchange(0, agent.id) {
            assert_eq!(self.wait(&agent, &RWLOCK, WRITE, Limit::Endless), GRANTED);
        }
        self.write();
        if !self.exchange(agent.id, 0) {
            self.release(&agent, &RWLOCK, WRITE);
        }
    }

    /// As `acquire()` and `release()` of one permit of one.
    fn use_permit(&self, semaphore: &'static Semaphore) {
        let agent = self.agent();
        if !self.exchange(0, 1) {
            assert_eq!(self.wait(&agent, semaphore, PERMIT, Limit::Endless), GRANTED);
        }
        self.write();
        if !self.exchange(1, 0) {
            self.release(&agent, semaphore, PERMIT);
        }
    }
}

/// Awaits what is asked for.
fn granted(waits: &mut EventLoop<'_>, thread: &Thread, primitive: &'static dyn Primitive, place: Place, hold: Hold) {
    let Reply::Pending { token, .. } = waits.wait(primitive, place, Request::Hold(hold), Limit::Endless).unwrap()
    else {
        return;
    };
    let settled = turn(waits, thread);
    assert_eq!((settled.token, settled.outcome), (token, Ok(GRANTED)));
}

fn expect(world: &World, word: u32) {
    assert_eq!(world.words[0].load(Ordering::SeqCst), word);
}

#[test]
fn readers_against_a_writer() {
    model(3, || {
        let world = World::new();
        let others = [spawn(&world, World::read_once), spawn(&world, World::write_once)];
        world.read_once();
        for other in others {
            other.join().unwrap();
        }
        expect(&world, 0);
    });
}

#[test]
fn a_writer_that_awaits_against_a_reader() {
    model(4, || {
        let world = World::new();
        let reader = spawn(&world, World::read_once);
        let (mut waits, thread) = event_loop(&world.engine);
        granted(&mut waits, &thread, &RWLOCK, world.place(), WRITE);
        world.write();
        world.release(&Arc::clone(waits.agent()), &RWLOCK, WRITE);
        reader.join().unwrap();
        expect(&world, 0);
    });
}

#[test]
fn downgrade_against_readers() {
    model(3, || {
        let world = World::new();
        let reader = spawn(&world, World::read_once);
        let agent = world.agent();
        assert_eq!(world.wait(&agent, &RWLOCK, WRITE, Limit::Endless), GRANTED);
        world.write();
        assert!(
            world
                .engine
                .change(&agent, &RWLOCK, world.place(), Change::Downgrade(HoldOwner::Thread))
                .unwrap()
                .is_some()
        );
        world.look();
        world.unlock_shared(&agent);
        reader.join().unwrap();
        expect(&world, 0);
    });
}

#[test]
fn one_permit_against_another() {
    for semaphore in [&SEMAPHORE, &FAIR_SEMAPHORE] {
        model(4, move || {
            let world = World::new();
            let other = spawn(&world, move |world| world.use_permit(semaphore));
            world.use_permit(semaphore);
            other.join().unwrap();
            expect(&world, 0);
        });
    }
}

#[test]
fn a_grant_to_a_loop_against_its_cancellation() {
    for semaphore in [&SEMAPHORE, &FAIR_SEMAPHORE] {
        model(4, move || {
            let world = World::new();
            let holder = world.agent();
            assert_eq!(world.wait(&holder, semaphore, PERMIT, Limit::Once), GRANTED);
            let fickle = spawn(&world, move |world| {
                let (mut waits, _) = event_loop(&world.engine);
                let reply = waits.wait(semaphore, world.place(), Request::Hold(PERMIT), Limit::Endless).unwrap();
                match reply {
                    Reply::Pending { token, .. } if waits.cancel(token).is_some() => {}
                    // Granted, at once or too late to be cancelled.
                    _ => {
                        let is_pending = matches!(reply, Reply::Pending { .. });
                        assert_eq!(waits.next_settled().is_some(), is_pending);
                        world.release(&Arc::clone(waits.agent()), semaphore, PERMIT);
                    }
                }
            });
            world.release(&holder, semaphore, PERMIT);
            fickle.join().unwrap();
            expect(&world, 0);
        });
    }
}

#[test]
fn the_end_of_a_thread_that_was_granted_a_permit_or_waits_for_it() {
    for semaphore in [&SEMAPHORE, &FAIR_SEMAPHORE] {
        model(3, move || {
            let world = World::new();
            let holder = world.agent();
            assert_eq!(world.wait(&holder, semaphore, PERMIT, Limit::Once), GRANTED);
            let doomed = spawn(&world, move |world| {
                let (mut waits, _) = event_loop(&world.engine);
                // Its code never knows of it.
                waits.wait(semaphore, world.place(), Request::Hold(PERMIT), Limit::Endless).map(drop).unwrap();
                if waits.pending() > 0 {
                    waits.end();
                } else {
                    world.release(&Arc::clone(waits.agent()), semaphore, PERMIT);
                }
            });
            world.release(&holder, semaphore, PERMIT);
            doomed.join().unwrap();
            world.use_permit(semaphore);
            expect(&world, 0);
        });
    }
}

#[test]
fn the_end_of_a_thread_that_has_a_permit_against_one_that_waits() {
    for semaphore in [&SEMAPHORE, &FAIR_SEMAPHORE] {
        model(4, move || {
            let world = World::new();
            let counts: &'static [AtomicU32; 2] = Box::leak(Box::new([AtomicU32::new(0), AtomicU32::new(0)]));
            let (mut waits, _) = event_loop(&world.engine);
            let doomed = Arc::clone(waits.agent());
            // SAFETY: aligned, zero, and never freed.
            let slot = unsafe { Slot::new(doomed.id, NonNull::from(counts).cast()) };
            world.engine.add_slot(semaphore, world.place(), slot);
            assert_eq!(world.wait(&doomed, semaphore, PERMIT, Limit::Once), GRANTED);
            let other = spawn(&world, move |world| world.use_permit(semaphore));
            assert_eq!(waits.next_settled(), None);
            waits.end();
            other.join().unwrap();
            expect(&world, 0);
        });
    }
}

/// As `set()` in JS.
fn set(world: &World, event: &'static Event) {
    if !world.exchange(0, SET) && world.words[0].load(Ordering::SeqCst) != SET {
        world.engine.change(&world.agent(), event, world.place(), Change::Set).unwrap();
    }
}

#[test]
fn set_against_wait() {
    for (event, left) in [(&MANUAL_RESET_EVENT, SET), (&AUTO_RESET_EVENT, 0)] {
        model(4, move || {
            let world = World::new();
            let waiter = spawn(&world, move |world| {
                assert_eq!(world.wait(&world.agent(), event, Hold::PASSAGE, Limit::Endless), GRANTED);
            });
            set(&world, event);
            waiter.join().unwrap();
            expect(&world, left);
        });
    }
}

#[test]
fn two_sets_against_two_waits_let_both_pass() {
    model(3, || {
        let world = World::new();
        let (mut waits, thread) = event_loop(&world.engine);
        let blocked = spawn(&world, |world| {
            assert_eq!(world.wait(&world.agent(), &AUTO_RESET_EVENT, Hold::PASSAGE, Limit::Endless), GRANTED);
            set(world, &AUTO_RESET_EVENT);
        });
        set(&world, &AUTO_RESET_EVENT);
        granted(&mut waits, &thread, &AUTO_RESET_EVENT, world.place(), Hold::PASSAGE);
        set(&world, &AUTO_RESET_EVENT);
        blocked.join().unwrap();
    });
}

#[test]
fn count_down_against_wait() {
    model(4, || {
        let world = World::new();
        world.words[0].store(2, Ordering::SeqCst);
        let waiter = spawn(&world, |world| {
            assert_eq!(world.wait(&world.agent(), &LATCH, Hold::PASSAGE, Limit::Endless), GRANTED);
        });
        let agent = world.agent();
        for _ in 0..2 {
            let word = world.words[0].load(Ordering::SeqCst);
            if word & latch::WAITING != 0 || !world.exchange(word, word - 1) {
                assert!(
                    world
                        .engine
                        .change(&agent, &LATCH, world.place(), Change::Add { count: -1, of: 0 })
                        .unwrap()
                        .is_some()
                );
            }
        }
        waiter.join().unwrap();
        expect(&world, 0);
    });
}
