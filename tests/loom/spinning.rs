//! Models of threads that spin: before they queue, and queued, before they park.

use super::*;
use crate::common::LocksAsync as _;

/// Spins before it queues, and queued.
fn spins() -> Patience {
    let [spin, spin_queued] = [Duration::from_micros(1); 2];
    Patience { spin, spin_queued, ..patience(false) }
}

/// Lets spins see twice that one and the same agent holds the word, so that queued waiters spin too.
fn show_long_holds(world: &World) {
    let holder = world.enter();
    world.lock(&holder, Limit::Endless);
    for _ in 0..2 {
        assert_eq!(world.lock(&world.enter(), Limit::Until(sablock::sync::now())), Outcome::TimedOut);
    }
    world.unlock(&holder);
}

#[test]
fn spin_before_queueing_against_unlock() {
    model(3, || {
        let world = World::new(Patience { spin_queued: Duration::ZERO, ..spins() });
        let other = spawn(&world, World::hold_once);
        world.hold_once();
        other.join().unwrap();
        world.expect_free(2);
    });
}

#[test]
fn spin_before_parking_against_unlock() {
    model(3, || {
        let world = World::new(spins());
        show_long_holds(&world);
        let me = world.enter();
        world.lock(&me, Limit::Endless);
        let other = spawn(&world, World::hold_once);
        world.touch();
        world.unlock(&me);
        other.join().unwrap();
        world.expect_free(2);
    });
}

#[test]
fn spin_of_one_that_gives_up_against_unlock() {
    model(2, || {
        let world = World::new(spins());
        show_long_holds(&world);
        let me = world.enter();
        world.lock(&me, Limit::Endless);
        timeout_against_unlock(&world, &me);
    });
}

#[test]
fn spin_of_a_loop_that_came_in_vain() {
    model(3, || {
        let (world, me) = World::held(spins());
        let awaiting = spawn(&world, |world| {
            let (mut waits, parked) = event_loop(&world.engine);
            if let Reply::Pending { .. } = waits.lock(world.word(), HoldOwner::Thread, Limit::Endless).unwrap() {
                waits.agent().notify(Notice::Offer(world.word().address()));
                turn(&mut waits, &parked);
            }
            world.touch();
            world.unlock(waits.agent());
        });
        world.touch();
        world.unlock(&me);
        awaiting.join().unwrap();
        world.expect_free(2);
    });
}
