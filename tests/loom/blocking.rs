//! Models of threads that block.

use super::*;

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
fn several_locks_against_unlock() {
    model(3, || {
        let world = World::new(patience(false));
        let other = spawn(&world, World::hold_among_several);
        world.hold_among_several();
        other.join().unwrap();
        world.expect_free(2);
    });
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
