//! Models of threads that block in a circle.

use std::ptr::NonNull;

use super::*;
use crate::common::Locks as _;
use sablock::engine::{Request, Slot};
use sablock::primitives::rwlock::RWLOCK;

const READ: Hold = Hold::shared(HoldOwner::Thread);
const WRITE: Hold = Hold::exclusive(HoldOwner::Thread);

/// For a readers-writer lock, or a slot.
fn two_words() -> NonNull<[AtomicU32; 2]> {
    NonNull::from(Box::leak(Box::new([0, 0].map(AtomicU32::new))))
}

fn enter(world: &World, agent: &Arc<Agent>, place: Place, hold: Hold) -> Result<Outcome, Failure> {
    world.engine.wait(agent, &RWLOCK, place, Request::Hold(hold), Limit::Endless, &mut || true)
}

fn exit(world: &World, agent: &Arc<Agent>, place: Place, hold: Hold) {
    assert_eq!(world.engine.release(agent, &RWLOCK, place, hold), Ok(true));
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
        // If they did not meet, nobody finds one; if they did, a second one that does would be one too many,
        // and none at all would be a deadlock, which loom reports.
        assert!(found.load(Ordering::SeqCst) <= 1);
    });
}

/// The third of three threads has left the circle before it waits for what the first holds: a search that reads each of
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

/// Two read what a third wants to write, and want what that holds: while it looks at the circle that one of them has closed, the
/// other closes a second one. Both circles are broken.
#[test]
fn of_two_circles_that_close_at_once_none_stays() {
    model(2, || {
        let world = World::new(patience(false));
        let [first, second, writer] = [(); 3].map(|()| world.enter());
        let held = world.word();
        // SAFETY: two aligned atomics, which are never freed.
        let read = unsafe { Place::new(two_words().cast(), 4) };
        for reader in [&first, &second] {
            // SAFETY: zero, and never freed.
            let slot = unsafe { Slot::new(reader.id, two_words()) };
            world.engine.add_slot(&RWLOCK, read, slot);
            assert_eq!(enter(&world, reader, read, READ).unwrap(), Outcome::GRANTED);
        }
        hold(&world, &writer, held).unwrap();
        let others = [first, second].map(|reader| {
            spawn(&world, move |world| {
                if hold(world, &reader, held).is_ok() {
                    release(world, &reader, [held]);
                }
                exit(world, &reader, read, READ);
            })
        });
        if enter(&world, &writer, read, WRITE).is_ok() {
            exit(&world, &writer, read, WRITE);
        }
        release(&world, &writer, [held]);
        others.into_iter().for_each(|other| other.join().unwrap());
    });
}
