//! Words that are kept for an event loop that came in vain, on leases that end only when the test says so.
#![cfg(not(loom))]

mod common;

use std::cell::RefCell;
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use common::{ACQUIRED, Locks as _, PROMPT, World};
use sablock::agents::{Blockage, Notice};
use sablock::engine::{Corrupt, EventLoop, HoldOwner, Limit, Outcome, Patience};
use sablock::primitives::mutex::{RESERVED, WAITING};

#[test]
fn a_word_is_reserved_for_a_loop_that_came_in_vain_until_it_comes_again() {
    let (world, me) = World::held();
    let (mut waits, token) = world.claimed_in_vain(&me);
    world.unlock(&me);
    assert_eq!(world.value(), RESERVED | WAITING);
    assert_eq!(world.lock(&me, Limit::Once), Outcome::TimedOut);
    assert_eq!(waits.next_settled(), world.settled(token, ACQUIRED));
}

#[test]
fn a_lease_that_is_over_opens_the_word_to_the_others() {
    let (world, me) = World::held();
    let (mut waits, token) = world.claimed_in_vain(&me);
    world.unlock(&me);
    let leases = world.clock.end_leases(&world.engine);
    assert_eq!(leases.len(), 1);
    assert_eq!(world.lock(&me, Limit::Once), ACQUIRED);
    // The end of a lease that is over means nothing any more.
    world.engine.end_lease(leases[0].address, leases[0].generation);
    assert_eq!(waits.next_settled(), None);
    world.unlock(&me);
    assert_eq!(waits.next_settled(), world.settled(token, ACQUIRED));
}

#[test]
fn a_lease_that_is_over_is_offered_to_the_next() {
    let (world, me) = World::held();
    let (busy, _) = world.claimed_in_vain(&me);
    let (mut next, token) = world.queued();
    world.unlock(&me);
    assert_eq!(next.next_settled(), None, "the word is reserved for the busy one");
    world.clock.end_leases(&world.engine);
    assert_eq!(next.next_settled(), world.settled(token, ACQUIRED));
    busy.end();
}

#[test]
fn a_thread_that_blocks_does_not_wait_for_its_own_loop() {
    let (world, me) = World::held();
    let (waits, _) = world.claimed_in_vain(&me);
    world.unlock(&me);
    assert_eq!(world.value(), RESERVED | WAITING);
    // The word is kept for this loop, which cannot come while its thread is in here.
    let agent = Arc::clone(waits.agent());
    assert_eq!(world.lock(&agent, Limit::after(PROMPT)), ACQUIRED);
}

#[test]
fn of_two_loops_that_came_in_vain_the_earlier_goes_first() {
    let (world, me) = World::held();
    let mut earlier = world.event_loop();
    let mut later = world.event_loop();
    let tokens = [world.queue(&mut earlier), world.queue(&mut later)];
    world.unlock(&me);
    assert_eq!(world.lock(&me, Limit::Once), ACQUIRED);
    assert_eq!((earlier.next_settled(), later.next_settled()), (None, None));
    world.unlock(&me);
    later.agent().leave_notice(Notice::Offer(world.place().address()));
    assert_eq!(later.next_settled(), None, "the word is reserved for the earlier one");
    assert_eq!(earlier.next_settled(), world.settled(tokens[0], ACQUIRED));
    let agent = Arc::clone(earlier.agent());
    world.unlock(&agent);
    assert_eq!(later.next_settled(), world.settled(tokens[1], ACQUIRED));
}

#[test]
fn an_aborted_wait_passes_on_what_was_reserved_for_it() {
    let (world, me) = World::held();
    let (mut waits, token) = world.claimed_in_vain(&me);
    let (mut other, second) = world.queued();
    world.unlock(&me);
    assert!(waits.cancel(token).is_some());
    assert!(waits.cancel(token).is_none(), "it is gone");
    assert_eq!(other.next_settled(), world.settled(second, ACQUIRED));
}

#[test]
fn a_lease_is_bounded_however_long_its_loop_has_waited() {
    let moment = Duration::from_nanos(1);
    let world = World::with(Patience { lease: moment, longest_lease: moment, ..Patience::default() });
    let me = world.agent(0);
    world.lock(&me, Limit::Once);
    let (waits, _) = world.claimed_in_vain(&me);
    // Long enough for a twentieth of it to be longer than a call.
    world.until("a wait of 200 ms", |world| world.ages()[0] >= Duration::from_millis(200));
    world.unlock(&me);
    let leases = world.clock.take_leases();
    assert!(leases[0].until <= Instant::now() + moment, "{leases:?}");
    waits.end();
}

/// Keeps for a loop for a minute, and no longer than this while a thread is blocked for it.
fn keeping(longest_kept: Duration) -> Patience {
    let minute = Duration::from_secs(60);
    Patience { lease: minute, longest_lease: minute, longest_kept, ..World::without_slices(false) }
}

#[test]
fn a_free_word_is_kept_for_all_loops_together_for_a_moment_while_a_thread_is_blocked_for_it() {
    let kept = Duration::from_secs(1);
    let world = &World::with(keeping(kept));
    let me = world.agent(0);
    world.lock(&me, Limit::Once);
    let mut loops: Vec<_> = (0..3).map(|_| world.queued()).collect();
    world.unlock(&me);
    assert_eq!(world.lock(&me, Limit::Once), ACQUIRED);
    loops.iter_mut().for_each(|(waits, _)| assert_eq!(waits.next_settled(), None, "it comes in vain"));
    thread::scope(|scope| {
        scope.spawn(|| world.hold_once());
        world.until_queued(4);
        let freed = Instant::now();
        world.unlock(&me);
        let mut ends = Vec::new();
        // Each lease is over before its loop comes; the time is theirs together.
        loop {
            let leases = world.clock.end_leases(&world.engine);
            if leases.is_empty() {
                break;
            }
            ends.extend(leases.iter().map(|lease| lease.until));
        }
        assert!(ends.iter().all(|end| *end <= freed + kept + Duration::from_millis(500)), "{ends:?}");
        assert!(ends.windows(2).all(|pair| pair[0] == pair[1]), "one end for all: {ends:?}");
        assert_eq!(ends.len(), 3);
    });
    loops.into_iter().for_each(|(waits, _)| waits.end());
}

#[test]
fn a_word_is_not_kept_any_more_once_it_was_kept_for_the_longest_time_while_a_thread_is_blocked() {
    let world = &World::with(keeping(Duration::ZERO));
    let me = world.agent(0);
    world.lock(&me, Limit::Once);
    let (waits, _) = world.claimed_in_vain(&me);
    thread::scope(|scope| {
        scope.spawn(|| world.hold_once());
        world.until_queued(2);
        world.unlock(&me);
        assert!(world.clock.take_leases().is_empty());
    });
    waits.end();
}

#[test]
fn a_lease_is_shortened_by_a_thread_that_blocks() {
    let kept = Duration::from_secs(10);
    let world = &World::with(keeping(kept));
    let me = world.agent(0);
    world.lock(&me, Limit::Once);
    let (waits, _) = world.claimed_in_vain(&me);
    world.unlock(&me);
    let [lease] = world.clock.take_leases()[..] else { panic!() };
    assert!(lease.until > Instant::now() + kept);
    thread::scope(|scope| {
        scope.spawn(|| world.hold_once());
        world.until_queued(2);
        let leases = world.clock.take_leases();
        let [shortened] = leases[..] else { panic!("{leases:?}") };
        assert_eq!(shortened.generation, lease.generation);
        assert!(shortened.until <= Instant::now() + kept);
        world.engine.end_lease(shortened.address, shortened.generation);
    });
    waits.end();
}

#[test]
fn a_lease_is_shortened_by_a_blocked_thread_that_is_back_from_a_pause() {
    let kept = Duration::from_secs(10);
    let world = &World::with(Patience { slice: Duration::from_millis(1), ..keeping(kept) });
    let me = world.agent(0);
    world.lock(&me, Limit::Once);
    let (waits, _) = world.claimed_in_vain(&me);
    let (away, is_away) = mpsc::channel();
    let (back, is_back) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            let agent = world.agent(1);
            let mut pause = || {
                // Later pauses pass at once, since the channels are closed.
                let _ = away.send(());
                let _ = is_back.recv();
                true
            };
            let limit = Limit::after(PROMPT);
            let locked = world.engine.lock(&agent, world.place(), HoldOwner::Thread, limit, &mut pause);
            assert_eq!(locked.unwrap(), ACQUIRED);
            world.unlock(&agent);
        });
        is_away.recv().unwrap();
        world.unlock(&me);
        let [lease] = world.clock.take_leases()[..] else { panic!() };
        assert!(lease.until > Instant::now() + kept, "nobody counts on a thread that is away");
        drop((back, is_away));
        let leases = RefCell::new(Vec::new());
        world.until("a shorter lease", |world| {
            leases.borrow_mut().extend(world.clock.take_leases());
            !leases.borrow().is_empty()
        });
        let leases = leases.into_inner();
        assert_eq!(leases[0].generation, lease.generation);
        assert!(leases[0].until <= Instant::now() + kept);
        world.engine.end_lease(lease.address, lease.generation);
    });
    waits.end();
}

#[test]
fn a_lease_that_has_lasted_long_ends_when_a_thread_blocks() {
    let world = &World::with(keeping(Duration::ZERO));
    let me = world.agent(0);
    world.lock(&me, Limit::Once);
    let (waits, _) = world.claimed_in_vain(&me);
    world.unlock(&me);
    assert_eq!(world.value(), RESERVED | WAITING);
    // The lease is not ended.
    world.hold_once();
    waits.end();
}

#[test]
fn a_reservation_ends_with_the_last_wait_of_its_loop() {
    let (world, me) = World::held();
    let (mut waits, token) = world.claimed_in_vain(&me);
    world.unlock(&me);
    assert_eq!(world.value(), RESERVED | WAITING);
    assert!(waits.cancel(token).is_some());
    assert_eq!(world.value(), 0);
}

/// The loop that a word is kept for has no wait for it any more after `end`, while the word is overwritten: the next gets in.
fn ends_with_its_loop(end: impl FnOnce(&mut EventLoop<'_>, u32)) {
    let (world, me) = World::held();
    let (mut waits, token) = world.claimed_in_vain(&me);
    let (mut next, next_token) = world.queued();
    world.unlock(&me);
    assert_eq!(world.value(), RESERVED | WAITING);
    world.words[0].store(3, Ordering::SeqCst);
    end(&mut waits, token);
    // The thread that has overwritten it frees it again.
    world.words[0].store(0, Ordering::SeqCst);
    assert_eq!(world.lock(&me, Limit::Once), ACQUIRED);
    world.unlock(&me);
    assert_eq!(next.next_settled(), world.settled(next_token, ACQUIRED));
}

#[test]
fn a_reservation_ends_with_its_loop_though_the_word_was_overwritten() {
    ends_with_its_loop(|waits, token| assert!(waits.cancel(token).is_some()));
}

#[test]
fn a_reservation_ends_with_the_waits_of_its_loop_that_finds_the_word_overwritten() {
    ends_with_its_loop(|waits, token| {
        let settled = waits.next_settled().unwrap();
        assert_eq!((settled.token, settled.outcome), (token, Err(Corrupt)));
    });
}

#[test]
fn a_loop_whose_own_thread_holds_the_word_gets_no_reservation() {
    let world = World::new(false);
    let mut waits = world.event_loop();
    let me = Arc::clone(waits.agent());
    world.lock(&me, Limit::Once);
    let token = world.queue(&mut waits);
    me.notify(Notice::Offer(world.place().address()));
    assert_eq!(waits.next_settled(), None);
    world.unlock(&me);
    assert_eq!(world.value(), 0, "open to all");
    assert_eq!(waits.next_settled(), world.settled(token, ACQUIRED));
}

#[test]
fn nothing_is_kept_for_a_loop_whose_thread_is_blocked() {
    let (world, me) = World::held();
    let (mut waits, token) = world.claimed_in_vain(&me);
    let blockage = Blockage { address: 8, byte_offset: 8, endless: false, serial: 1 };
    waits.agent().set_blockage(Some(blockage));
    world.unlock(&me);
    assert_eq!(world.value(), 0, "open to all");
    waits.agent().set_blockage(None);
    assert_eq!(waits.next_settled(), world.settled(token, ACQUIRED));
}

#[test]
fn a_lease_that_is_over_ends_no_later_reservation() {
    let (world, me) = World::held();
    let (mut waits, token) = world.claimed_in_vain(&me);
    let again = world.queue(&mut waits);
    world.unlock(&me);
    let first = world.clock.take_leases()[0];
    assert_eq!(waits.next_settled(), world.settled(token, ACQUIRED));
    let agent = Arc::clone(waits.agent());
    world.unlock(&agent);
    assert_eq!(world.lock(&me, Limit::Once), ACQUIRED);
    assert_eq!(waits.next_settled(), None);
    world.unlock(&me);
    world.engine.end_lease(first.address, first.generation);
    assert_eq!(world.value(), RESERVED | WAITING);
    assert_eq!(waits.next_settled(), world.settled(again, ACQUIRED));
}

#[test]
fn a_loop_whose_reservation_one_ahead_of_it_took_over_is_the_next() {
    let (world, me) = World::held();
    let [mut ahead, mut behind] = [(); 2].map(|()| world.event_loop());
    let tokens = [world.queue(&mut ahead), world.queue(&mut behind)];
    world.unlock(&me);
    assert_eq!(world.lock(&me, Limit::Once), ACQUIRED);
    assert_eq!(behind.next_settled(), None);
    world.unlock(&me);
    assert_eq!(world.value(), RESERVED | WAITING, "for the one behind, since the one ahead does not come");
    assert_eq!(ahead.next_settled(), world.settled(tokens[0], ACQUIRED));
    world.unlock(&Arc::clone(ahead.agent()));
    assert_eq!(world.value(), RESERVED | WAITING, "for the one behind again");
    assert_eq!(behind.next_settled(), world.settled(tokens[1], ACQUIRED));
}

#[test]
fn each_blocked_waiter_that_has_aged_is_handed_the_word_directly() {
    let zero = Duration::ZERO;
    let patience = Patience { spin: zero, spin_queued: zero, ..World::without_slices(true) };
    let world = &World::with(patience);
    let me = world.agent(0);
    world.lock(&me, Limit::Once);
    thread::scope(|scope| {
        world.queue_three(scope, |_| {});
        world.unlock(&me);
    });
    assert_eq!(world.engine.stats().handovers, 3);
}

#[test]
fn the_time_for_which_a_word_is_kept_begins_anew_when_a_loop_has_had_it() {
    let kept = Duration::from_millis(50);
    let world = &World::with(keeping(kept));
    let me = world.agent(0);
    world.lock(&me, Limit::Once);
    let [(mut first, _), (mut second, token)] = [world.queued(), world.queued()];
    world.unlock(&me);
    assert_eq!(world.lock(&me, Limit::Once), ACQUIRED);
    for waits in [&mut first, &mut second] {
        assert_eq!(waits.next_settled(), None, "in vain");
    }
    thread::scope(|scope| {
        scope.spawn(|| world.hold_once());
        world.until_queued(3);
        world.unlock(&me);
        assert!(first.next_settled().is_some());
        thread::sleep(kept);
        world.clock.take_leases();
        world.unlock(&Arc::clone(first.agent()));
        assert_eq!(world.clock.take_leases().len(), 1, "for the second");
        assert_eq!(second.next_settled(), world.settled(token, ACQUIRED));
        world.unlock(&Arc::clone(second.agent()));
    });
}

#[test]
fn nothing_is_kept_for_a_loop_behind_a_thread_that_blocks() {
    let (world, me) = &World::held();
    let (is_in, goes_on) = (mpsc::channel(), mpsc::channel());
    thread::scope(|scope| {
        scope.spawn(move || {
            let agent = world.agent(1);
            assert_eq!(world.lock(&agent, Limit::after(PROMPT)), ACQUIRED);
            is_in.0.send(()).unwrap();
            goes_on.1.recv().unwrap();
            world.unlock(&agent);
        });
        world.until_queued(1);
        let (mut waits, token) = world.queued();
        waits.agent().leave_notice(Notice::Offer(world.place().address()));
        assert_eq!(waits.next_settled(), None, "in vain");
        let wakes = common::count_wakes(waits.agent());
        world.unlock(me);
        is_in.1.recv().unwrap();
        assert_eq!((world.clock.take_leases().len(), wakes.load(Ordering::SeqCst)), (0, 0), "the thread is first");
        goes_on.0.send(()).unwrap();
        let waits = RefCell::new(waits);
        world.until("its turn", |_| waits.borrow_mut().next_settled() == world.settled(token, ACQUIRED));
        waits.into_inner().end();
    });
}

#[test]
fn a_lease_lasts_for_a_twentieth_of_the_time_that_its_loop_has_waited() {
    let lease = Duration::from_nanos(1);
    let world = World::with(Patience { lease, longest_lease: Duration::MAX, ..Patience::default() });
    let me = world.agent(0);
    world.lock(&me, Limit::Once);
    let before = Instant::now();
    let (waits, _) = world.claimed_in_vain(&me);
    let after = Instant::now();
    thread::sleep(Duration::from_millis(200));
    let unlocks = Instant::now();
    world.unlock(&me);
    let unlocked = Instant::now();
    let until = world.clock.take_leases()[0].until;
    let [shortest, longest] = [unlocks + (unlocks - after) / 20, unlocked + (unlocked - before) / 20];
    assert!((shortest..=longest).contains(&until), "{:?}", until - unlocks);
    waits.end();
}

#[test]
fn in_a_queue_of_threads_that_have_aged_one_in_a_while_is_handed_the_word_directly() {
    let (spin, grant_every) = (Duration::ZERO, Duration::from_secs(3600));
    let world = &World::with(Patience { spin, spin_queued: spin, grant_every, ..World::without_slices(true) });
    let me = world.agent(0);
    world.lock(&me, Limit::Once);
    thread::scope(|scope| {
        world.queue_three(scope, |_| {});
        world.unlock(&me);
    });
    assert_eq!(world.engine.stats().handovers, 1);
}
