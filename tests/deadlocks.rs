//! Threads that block in a circle, on real threads: the models are in `loom/deadlocks.rs`.
#![cfg(not(loom))]

mod common;

use common::Locks as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use common::{ACQUIRED, World, pend};
use sablock::agents::Agent;
use sablock::engine::{Caller, Failure, Hold, HoldOwner, Hop, Limit, Outcome, Request};
use sablock::memory::Place;
use sablock::primitives::once::ONCE;

/// Runs code between two slices, and goes on once it is let in.
struct Pausing<'p>(&'p mut dyn FnMut() -> bool);

impl Caller for Pausing<'_> {
    fn pause(&mut self) -> bool {
        (self.0)()
    }

    fn goes_on(&mut self) -> bool {
        true
    }
}

impl World {
    /// Locks for as long as it takes; a circle that is not found shows as an interruption.
    fn lock_at(&self, agent: &Arc<Agent>, place: Place, pause: &mut dyn FnMut() -> bool) -> Result<Outcome, Failure> {
        self.engine.lock(agent, place, HoldOwner::Thread, Limit::Endless, &mut Pausing(pause))
    }

    fn unlock_at(&self, agent: &Arc<Agent>, place: Place) {
        assert_eq!(self.engine.unlock(agent, place, HoldOwner::Thread), Ok(true));
    }
}

/// Patient for some seconds.
fn some_pauses() -> impl FnMut() -> bool {
    let mut left = 100;
    move || {
        left -= 1;
        left > 0
    }
}

#[test]
fn a_thread_that_waited_for_something_else_during_a_pause_is_blocked_as_before() {
    let world = &World::with_slices(false);
    let [first, second] = &[0, 1].map(|thread| world.agent(thread));
    let [a, b, elsewhere] = [world.place(), world.other(0), world.other(1)];
    for (agent, place) in [(first, a), (second, b), (second, elsewhere)] {
        world.lock_at(agent, place, &mut || true).unwrap();
    }
    let has_nested = &AtomicBool::new(false);
    thread::scope(|scope| {
        let blocked = scope.spawn(move || {
            let mut is_patient = some_pauses();
            let mut pause = || {
                // A debugger evaluates a `lock()` of its own.
                let limit = Limit::after(Duration::from_millis(1));
                let nested = world.engine.lock(first, elsewhere, HoldOwner::Thread, limit, &mut || true).unwrap();
                assert_eq!(nested, Outcome::TimedOut);
                has_nested.store(true, Ordering::SeqCst);
                is_patient()
            };
            assert_eq!(world.lock_at(first, b, &mut pause).unwrap(), ACQUIRED);
            world.unlock_at(first, b);
        });
        world.until("a wait in a pause", |_| has_nested.load(Ordering::SeqCst));
        let found = world.lock_at(second, a, &mut some_pauses());
        let hops =
            [(1, a), (0, b)].map(|(thread, place)| Hop { thread, byte_offset: place.byte_offset, kind: "Mutex" });
        assert!(matches!(&found, Err(Failure::Deadlock(cycle)) if *cycle == hops), "{found:?}");
        world.unlock_at(second, b);
        blocked.join().unwrap();
        // Not before: the last pause may still wait for it.
        world.unlock_at(second, elsewhere);
    });
}

#[test]
fn a_thread_that_waits_for_another_environment_of_its_own_thread_waits_for_ever() {
    let world = World::new(false);
    let [holder, beside] = [0, 1].map(|thread| world.engine.agents.add_on(thread, 1).unwrap());
    world.lock(&holder, Limit::Once);
    let found = world.lock_at(&beside, world.place(), &mut some_pauses());
    let hops = [Hop { thread: 1, byte_offset: 0, kind: "Mutex" }];
    assert!(matches!(&found, Err(Failure::Deadlock(cycle)) if *cycle == hops), "{found:?}");
    assert_eq!(world.engine.stats().deadlocks, 1);
}

#[test]
fn what_a_thread_is_granted_during_a_pause_is_no_deadlock() {
    let world = World::with_slices(false);
    let [runner, next] = [0, 1].map(|thread| world.agent(thread));
    let hold = Hold::exclusive(HoldOwner::Thread);
    let run = Request::Hold(hold);
    let wait = |agent, caller: &mut dyn Caller| {
        world.engine.wait(agent, &ONCE, world.place(), run, Limit::Endless, caller).unwrap()
    };
    assert_eq!(wait(&runner, &mut Pausing(&mut || true)), ACQUIRED);
    let mut waits = world.event_loop();
    let mut is_granted = false;
    let mut pause = || {
        if !is_granted {
            // Somebody else waits, so that there is a queue to look at.
            pend(&mut waits, &world, &ONCE, run);
            assert_eq!(world.engine.release(&runner, &ONCE, world.place(), hold), Ok(true));
            is_granted = true;
        }
        world.engine.find_cycle_in_pause(&next).is_none()
    };
    assert_eq!(wait(&next, &mut Pausing(&mut pause)), ACQUIRED);
    assert!(is_granted);
}
