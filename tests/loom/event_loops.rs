//! Models of event loops that await.

use super::*;
use crate::common::LocksAsync as _;

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
        let (world, me) = World::held(patience(false));
        let loops = [spawn(&world, hold_once_async), spawn(&world, hold_once_async)];
        world.unlock(&me);
        loops.into_iter().for_each(|loop_| loop_.join().unwrap());
        world.expect_free(2);
    });
}

#[test]
fn cancel_against_grant() {
    model(3, || {
        let (world, me) = World::held(patience(false));
        let patient = spawn(&world, World::hold_once);
        let fickle = spawn(&world, |world| {
            let (mut waits, _) = event_loop(&world.engine);
            if let Reply::Pending { token, .. } = waits.lock(world.word(), HoldOwner::Thread, Limit::Endless).unwrap() {
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
fn deadline_against_claim() {
    for is_freed_first in [true, false] {
        model(3, move || {
            let (world, me) = World::held(patience(false));
            let patient = spawn(&world, World::hold_once);
            let hasty = spawn(&world, |world| {
                let (mut waits, parked) = event_loop(&world.engine);
                // Over when the clock says so.
                let limit = Limit::after(Duration::from_secs(3600));
                let outcome = match waits.lock(world.word(), HoldOwner::Thread, limit).unwrap() {
                    Reply::Now(outcome) => outcome,
                    Reply::Pending { .. } => turn(&mut waits, &parked).outcome.unwrap(),
                };
                assert_eq!(waits.next_settled(), None);
                if outcome != Outcome::TimedOut {
                    let agent = Arc::clone(waits.agent());
                    world.unlock(&agent);
                }
            });
            if is_freed_first {
                world.unlock(&me);
            }
            world.clock.expire(&world.engine);
            if !is_freed_first {
                world.unlock(&me);
            }
            patient.join().unwrap();
            hasty.join().unwrap();
            world.expect_free(1);
        });
    }
}

#[test]
fn lease_end_against_claim() {
    model(4, || {
        let (world, me) = World::held(patience(false));
        let (mut waits, parked) = event_loop(&world.engine);
        let Reply::Pending { token, .. } = waits.lock(world.word(), HoldOwner::Thread, Limit::Endless).unwrap() else {
            panic!()
        };
        world.unlock(&me);
        world.lock(&me, Limit::Once);
        // It comes and finds the word held again, or gets it; if held, the next unlock reserves the word for it.
        let settled = waits.next_settled();
        if settled.is_none() {
            world.unlock(&me);
            let clock = spawn(&world, |world| world.clock.end_leases(&world.engine));
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
