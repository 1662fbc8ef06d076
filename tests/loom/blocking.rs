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
            let (world, me) = World::held(patience(grants));
            super::timeout_against_unlock(&world, &me);
        });
    }
}
