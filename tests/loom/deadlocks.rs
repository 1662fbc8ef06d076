//! Models of threads that block in a circle.

use super::*;
use crate::common::Locks as _;

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

/// Of three threads, the third has left the circle before it waits for what the first holds: a search that reads each of
/// them once, at different times, takes it for closed.
#[test]
fn a_circle_that_never_stood_is_not_found() {
    model(2, || {
        let world = World::new(patience(false));
        let [first, second, third] = [(); 3].map(|()| world.enter());
        // The first holds `beside`, the second `third_word`, the third `word`.
        let [a, b, c] = [world.beside(), world.third(), world.word()];
        for (agent, place) in [(&first, a), (&second, b), (&third, c)] {
            hold(&world, agent, place).unwrap();
        }
        let others = [
            spawn(&world, move |world| {
                hold(world, &second, c).unwrap();
                release(world, &second, [c, b]);
            }),
            spawn(&world, move |world| {
                release(world, &third, [c]);
                hold(world, &third, a).unwrap();
                release(world, &third, [a]);
            }),
        ];
        hold(&world, &first, b).unwrap();
        release(&world, &first, [b, a]);
        others.into_iter().for_each(|other| other.join().unwrap());
    });
}

fn hold(world: &World, agent: &Arc<Agent>, place: Place) -> Result<Outcome, Failure> {
    world.engine.lock(agent, place, HoldOwner::Thread, Limit::Endless, &mut || true)
}

fn release<const N: usize>(world: &World, agent: &Arc<Agent>, places: [Place; N]) {
    for place in places {
        assert_eq!(world.engine.unlock(agent, place, HoldOwner::Thread), Ok(true));
    }
}
