//! Models of an event loop that came in vain and parks for a moment. A park that nobody ends shows as a deadlock.

use super::*;
use crate::common::LocksAsync as _;

/// Parks that end only by a hand-over, or at once.
fn parks(longest_park: Duration) -> Patience {
    Patience { longest_park, ..patience(false) }
}

const FOR_EVER: Duration = Duration::from_secs(1);
const A_MOMENT: Duration = Duration::from_millis(1);

/// `lockAsync`, and the loop comes for the word at once, offered or not.
fn claim_at_once(world: &World) -> (EventLoop<'_>, Outcome) {
    let (mut waits, parked) = event_loop(&world.engine);
    match waits.lock(world.word(), HoldOwner::Thread, Limit::Endless).unwrap() {
        Reply::Now(outcome) => (waits, outcome),
        Reply::Pending { token, .. } => {
            waits.agent().notify(Notice::Offer(world.word().address()));
            let settled = turn(&mut waits, &parked);
            assert_eq!(settled.token, token);
            assert_eq!(waits.next_settled(), None);
            (waits, settled.outcome.unwrap())
        }
    }
}

fn hold_once_parking(world: &World) {
    let (waits, outcome) = claim_at_once(world);
    assert_eq!(outcome, Outcome::GRANTED);
    world.touch();
    world.unlock(waits.agent());
}

#[test]
fn park_against_unlock() {
    for longest in [FOR_EVER, A_MOMENT] {
        model(3, move || {
            let (world, me) = World::held(parks(longest));
            let parking = spawn(&world, hold_once_parking);
            world.touch();
            world.unlock(&me);
            parking.join().unwrap();
            world.expect_free(2);
        });
    }
}

#[test]
fn park_against_a_blocked_thread_and_unlock() {
    for longest in [FOR_EVER, A_MOMENT] {
        model(2, move || {
            let (world, me) = World::held(parks(longest));
            let parking = spawn(&world, hold_once_parking);
            let blocked = spawn(&world, World::hold_once);
            world.unlock(&me);
            parking.join().unwrap();
            blocked.join().unwrap();
            world.expect_free(2);
        });
    }
}

#[test]
fn park_against_the_end_of_the_holder() {
    for longest in [FOR_EVER, A_MOMENT] {
        model(3, move || {
            let (world, ending) = World::held(parks(longest));
            let parking = spawn(&world, |world| {
                let (waits, outcome) = claim_at_once(world);
                assert_eq!(outcome, Outcome::granted(Some(70_000)));
                world.engine.change(waits.agent(), &MUTEX, world.word(), Change::MarkConsistent).unwrap();
                world.unlock(waits.agent());
            });
            world.engine.thread_ended(ending.id);
            parking.join().unwrap();
            world.expect_free(0);
        });
    }
}

#[test]
fn end_of_the_thread_after_its_park() {
    model(3, || {
        let (world, me) = World::held(parks(A_MOMENT));
        let ending = spawn(&world, |world| {
            let (mut waits, _) = event_loop(&world.engine);
            if let Reply::Pending { .. } = waits.lock(world.word(), HoldOwner::Thread, Limit::Endless).unwrap() {
                waits.agent().notify(Notice::Offer(world.word().address()));
                // It parks, and perhaps it is handed the word as its park ends: its code never knows.
                waits.next_settled();
                waits.end();
            } else {
                world.unlock(waits.agent());
            }
        });
        let patient = spawn(&world, World::hold_once);
        world.unlock(&me);
        ending.join().unwrap();
        patient.join().unwrap();
        world.expect_free(1);
    });
}
