//! The barrier, step by step.
#![cfg(not(loom))]

mod common;

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use common::{World, slot};
use sablock::engine::{Change, EventLoop, Hold, Limit, Outcome, Reply, ReplyError, Request};
use sablock::memory::Place;
use sablock::primitives::barrier::BARRIER;

/// Returns the outcome of a party's wait that passes, after so many had come.
const fn passed(found: u32) -> Outcome {
    Outcome::Granted { abandoned_by: None, found }
}

/// Returns the outcome of one that is refused, by a barrier of so many parties; 0: a broken one.
const fn refused(found: u32) -> Outcome {
    Outcome::Refused { found }
}

/// A barrier of its own two words.
fn barrier_of() -> (Place, &'static [AtomicU32; 2]) {
    let words: &'static [AtomicU32; 2] = Box::leak(Box::default());
    // SAFETY: two aligned atomics that are never freed.
    (unsafe { Place::new(NonNull::from(&words[0]), 0) }, words)
}

fn arrive(waits: &mut EventLoop<'_>, place: Place, parties: u32) -> Result<Reply, ReplyError> {
    waits.wait(&BARRIER, place, Request::Hold(Hold::party(parties)), Limit::Endless)
}

fn outcome(waits: &mut EventLoop<'_>) -> Option<Outcome> {
    waits.next_settled().map(|settled| settled.outcome.unwrap())
}

#[test]
fn a_loop_may_be_several_of_the_parties() {
    let world = World::new(false);
    let ((place, _), mut waits) = (barrier_of(), world.event_loop());
    assert!(matches!(arrive(&mut waits, place, 2), Ok(Reply::Pending { .. })));
    assert_eq!(arrive(&mut waits, place, 2).unwrap(), Reply::Now(passed(1)));
    assert_eq!((outcome(&mut waits), outcome(&mut waits)), (Some(passed(1)), None));
}

#[test]
fn the_last_party_lets_the_others_pass_and_the_barrier_is_new() {
    let world = World::new(false);
    let (place, words) = barrier_of();
    let mut loops = [world.event_loop(), world.event_loop(), world.event_loop()];
    for round in 0..2 {
        for (index, waits) in loops.iter_mut().enumerate() {
            let reply = arrive(waits, place, 3).unwrap();
            match reply {
                Reply::Pending { found, .. } => assert_eq!((found as usize, index < 2), (index, true), "round {round}"),
                Reply::Now(outcome) => {
                    assert_eq!((outcome, index), (passed(2), 2), "it finds what was there before it came");
                }
            }
        }
        assert_eq!(loops.each_mut().map(outcome), [Some(passed(2)), Some(passed(2)), None]);
        assert_eq!(words.each_ref().map(|word| word.load(Ordering::SeqCst)), [0, 0]);
    }
}

#[test]
fn a_party_that_goes_breaks_the_barrier_for_all_until_it_is_reset() {
    let world = World::new(false);
    let (place, words) = barrier_of();
    let me = world.agent(0);
    let [mut patient, mut fickle, mut doomed] = [(); 3].map(|()| world.event_loop());
    for ends in [false, true] {
        arrive(&mut patient, place, 3).unwrap();
        assert_eq!(arrive(&mut fickle, place, 2).unwrap(), Reply::Now(refused(3)), "not the same number");
        if ends {
            arrive(&mut doomed, place, 3).unwrap();
            std::mem::replace(&mut doomed, world.event_loop()).end();
        } else {
            let Ok(Reply::Pending { token, .. }) = arrive(&mut fickle, place, 3) else { panic!("not the last") };
            assert!(fickle.cancel(token).is_some());
        }
        assert_eq!(outcome(&mut patient), Some(refused(0)));
        assert_eq!(arrive(&mut patient, place, 3).unwrap(), Reply::Now(refused(0)), "broken");
        world.engine.change(&me, &BARRIER, place, Change::Reset).unwrap();
        assert_eq!(words[0].load(Ordering::SeqCst), 0);
    }
    arrive(&mut patient, place, 3).unwrap();
    world.engine.change(&me, &BARRIER, place, Change::Reset).unwrap();
    assert_eq!(outcome(&mut patient), Some(refused(0)), "a reset breaks those who wait");
    arrive(&mut patient, place, 3).unwrap();
    world.engine.change(&me, &BARRIER, place, Change::Break(3)).unwrap();
    assert_eq!(outcome(&mut patient), Some(refused(0)));
    assert_eq!(arrive(&mut patient, place, 3).unwrap(), Reply::Now(refused(0)), "it stays broken");
    world.engine.change(&me, &BARRIER, place, Change::Reset).unwrap();
    let party = Request::Hold(Hold::party(2));
    arrive(&mut patient, place, 2).unwrap();
    let late = world.agent(1);
    assert_eq!(
        world.engine.wait(&late, &BARRIER, place, party, Limit::Once, &mut || true).unwrap(),
        passed(1),
        "the last"
    );
    assert_eq!(outcome(&mut patient), Some(passed(1)));
    assert_eq!(world.engine.wait(&late, &BARRIER, place, party, Limit::Once, &mut || true).unwrap(), Outcome::TimedOut);
    assert_eq!(arrive(&mut patient, place, 2).unwrap(), Reply::Now(refused(0)), "not to wait breaks it");
    world.engine.change(&me, &BARRIER, place, Change::Reset).unwrap();
    assert_eq!(patient.wait(&BARRIER, place, party, Limit::Once).unwrap(), Reply::Now(Outcome::TimedOut));
    assert_eq!(arrive(&mut patient, place, 2).unwrap(), Reply::Now(refused(0)), "nor for a loop");
}

#[test]
fn a_barrier_at_which_nobody_waits_can_be_broken() {
    let world = World::new(false);
    let (place, _) = barrier_of();
    assert!(world.engine.change(&world.agent(0), &BARRIER, place, Change::Break(3)).unwrap().is_some());
    assert_eq!(arrive(&mut world.event_loop(), place, 3).unwrap(), Reply::Now(refused(0)));
}

#[test]
fn a_thread_that_has_passed_and_is_no_member_ends_without_breaking_the_barrier() {
    let world = World::new(false);
    let (place, words) = barrier_of();
    let [mut first, mut last] = [(); 2].map(|()| world.event_loop());
    for waits in [&first, &last] {
        world.engine.add_slot(&BARRIER, place, slot(waits.agent()).0);
    }
    assert!(matches!(arrive(&mut first, place, 2), Ok(Reply::Pending { .. })));
    assert_eq!(arrive(&mut last, place, 2).unwrap(), Reply::Now(passed(1)));
    assert_eq!(outcome(&mut first), Some(passed(1)));
    first.end();
    last.end();
    assert_eq!(words.each_ref().map(|word| word.load(Ordering::SeqCst)), [0, 0]);
}

#[test]
fn a_member_that_ends_breaks_the_barrier() {
    let world = World::new(false);
    let (place, _) = barrier_of();
    let doomed = world.event_loop();
    let agent = Arc::clone(doomed.agent());
    world.engine.add_slot(&BARRIER, place, slot(&agent).0);
    let join = Request::Hold(Hold::MEMBER);
    assert_eq!(world.engine.wait(&agent, &BARRIER, place, join, Limit::Once, &mut || true).unwrap(), Outcome::GRANTED);
    let mut waits = world.event_loop();
    arrive(&mut waits, place, 2).unwrap();
    doomed.end();
    assert_eq!(outcome(&mut waits), Some(refused(0)));
}
