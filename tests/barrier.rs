//! The barrier, step by step.
#![cfg(not(loom))]

mod common;

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use common::{World, slot};
use sablock::engine::{Change, EventLoop, Hold, Limit, Outcome, Primitive, Reply, ReplyError, Request};
use sablock::memory::Place;
use sablock::primitives::barrier::BARRIER;

const GRANTED: Outcome = Outcome::GRANTED;

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
fn the_last_party_lets_the_others_pass_and_the_barrier_is_new() {
    let world = World::new(false);
    let (place, words) = barrier_of();
    let mut loops = [world.event_loop(), world.event_loop(), world.event_loop()];
    for round in 0..2 {
        for (index, waits) in loops.iter_mut().enumerate() {
            let reply = arrive(waits, place, 3).unwrap();
            assert_eq!(matches!(reply, Reply::Now(GRANTED)), index == 2, "round {round}");
            if index < 2 {
                assert_eq!(BARRIER.found(waits.found)[0] as usize, index);
            } else {
                assert_eq!(waits.given, 2, "whoever is let in at once finds what was there before it came");
            }
        }
        assert_eq!(loops.each_mut().map(outcome), [Some(GRANTED), Some(GRANTED), None]);
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
        assert!(matches!(arrive(&mut fickle, place, 2), Ok(Reply::Now(Outcome::Refused))), "not the same number");
        assert_eq!(BARRIER.found(fickle.found)[1], 3, "who is refused finds out why");
        if ends {
            arrive(&mut doomed, place, 3).unwrap();
            std::mem::replace(&mut doomed, world.event_loop()).end();
        } else {
            let Ok(Reply::Pending(token)) = arrive(&mut fickle, place, 3) else { panic!("not the last") };
            assert!(fickle.cancel(token).is_some());
        }
        assert_eq!(outcome(&mut patient), Some(Outcome::Refused));
        assert!(matches!(arrive(&mut patient, place, 3), Ok(Reply::Now(Outcome::Refused))));
        assert_eq!(BARRIER.found(patient.found)[1], 0, "broken");
        world.engine.change(&me, &BARRIER, place, Change::Reset).unwrap();
        assert_eq!(words[0].load(Ordering::SeqCst), 0);
    }
    arrive(&mut patient, place, 3).unwrap();
    world.engine.change(&me, &BARRIER, place, Change::Reset).unwrap();
    assert_eq!(outcome(&mut patient), Some(Outcome::Refused), "a reset breaks those who wait");
    arrive(&mut patient, place, 3).unwrap();
    world.engine.change(&me, &BARRIER, place, Change::Break).unwrap();
    assert_eq!(outcome(&mut patient), Some(Outcome::Refused));
    assert!(matches!(arrive(&mut patient, place, 3), Ok(Reply::Now(Outcome::Refused))), "it stays broken");
    world.engine.change(&me, &BARRIER, place, Change::Reset).unwrap();
    let party = Request::Hold(Hold::party(2));
    arrive(&mut patient, place, 2).unwrap();
    let late = world.agent(1);
    assert_eq!(
        world.engine.wait(&late, &BARRIER, place, party, Limit::Once, &mut || true).unwrap(),
        GRANTED,
        "the last"
    );
    assert_eq!(outcome(&mut patient), Some(GRANTED));
    assert_eq!(world.engine.wait(&late, &BARRIER, place, party, Limit::Once, &mut || true).unwrap(), Outcome::TimedOut);
    assert!(matches!(arrive(&mut patient, place, 2), Ok(Reply::Now(Outcome::Refused))), "not to wait breaks it");
}

#[test]
fn a_member_that_ends_breaks_the_barrier() {
    let world = World::new(false);
    let (place, _) = barrier_of();
    let doomed = world.event_loop();
    let agent = Arc::clone(doomed.agent());
    world.engine.add_slot(&BARRIER, place, slot(&agent).0);
    let join = Request::Hold(Hold::MEMBER);
    assert_eq!(world.engine.wait(&agent, &BARRIER, place, join, Limit::Once, &mut || true).unwrap(), GRANTED);
    let mut waits = world.event_loop();
    arrive(&mut waits, place, 2).unwrap();
    doomed.end();
    assert_eq!(outcome(&mut waits), Some(Outcome::Refused));
}
