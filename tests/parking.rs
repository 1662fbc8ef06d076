//! An event loop that comes in vain parks for a moment, if somebody can hand over to it.
#![cfg(not(loom))]

mod common;

use common::{Locks as _, LocksAsync as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use common::{ACQUIRED, PROMPT, World, count_wakes, pending};
use sablock::agents::{Agent, Notice};
use sablock::engine::{EventLoop, Failure, HoldOwner, Limit, Outcome, Patience, Settled};
use sablock::primitives::mutex::Word;

/// A park that nobody ends before its time shows.
const LONG: Duration = Duration::from_secs(if cfg!(mutant) { 2 } else { 4 });

impl World {
    /// Loops that come in vain park for `longest_park`, however short they have waited.
    fn parking(longest_park: Duration) -> Self {
        let shortest_park = Duration::ZERO;
        let grant_after = Duration::MAX;
        Self::with(Patience { park_fraction: 1e9, shortest_park, longest_park, grant_after, ..Patience::default() })
    }

    /// The loop comes, offered or not, and returns to its thread before a long park would be over.
    fn claim(&self, waits: &mut EventLoop<'_>) -> Option<Settled> {
        waits.agent().leave_notice(Notice::Offer(self.place().address()));
        let start = Instant::now();
        let settled = waits.next_settled();
        assert!(start.elapsed() < LONG, "parked");
        settled
    }

    /// As [`World::claim`], with another notice to be dealt with afterwards.
    fn claim_in_passing(&self, waits: &mut EventLoop<'_>) -> Option<Settled> {
        waits.agent().leave_notice(Notice::Offer(self.place().address()));
        let start = Instant::now();
        waits.agent().leave_notice(Notice::Settled(99));
        let settled = waits.next_settled();
        assert!(start.elapsed() < LONG, "parked");
        settled
    }

    /// A loop with a wait for a word that `holder` holds, of which the word does not say yet that somebody waits.
    fn waits_unseen(&self, holder: &Arc<Agent>) -> (EventLoop<'_>, u32) {
        self.lock(holder, Limit::Once);
        let mut waits = self.event_loop();
        let token = self.queue(&mut waits);
        self.unlock(holder);
        self.lock_fast(holder);
        (waits, token)
    }
}

#[test]
fn a_loop_that_parks_is_handed_the_word() {
    let world = &World::parking(LONG);
    let holder = &world.agent(0);
    let (mut waits, token) = world.waits_unseen(holder);
    thread::scope(|scope| {
        scope.spawn(|| {
            // The loop has come once the word says that somebody waits.
            world.until("the claim", |world| Word(world.value()).is_waiting());
            world.unlock(holder);
        });
        assert_eq!(world.claim(&mut waits), world.settled(token, ACQUIRED));
    });
    assert_eq!(Word(world.value()).owner(), waits.agent().id);
}

#[test]
fn a_loop_stays_awake_for_a_wait_that_says_so() {
    let world = &World::parking(LONG);
    let holder = &world.agent(0);
    let (mut waits, token) = world.waits_unseen(holder);
    waits.stay_awake(token);
    assert_eq!(world.claim(&mut waits), None);
    world.unlock(holder);
    assert_eq!(world.claim(&mut waits), world.settled(token, ACQUIRED));
}

#[test]
fn a_loop_that_parks_gets_the_word_when_the_thread_of_the_holder_ends() {
    let world = &World::parking(LONG);
    let holder = &world.agent(0);
    let (mut waits, token) = world.waits_unseen(holder);
    thread::scope(|scope| {
        scope.spawn(|| {
            world.until("the claim", |world| Word(world.value()).is_waiting());
            world.engine.thread_ended(holder.id);
        });
        let outcome = Outcome::granted(Some(holder.id));
        assert_eq!(world.claim(&mut waits), world.settled(token, outcome));
    });
}

#[test]
fn a_park_ends_after_its_bound_and_comes_once_in_a_turn() {
    // A machine that pauses for so long is no park.
    let bound = Duration::from_millis(500);
    let world = &World::parking(bound);
    let holder = &world.agent(0);
    let (mut waits, _) = world.waits_unseen(holder);
    let (returned, returns) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(move || {
            // Ends a park that is too long, so that the test does.
            if returns.recv_timeout(LONG).is_err() {
                world.unlock(holder);
            }
        });
        for turn in ["the first", "the next"] {
            for (drain, parks) in [("first", true), ("second", false)] {
                let start = Instant::now();
                waits.agent().leave_notice(Notice::Offer(world.place().address()));
                assert_eq!(waits.next_settled(), None, "{turn}, {drain}: the holder has not released it");
                assert_eq!(start.elapsed() >= bound, parks, "{turn}, {drain}: parks for {:?}", start.elapsed());
                assert!(waits.has_parked(), "{turn}, {drain}");
            }
            waits.turned();
            assert!(!waits.has_parked(), "{turn}");
        }
        returned.send(()).unwrap();
    });
    waits.end();
}

#[test]
fn a_loop_that_has_parked_in_vain_is_woken_when_the_word_is_free() {
    let world = World::parking(Duration::from_millis(1));
    let holder = world.agent(0);
    let (mut waits, token) = world.waits_unseen(&holder);
    assert_eq!(world.claim(&mut waits), None);
    assert!(waits.has_parked());
    let wakes = count_wakes(waits.agent());
    world.unlock(&holder);
    assert_eq!(wakes.load(Ordering::SeqCst), 1);
    assert_eq!(waits.next_settled(), world.settled(token, ACQUIRED));
}

#[test]
fn a_loop_with_more_to_do_does_not_park() {
    let world = World::parking(LONG);
    let holder = world.agent(0);
    let (mut waits, _) = world.waits_unseen(&holder);
    // The offer of the release is in its inbox as well.
    assert_eq!(world.claim_in_passing(&mut waits), None);
    waits.end();
}

#[test]
fn a_loop_does_not_park_for_what_its_own_thread_holds() {
    let world = World::parking(LONG);
    let mut waits = world.event_loop();
    let me = Arc::clone(waits.agent());
    world.lock(&me, Limit::Once);
    world.queue(&mut waits);
    assert_eq!(world.claim(&mut waits), None);
    waits.end();
}

#[test]
fn a_loop_does_not_park_for_another_environment_of_its_thread() {
    let world = World::parking(LONG);
    let [holder, beside] = [0, 1].map(|thread| world.engine.agents.add_on(thread, 1).unwrap());
    world.lock(&holder, Limit::Once);
    let mut waits = EventLoop::new(&world.engine, beside);
    world.queue(&mut waits);
    assert_eq!(world.claim(&mut waits), None);
    waits.end();
}

#[test]
fn a_loop_does_not_park_for_a_holder_that_is_blocked() {
    let world = &World::parking(LONG);
    let [holder, other] = &[0, 1].map(|thread| world.agent(thread));
    world.lock(holder, Limit::Once);
    world.engine.lock(other, world.other(0), HoldOwner::Thread, Limit::Once, &mut || true).unwrap();
    let is_over = &AtomicBool::new(false);
    thread::scope(|scope| {
        let blocked = scope.spawn(move || {
            let mut pause = || !is_over.load(Ordering::SeqCst);
            world.engine.lock(holder, world.other(0), HoldOwner::Thread, Limit::after(PROMPT), &mut pause)
        });
        world.until("the holder blocks", |_| holder.blockage().is_some());
        let mut waits = world.event_loop();
        world.queue(&mut waits);
        assert_eq!(world.claim(&mut waits), None);
        waits.end();
        is_over.store(true, Ordering::SeqCst);
        assert!(matches!(blocked.join().unwrap(), Err(Failure::Interrupted)));
    });
}

#[test]
fn a_loop_does_not_park_for_a_holder_whose_thread_has_ended() {
    let world = World::parking(LONG);
    let holder = world.agent(0);
    world.lock(&holder, Limit::Once);
    let (mut waits, token) = world.queued();
    world.engine.agents.remove(holder.id);
    let outcome = Outcome::granted(Some(holder.id));
    assert_eq!(world.claim(&mut waits), world.settled(token, outcome));
}

#[test]
fn a_loop_does_not_park_for_what_is_reserved_for_another() {
    let world = World::parking(LONG);
    let holder = world.agent(0);
    world.lock(&holder, Limit::Once);
    let (mut earlier, mut later) = (world.event_loop(), world.event_loop());
    world.queue(&mut earlier);
    pending(later.lock(world.place(), HoldOwner::Thread, Limit::Endless).unwrap());
    // It does not park, and is remembered.
    assert_eq!(world.claim_in_passing(&mut earlier), None);
    world.unlock(&holder);
    assert!(Word(world.value()).is_reserved());
    assert_eq!(world.claim(&mut later), None);
    earlier.end();
    later.end();
}

#[test]
fn a_loop_that_has_parked_parks_again_for_a_fraction_of_the_time_since_then_only() {
    let (shortest_park, grant_after) = (Duration::from_millis(250), Duration::MAX);
    let world = World::with(Patience {
        park_fraction: 0.25,
        shortest_park,
        longest_park: shortest_park,
        grant_after,
        ..Patience::default()
    });
    let holder = world.agent(0);
    let (mut waits, _) = world.waits_unseen(&holder);
    let has_waited = |world: &World| world.ages()[0].mul_f64(0.25) > shortest_park;
    world.until("a wait that is long enough", has_waited);
    for parks in [true, false] {
        assert_eq!(world.claim(&mut waits), None);
        assert_eq!(waits.has_parked(), parks);
        waits.turned();
    }
    waits.end();
}
