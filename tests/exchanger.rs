//! The exchanger, step by step, and with threads.
#![cfg(not(loom))]

mod common;

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use common::World;
use sablock::agents::Agent;
use sablock::engine::{Engine, EventLoop, Failure, Hold, Limit, Outcome, Reply, Request};
use sablock::memory::Place;
use sablock::primitives::exchanger::EXCHANGER;

fn exchanger() -> (Place, &'static [AtomicU32; 2]) {
    let words: &'static [AtomicU32; 2] = Box::leak(Box::default());
    // SAFETY: two aligned atomics that are never freed.
    (unsafe { Place::new(NonNull::from(&words[0]), 0) }, words)
}

fn is_new(words: &[AtomicU32; 2]) -> bool {
    words.iter().all(|word| word.load(Ordering::SeqCst) == 0)
}

fn offer(waits: &mut EventLoop<'_>, place: Place, value: u32) -> Reply {
    waits.wait(&EXCHANGER, place, Request::Hold(Hold::exchange(value)), Limit::Endless).unwrap()
}

/// Returns what the next wait of the loop that is over got.
fn got(waits: &mut EventLoop<'_>) -> Option<u32> {
    waits.next_settled().and_then(|settled| value(settled.outcome.unwrap()))
}

/// The value that a wait got; `None` if its time was over.
fn value(outcome: Outcome) -> Option<u32> {
    match outcome {
        Outcome::Granted { abandoned_by: None, found } => Some(found),
        Outcome::TimedOut => None,
        other => panic!("{other:?}"),
    }
}

/// The value of one who is met at once.
fn met(reply: Reply) -> Option<u32> {
    if let Reply::Now(outcome) = reply { value(outcome) } else { None }
}

/// Returns what a blocked thread got; `None` if nobody came in time.
fn exchange(engine: &Engine, agent: &Arc<Agent>, place: Place, offered: u32, limit: Limit) -> Option<u32> {
    let request = Request::Hold(Hold::exchange(offered));
    value(engine.wait(agent, &EXCHANGER, place, request, limit, &mut || true).unwrap())
}

#[test]
fn two_that_meet_get_each_others_values_and_leave_nothing() {
    let world = World::new(false);
    let (place, words) = exchanger();
    let [mut first, mut second] = [(); 2].map(|()| world.event_loop());
    for round in 0..3 {
        assert!(matches!(offer(&mut first, place, 100 + round), Reply::Pending { .. }));
        assert_eq!(words[1].load(Ordering::SeqCst), 100 + round);
        assert_eq!(met(offer(&mut second, place, 200 + round)), Some(100 + round));
        assert_eq!((got(&mut first), is_new(words)), (Some(200 + round), true));
    }
}

#[test]
fn a_loop_that_comes_late_for_its_value_gets_it_though_others_have_met_since() {
    let world = World::new(false);
    let (place, words) = exchanger();
    let mut loops = [(); 6].map(|()| world.event_loop());
    let offered = [0, 1, 2, 3, 4, 5].map(|index| met(offer(&mut loops[index], place, index as u32)));
    assert_eq!(offered, [None, Some(0), None, Some(2), None, Some(4)]);
    assert!(is_new(words));
    assert_eq!(loops.each_mut().map(got), [Some(1), None, Some(3), None, Some(5), None]);
}

#[test]
fn nobody_gets_the_value_of_one_who_left() {
    let world = World::new(false);
    let (place, words) = exchanger();
    let me = world.agent(0);
    let [mut fickle, mut doomed, mut patient] = [(); 3].map(|()| world.event_loop());
    let Reply::Pending { token, .. } = offer(&mut fickle, place, 1) else { panic!("nobody is there") };
    assert!(fickle.cancel(token).is_some());
    offer(&mut doomed, place, 2);
    doomed.end();
    assert_eq!(exchange(&world.engine, &me, place, 3, Limit::Once), None);
    assert_eq!(exchange(&world.engine, &me, place, 4, Limit::after(Duration::from_millis(1))), None);
    assert!(is_new(words));
    assert!(matches!(offer(&mut patient, place, 5), Reply::Pending { .. }));
    assert_eq!(exchange(&world.engine, &me, place, 6, Limit::Once), Some(5));
    assert_eq!((got(&mut patient), is_new(words)), (Some(6), true));
}

#[test]
fn whoever_was_met_by_one_who_ends_before_it_knows_has_its_value() {
    let world = World::new(false);
    let (place, words) = exchanger();
    let [mut doomed, mut other, mut next] = [(); 3].map(|()| world.event_loop());
    offer(&mut doomed, place, 1);
    assert_eq!(met(offer(&mut other, place, 2)), Some(1));
    doomed.end();
    assert!(is_new(words));
    assert!(matches!(offer(&mut next, place, 3), Reply::Pending { .. }), "nobody else learns of it");
}

#[test]
fn a_thread_that_is_interrupted_leaves_with_its_value() {
    let world = World::with_slices(true);
    let (place, words) = exchanger();
    let (agent, request) = (world.agent(0), Request::Hold(Hold::exchange(1)));
    let waited = world.engine.wait(&agent, &EXCHANGER, place, request, Limit::Endless, &mut || false);
    assert!(matches!(waited, Err(Failure::Interrupted)));
    assert!(is_new(words));
}

#[test]
fn among_many_threads_all_values_go_both_ways() {
    const THREADS: u32 = 4;
    const ROUNDS: u32 = 500;
    let world = Arc::new(World::new(false));
    let (place, words) = exchanger();
    let (sender, met) = mpsc::channel();
    let threads: Vec<_> = (0..THREADS)
        .map(|number| {
            let (world, sender) = (Arc::clone(&world), sender.clone());
            thread::spawn(move || {
                let agent = world.agent(number + 1);
                for round in 0..ROUNDS {
                    let mine = number * ROUNDS + round;
                    // At times one gives up, perhaps at the moment of the meeting; in the end nobody is left to meet.
                    let limit = Limit::after(Duration::from_micros(if round % 3 == 0 { 20 } else { 2_000 }));
                    if let Some(theirs) = exchange(&world.engine, &agent, place, mine, limit) {
                        sender.send((mine, theirs)).unwrap();
                    }
                }
            })
        })
        .collect();
    drop(sender);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let mut pairs: Vec<(u32, u32)> = met.into_iter().collect();
    pairs.sort_unstable();
    assert!(pairs.len() > ROUNDS as usize / 10, "{} met", pairs.len());
    for (mine, theirs) in &pairs {
        assert_ne!(mine / ROUNDS, theirs / ROUNDS, "with itself");
        assert!(pairs.binary_search(&(*theirs, *mine)).is_ok(), "{mine} got {theirs}, which got another");
    }
    assert!(pairs.windows(2).all(|two| two[0].0 != two[1].0), "twice");
    assert!(is_new(words));
}
