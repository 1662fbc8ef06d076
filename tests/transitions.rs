//! Single transitions of the protocol, step by step.
#![cfg(not(loom))]

mod common;

use common::{Locks as _, LocksAsync as _};
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use common::{ACQUIRED, PROMPT, World};
use sablock::agents::Notice;
use sablock::engine::{Caller, Corrupt, Failure, Hold, HoldOwner, Limit, Patience, Request, Settled};
use sablock::primitives::mutex::{MUTEX, RESERVED, WAITING, Word};
use sablock::primitives::semaphore::FAIR_SEMAPHORE;

#[test]
fn a_woken_waiter_that_loses_keeps_its_place() {
    let (world, me) = &World::held();
    thread::scope(|scope| {
        world.queue_three(scope, |_| {});
        // The first is woken and may find the word taken again; it says so by setting W.
        world.unlock(me);
        if world.words[0].compare_exchange(0, me.id, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
            world.until("the loser waits on", |world| {
                // Unless all have had it before.
                Word(world.value()).is_waiting() || world.ages().is_empty()
            });
            let ages = world.ages();
            assert!(ages.is_sorted_by(|earlier, later| earlier >= later), "{ages:?}");
            world.unlock(me);
        }
    });
    assert_eq!(world.value(), 0);
}

#[test]
fn nobody_counts_on_a_thread_that_is_away() {
    let world = &World::with_slices(true);
    let me = world.agent(0);
    world.lock(&me, Limit::Once);
    let (away, is_away) = mpsc::channel();
    let (back, is_back) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            let agent = world.agent(0);
            let mut pause = || {
                // A breakpoint: it stays until the test goes on. Later pauses pass at once, since the channel is closed.
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
fn a_thread_that_is_back_from_a_pause_is_counted_on() {
    // One pause; the next slice outlasts the rest of the test.
    let slice = Duration::from_millis(500);
    let world = &World::with(Patience { grant_after: Duration::ZERO, slice, ..Patience::default() });
    let me = world.agent(0);
    world.lock(&me, Limit::Once);
    let (paused, pauses) = mpsc::channel();
    let (goes_on, may_go_on) = mpsc::channel::<()>();
    let (came, comes) = mpsc::channel();
    thread::scope(|scope| {
        let came_second = came.clone();
        scope.spawn(move || {
            let agent = world.agent(1);
            let mut pause = || {
                let _ = paused.send(());
                let _ = may_go_on.recv();
                true
            };
            let limit = Limit::after(PROMPT);
            let outcome = world.engine.lock(&agent, world.place(), HoldOwner::Thread, limit, &mut pause).unwrap();
            assert_eq!(outcome, ACQUIRED);
            came.send(1).unwrap();
            world.unlock(&agent);
        });
        pauses.recv().unwrap();
        scope.spawn(move || {
            let agent = world.agent(2);
            assert_eq!(world.lock(&agent, Limit::after(PROMPT)), ACQUIRED);
            came_second.send(2).unwrap();
            world.unlock(&agent);
        });
        world.until_queued(2);
        // It says that it is back by setting W.
        world.words[0].store(me.id, Ordering::SeqCst);
        drop(goes_on);
        world.until("the first is back", |world| Word(world.value()).is_waiting());
        world.unlock(&me);
    });
    assert_eq!(comes.iter().collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn a_request_of_a_thread_never_overtakes_its_own_earlier_ones() {
    let (world, me) = World::held();
    let (mut waits, first) = world.queued();
    world.unlock(&me);
    assert_eq!(world.value(), 0, "free, and offered to the loop");
    let second = world.queue(&mut waits);
    assert_eq!(waits.next_settled(), world.settled(first, ACQUIRED));
    let agent = Arc::clone(waits.agent());
    world.unlock(&agent);
    assert_eq!(waits.next_settled(), world.settled(second, ACQUIRED));
    world.unlock(&agent);
    assert_eq!(world.value(), 0);
}

#[test]
fn a_busy_loop_holds_back_neither_loops_nor_threads_behind_it() {
    let (world, me) = &World::held();
    let mut busy = world.event_loop();
    let mut second = world.event_loop();
    world.queue(&mut busy);
    let token = world.queue(&mut second);
    thread::scope(|scope| {
        let blocked = scope.spawn(|| world.hold_once());
        world.until_queued(3);
        world.unlock(me);
        blocked.join().unwrap();
        assert_eq!(second.next_settled(), world.settled(token, ACQUIRED));
    });
}

#[test]
fn foreign_content_is_refused_and_left_alone() {
    let world = World::new(false);
    let me = world.agent(0);
    for value in [1, 2, 69_999, 80_000, RESERVED, WAITING, RESERVED | WAITING, me.id | WAITING, 1 << 30, u32::MAX] {
        world.words[0].store(value, Ordering::SeqCst);
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
fn waits_for_a_word_that_is_overwritten_end() {
    let world = World::with_slices(true);
    let me = world.agent(0);
    world.lock(&me, Limit::Once);
    let (mut waits, token) = world.queued();
    thread::scope(|scope| {
        let blocked = scope.spawn(|| {
            let agent = world.agent(0);
            world.engine.lock(&agent, world.place(), HoldOwner::Thread, Limit::after(PROMPT), &mut || true).is_err()
        });
        world.until_queued(2);
        world.words[0].store(3, Ordering::SeqCst);
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
    let stats = world.engine.stats();
    assert_eq!((stats.blocked, stats.pending), (0, 0));
}

#[test]
fn a_blocked_thread_whose_word_was_overwritten_after_it_was_let_in_learns_of_that() {
    let world = World::with_slices(false);
    let [holder, me] = [0, 1].map(|thread| world.agent(thread));
    let permits = Hold::permits(1, 1);
    let ask = |agent, limit, caller: &mut dyn Caller| {
        world.engine.wait(agent, &FAIR_SEMAPHORE, world.place(), Request::Hold(permits), limit, caller)
    };
    assert!(matches!(ask(&holder, Limit::Once, &mut || true), Ok(ACQUIRED)));
    let mut is_first = true;
    let got = ask(&me, Limit::Endless, &mut || {
        if std::mem::take(&mut is_first) {
            assert!(world.engine.release(&holder, &FAIR_SEMAPHORE, world.place(), permits).unwrap());
            assert!(world.engine.inspect(&FAIR_SEMAPHORE, world.place()).waiters.is_empty(), "it is let in");
            world.words[0].store(1 << 30, Ordering::SeqCst);
        }
        true
    });
    assert!(matches!(got, Err(Failure::Corrupt)), "{got:?}");
    assert_eq!(world.value(), 1 << 30);
}

#[test]
fn those_who_wait_are_seen_in_the_order_in_which_they_came_whether_threads_or_promises() {
    let (world, me) = &World::held();
    let mut waits = world.event_loop();
    thread::scope(|scope| {
        for expected in [vec![true], vec![true, false], vec![true, false, true], vec![true, false, true, false]] {
            if expected[expected.len() - 1] {
                scope.spawn(|| world.hold_once());
                world.until_queued(expected.len());
            } else {
                world.queue(&mut waits);
            }
            let seen = world.engine.inspect(&MUTEX, world.place()).waiters;
            assert_eq!(seen.iter().map(|waiter| waiter.is_blocking).collect::<Vec<_>>(), expected);
        }
        waits.end();
        world.unlock(me);
    });
}

#[test]
fn blocked_threads_get_in_in_the_order_in_which_they_came_though_they_lose_a_race() {
    let (world, me) = &World::held();
    let (came, comes) = mpsc::channel();
    thread::scope(|scope| {
        let came = &came;
        world.queue_three(scope, move |queued| came.send(queued).unwrap());
        // The first is woken, and loses as often as this thread is quicker.
        for _ in 0..100 {
            world.unlock(me);
            if world.words[0].compare_exchange(0, me.id, Ordering::SeqCst, Ordering::SeqCst).is_err() {
                return;
            }
            world.until("the loser waits on", |world| {
                // Unless all have had it before.
                Word(world.value()).is_waiting() || world.ages().is_empty()
            });
        }
        world.unlock(me);
    });
    assert_eq!(comes.try_iter().collect::<Vec<_>>(), [1, 2, 3]);
}

#[test]
fn the_waits_of_a_loop_for_a_word_that_was_overwritten_end_in_the_order_in_which_they_came() {
    let (world, _me) = World::held();
    let mut waits = world.event_loop();
    let tokens = [(); 3].map(|()| world.queue(&mut waits));
    world.words[0].store(3, Ordering::SeqCst);
    waits.agent().leave_notice(Notice::Offer(world.place().address()));
    let ended: Vec<u32> = std::iter::from_fn(|| waits.next_settled()).map(|settled| settled.token).collect();
    assert_eq!(ended, tokens);
}

#[test]
fn a_blocked_thread_whose_time_is_over_learns_that_its_word_was_overwritten() {
    let (world, _me) = &World::held();
    thread::scope(|scope| {
        let blocked = scope.spawn(|| {
            let limit = Limit::after(Duration::from_secs(1));
            world.engine.lock(&world.agent(0), world.place(), HoldOwner::Thread, limit, &mut || true)
        });
        world.until_queued(1);
        world.words[0].store(3, Ordering::SeqCst);
        let ended = blocked.join().unwrap();
        assert!(matches!(ended, Err(Failure::Corrupt)), "{ended:?}");
    });
}
