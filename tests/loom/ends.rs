//! Models of threads that end while they hold or wait.

use super::*;
use crate::common::LocksAsync as _;

#[test]
fn end_of_the_holder_against_enqueue() {
    for grants in [false, true] {
        model(4, move || {
            let (world, ending) = World::held(patience(grants));
            let next = spawn(&world, |world| {
                let agent = world.enter();
                let attempt = world.lock(&agent, Limit::Endless);
                assert!(matches!(attempt, Outcome::Granted { abandoned_by: Some(70_000), .. }));
                world.touch();
                world.engine.change(&agent, &MUTEX, world.word(), Change::MarkConsistent).unwrap();
                world.unlock(&agent);
            });
            world.engine.thread_ended(ending.id);
            next.join().unwrap();
            world.expect_free(1);
        });
    }
}

#[test]
fn exactly_one_of_the_next_reports_the_end() {
    model(3, || {
        let (world, ending) = World::held(patience(false));
        let found = Arc::new(AtomicU32::new(0));
        let next = [Limit::Endless, Limit::Until(sablock::sync::now())].map(|limit| {
            let found = Arc::clone(&found);
            spawn(&world, move |world| {
                let agent = world.enter();
                if let Outcome::Granted { abandoned_by, .. } = world.lock(&agent, limit) {
                    found.fetch_add(u32::from(abandoned_by.is_some()), Ordering::SeqCst);
                    world.unlock(&agent);
                }
            })
        });
        world.engine.thread_ended(ending.id);
        next.into_iter().for_each(|next| next.join().unwrap());
        assert_eq!(found.load(Ordering::SeqCst), 1);
    });
}

#[test]
fn end_of_a_waiter_against_unlock() {
    model(3, || {
        let (world, me) = World::held(patience(true));
        let ending = spawn(&world, |world| {
            let (mut waits, _) = event_loop(&world.engine);
            let pending = waits.lock(world.word(), HoldOwner::Thread, Limit::Endless).unwrap();
            // Perhaps it is granted the word, and ends before its code knows.
            if matches!(pending, Reply::Pending { .. }) {
                waits.next_settled();
                waits.end();
            } else {
                let agent = Arc::clone(waits.agent());
                world.unlock(&agent);
            }
        });
        let patient = spawn(&world, World::hold_once);
        world.unlock(&me);
        ending.join().unwrap();
        patient.join().unwrap();
        // A hold that its code never knew of passed on unmarked.
        world.expect_free(1);
    });
}
