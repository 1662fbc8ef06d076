//! Single transitions of the protocol, step by step, on leases that end only when the test says so.
#![cfg(not(loom))]

mod common;

use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use common::{ACQUIRED, PROMPT, World};
use sablock::agents::{Agent, Notice};
use sablock::engine::Corrupt;
use sablock::engine::HoldOwner;
use sablock::engine::{EventLoop, Settled};
use sablock::engine::{Limit, Outcome};
use sablock::primitives::mutex::{ABANDONED, MUTEX, RESERVED, WAITING, Word};

impl World {
    fn value(&self) -> u32 {
        self.word.load(Ordering::SeqCst)
    }

    fn event_loop(&self) -> EventLoop<'_> {
        EventLoop::new(&self.engine, self.agent(0))
    }

    /// How long each waiter has waited, in order; the oldest first if they kept their places.
    fn ages(&self) -> Vec<Duration> {
        self.engine.inspect(&MUTEX, self.place()).waiters.into_iter().map(|waiter| waiter.waited).collect()
    }

    fn until_queued(&self, waiters: usize) {
        self.until("waiters", |world| world.ages().len() == waiters);
    }
}

#[test]
fn a_woken_waiter_that_loses_keeps_its_place() {
    let world = &World::new(false);
    let me = world.agent(0);
    world.lock(&me, Limit::Once);
    thread::scope(|scope| {
        for queued in 1..=3 {
            scope.spawn(|| {
                let agent = world.agent(0);
                assert_eq!(world.lock(&agent, Limit::after(PROMPT)), ACQUIRED);
                world.unlock(&agent);
            });
            world.until_queued(queued);
        }
        // The first is woken and may find the word taken again; it says so by setting W.
        world.unlock(&me);
        if world.word.compare_exchange(0, me.id, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
            world.until("the loser waits on", |world| Word(world.value()).is_waiting());
            let ages = world.ages();
            assert!(ages.is_sorted_by(|earlier, later| earlier >= later), "{ages:?}");
            world.unlock(&me);
        }
    });
    assert_eq!(world.value(), 0);
}

#[test]
fn nobody_counts_on_a_thread_that_is_away() {
    let world = &World::new(true);
    let me = world.agent(0);
    world.lock(&me, Limit::Once);
    let (away, is_away) = mpsc::channel();
    let (back, is_back) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            let agent = world.agent(0);
            let mut pause = || {
                // A breakpoint: it stays until told. Later pauses pass at once, since the channel is closed.
                let _ = away.send(());
                let _ = is_back.recv();
                true
            };
            let limit = Limit::after(PROMPT);
            assert_eq!(
                world.engine.lock(&agent, world.place(), HoldOwner::Thread, limit, &mut pause).unwrap(),
                ACQUIRED
            );
            world.unlock(&agent);
        });
        is_away.recv().unwrap();
        let second = world.agent(0);
        world.unlock(&me);
        assert_eq!(world.lock(&second, Limit::after(PROMPT)), ACQUIRED, "a free word");
        let behind = scope.spawn(|| {
            let agent = world.agent(0);
            assert_eq!(world.lock(&agent, Limit::after(PROMPT)), ACQUIRED, "behind one that is away");
            world.unlock(&agent);
        });
        world.until_queued(2);
        world.unlock(&second);
        behind.join().unwrap();
        drop(back);
    });
    assert_eq!(world.value(), 0);
}

#[test]
fn a_request_of_a_thread_never_overtakes_its_own_earlier_ones() {
    let world = World::new(false);
    let me = world.agent(0);
    world.lock(&me, Limit::Once);
    let mut waits = world.event_loop();
    let first = world.queue(&mut waits);
    world.unlock(&me);
    assert_eq!(world.value(), 0, "free, and the loop is on its way");
    let second = world.queue(&mut waits);
    assert_eq!(
        waits.next_settled(),
        Some(Settled { token: first, place: world.place(), is_for_hold: true, outcome: Ok(ACQUIRED) })
    );
    let agent = Arc::clone(waits.agent());
    world.unlock(&agent);
    assert_eq!(
        waits.next_settled(),
        Some(Settled { token: second, place: world.place(), is_for_hold: true, outcome: Ok(ACQUIRED) })
    );
    world.unlock(&agent);
    assert_eq!(world.value(), 0);
}

/// A loop that came and found the word held, so that the next unlock reserves it.
fn claimed_in_vain<'w>(world: &'w World, holder: &Arc<Agent>) -> (EventLoop<'w>, u32) {
    let mut waits = world.event_loop();
    let token = world.queue(&mut waits);
    world.unlock(holder);
    assert_eq!(world.lock(holder, Limit::Once), ACQUIRED);
    assert_eq!(waits.next_settled(), None);
    (waits, token)
}

#[test]
fn a_word_is_reserved_for_a_loop_that_came_in_vain_until_it_comes_again() {
    let world = World::new(false);
    let me = world.agent(0);
    world.lock(&me, Limit::Once);
    let (mut waits, token) = claimed_in_vain(&world, &me);
    world.unlock(&me);
    assert_eq!(world.value(), RESERVED | WAITING);
    assert_eq!(world.lock(&me, Limit::Once), Outcome::TimedOut);
    assert_eq!(
        waits.next_settled(),
        Some(Settled { token, place: world.place(), is_for_hold: true, outcome: Ok(ACQUIRED) })
    );
}

#[test]
fn a_lease_that_is_over_opens_the_word_to_the_others() {
    let world = World::new(false);
    let me = world.agent(0);
    world.lock(&me, Limit::Once);
    let (mut waits, token) = claimed_in_vain(&world, &me);
    world.unlock(&me);
    let leases = std::mem::take(&mut *world.leases.0.lock());
    assert_eq!(leases.len(), 1);
    for (address, generation) in &leases {
        world.engine.end_lease(*address, *generation);
    }
    assert_eq!(world.lock(&me, Limit::Once), ACQUIRED);
    // The end of a lease that is over means nothing any more.
    world.engine.end_lease(leases[0].0, leases[0].1);
    assert_eq!(waits.next_settled(), None);
    world.unlock(&me);
    assert_eq!(
        waits.next_settled(),
        Some(Settled { token, place: world.place(), is_for_hold: true, outcome: Ok(ACQUIRED) })
    );
}

#[test]
fn a_lease_that_is_over_sets_the_next_on_its_way() {
    let world = World::new(false);
    let me = world.agent(0);
    world.lock(&me, Limit::Once);
    let (busy, _) = claimed_in_vain(&world, &me);
    let mut next = world.event_loop();
    let token = world.queue(&mut next);
    world.unlock(&me);
    assert_eq!(next.next_settled(), None, "the word is reserved for the busy one");
    let leases = std::mem::take(&mut *world.leases.0.lock());
    for (address, generation) in leases {
        world.engine.end_lease(address, generation);
    }
    let outcome = Ok(ACQUIRED);
    assert_eq!(next.next_settled(), Some(Settled { token, place: world.place(), is_for_hold: true, outcome }));
    busy.end();
}

#[test]
fn a_busy_loop_holds_back_neither_loops_nor_threads_behind_it() {
    let world = &World::new(false);
    let me = world.agent(0);
    world.lock(&me, Limit::Once);
    let mut busy = world.event_loop();
    let mut second = world.event_loop();
    world.queue(&mut busy);
    let token = world.queue(&mut second);
    thread::scope(|scope| {
        let blocked = scope.spawn(|| {
            let agent = world.agent(0);
            assert_eq!(world.lock(&agent, Limit::after(PROMPT)), ACQUIRED);
            world.unlock(&agent);
        });
        world.until_queued(3);
        world.unlock(&me);
        blocked.join().unwrap();
        let outcome = Ok(ACQUIRED);
        assert_eq!(second.next_settled(), Some(Settled { token, place: world.place(), is_for_hold: true, outcome }));
    });
}

#[test]
fn a_thread_that_blocks_does_not_wait_for_its_own_loop() {
    let world = World::new(false);
    let me = world.agent(0);
    world.lock(&me, Limit::Once);
    let (waits, _) = claimed_in_vain(&world, &me);
    world.unlock(&me);
    assert_eq!(world.value(), RESERVED | WAITING);
    // The word is kept for this loop, which cannot come while its thread is in here.
    let agent = Arc::clone(waits.agent());
    assert_eq!(world.lock(&agent, Limit::after(PROMPT)), ACQUIRED);
}

#[test]
fn of_two_loops_that_came_in_vain_the_earlier_goes_first() {
    let world = World::new(false);
    let me = world.agent(0);
    world.lock(&me, Limit::Once);
    let mut earlier = world.event_loop();
    let mut later = world.event_loop();
    let tokens = [world.queue(&mut earlier), world.queue(&mut later)];
    world.unlock(&me);
    assert_eq!(world.lock(&me, Limit::Once), ACQUIRED);
    assert_eq!((earlier.next_settled(), later.next_settled()), (None, None));
    world.unlock(&me);
    later.agent().leave_notice(Notice::Offer(world.place().address()));
    assert_eq!(later.next_settled(), None, "the word is reserved for the earlier one");
    assert_eq!(
        earlier.next_settled(),
        Some(Settled { token: tokens[0], place: world.place(), is_for_hold: true, outcome: Ok(ACQUIRED) })
    );
    let agent = Arc::clone(earlier.agent());
    world.unlock(&agent);
    assert_eq!(
        later.next_settled(),
        Some(Settled { token: tokens[1], place: world.place(), is_for_hold: true, outcome: Ok(ACQUIRED) })
    );
}

#[test]
fn an_aborted_wait_passes_on_what_was_reserved_for_it() {
    let world = World::new(false);
    let me = world.agent(0);
    world.lock(&me, Limit::Once);
    let (mut waits, token) = claimed_in_vain(&world, &me);
    let mut other = world.event_loop();
    let second = world.queue(&mut other);
    world.unlock(&me);
    assert!(waits.cancel(token).is_some());
    assert!(waits.cancel(token).is_none(), "it is gone");
    assert_eq!(
        other.next_settled(),
        Some(Settled { token: second, place: world.place(), is_for_hold: true, outcome: Ok(ACQUIRED) })
    );
}

#[test]
fn a_death_that_no_waiter_stayed_to_report_is_told_to_the_next_comer() {
    let world = World::new(false);
    let doomed = world.agent(0);
    world.lock(&doomed, Limit::Once);
    let mut waits = world.event_loop();
    let token = world.queue(&mut waits);
    world.engine.thread_ended(doomed.id);
    assert!(waits.cancel(token).is_some());
    let me = world.agent(0);
    assert_eq!(world.lock(&me, Limit::Once), Outcome::Granted { abandoned_by: Some(doomed.id) });
    assert!(Word(world.value()).is_abandoned());
    world.unlock(&me);
    assert_eq!(world.value(), ABANDONED, "sticky");
    assert_eq!(world.lock(&me, Limit::Once), ACQUIRED, "told once");
    world.engine.mark_consistent(me.id, world.place()).unwrap();
    world.unlock(&me);
    assert_eq!(world.value(), 0);
}

#[test]
fn a_loop_that_comes_for_nobody_leaves_a_dead_holders_word_to_the_scan() {
    let world = World::new(false);
    let doomed = world.agent(0);
    world.lock(&doomed, Limit::Once);
    let mut fickle = world.event_loop();
    let mut heir = world.event_loop();
    let aborted = world.queue(&mut fickle);
    world.unlock(&doomed);
    assert_eq!(world.lock(&doomed, Limit::Once), ACQUIRED);
    let token = world.queue(&mut heir);
    assert!(fickle.cancel(aborted).is_some());
    // Between the two halves of `bury`: the holder is dead, its words have not been looked for.
    world.engine.agents.remove(doomed.id);
    assert_eq!(fickle.next_settled(), None);
    world.engine.thread_ended(doomed.id);
    let outcome = Ok(Outcome::Granted { abandoned_by: Some(doomed.id) });
    assert_eq!(heir.next_settled(), Some(Settled { token, place: world.place(), is_for_hold: true, outcome }));
}

#[test]
fn a_hold_that_its_thread_never_knew_of_passes_on_unmarked() {
    let world = World::new(false);
    let me = world.agent(0);
    world.lock(&me, Limit::Once);
    let mut doomed = world.event_loop();
    let mut heir = world.event_loop();
    let tokens = [world.queue(&mut doomed), world.queue(&mut heir)];
    world.unlock(&me);
    assert_eq!(doomed.next_settled().map(|settled| settled.token), Some(tokens[0]));
    doomed.end();
    assert_eq!(
        heir.next_settled(),
        Some(Settled { token: tokens[1], place: world.place(), is_for_hold: true, outcome: Ok(ACQUIRED) })
    );
    assert!(!Word(world.value()).is_abandoned());
}

#[test]
fn foreign_content_is_refused_and_left_alone() {
    let world = World::new(false);
    let me = world.agent(0);
    for value in [1, 2, 69_999, 80_000, RESERVED, WAITING, RESERVED | WAITING, me.id | WAITING, 1 << 30, u32::MAX] {
        world.word.store(value, Ordering::SeqCst);
        assert!(
            world.engine.lock(&me, world.place(), HoldOwner::Thread, Limit::Endless, &mut || true).is_err(),
            "{value:#x}"
        );
        assert!(world.event_loop().lock(world.place(), HoldOwner::Thread, Limit::Endless).is_err(), "{value:#x}");
        let refusal = world.engine.unlock(&me, world.place(), HoldOwner::Thread);
        assert!(matches!(refusal, Ok(false) | Err(Corrupt)), "{value:#x}");
        assert_eq!(world.value(), value);
    }
}

#[test]
fn waiters_of_a_word_that_is_overwritten_are_told() {
    let world = World::new(true);
    let me = world.agent(0);
    world.lock(&me, Limit::Once);
    let mut waits = world.event_loop();
    let token = world.queue(&mut waits);
    thread::scope(|scope| {
        let blocked = scope.spawn(|| {
            let agent = world.agent(0);
            world.engine.lock(&agent, world.place(), HoldOwner::Thread, Limit::after(PROMPT), &mut || true).is_err()
        });
        world.until_queued(2);
        world.word.store(3, Ordering::SeqCst);
        assert!(blocked.join().unwrap());
    });
    assert!(waits.agent().post(Notice::Offer(world.place().address())));
    assert_eq!(
        waits.next_settled(),
        Some(Settled { token, place: world.place(), is_for_hold: true, outcome: Err(Corrupt) })
    );
    assert_eq!(waits.next_settled(), None);
    assert!(world.ages().is_empty());
    assert_eq!(world.value(), 3);
}
