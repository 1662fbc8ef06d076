//! Permits that whoever comes may take, and how several are gathered for one that has aged.
#![cfg(not(loom))]

mod common;

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use common::{PROMPT, World, pend, pending};
use sablock::agents::{Agent, Notice};
use sablock::engine::{EventLoop, Hold, Limit, Outcome, Patience, Primitive, Request};
use sablock::primitives::semaphore::{FAIR_SEMAPHORE, MAX_PERMITS, SEMAPHORE, WAITING};

const GRANTED: Outcome = Outcome::GRANTED;

/// Two permits in all.
fn permits(count: u32) -> Request {
    Request::Hold(Hold::permits(count, 2))
}

impl World {
    /// One whose permits an agent has taken.
    fn exhausted() -> (Self, Arc<Agent>) {
        let world = Self::new(false);
        let holder = world.agent(0);
        assert_eq!(world.acquire(&holder, 2, Limit::Once), GRANTED);
        (world, holder)
    }

    fn acquire(&self, agent: &Arc<Agent>, count: u32, limit: Limit) -> Outcome {
        self.engine.wait(agent, &SEMAPHORE, self.place(), permits(count), limit, &mut || true).unwrap()
    }

    fn release_permits(&self, agent: &Arc<Agent>, count: u32) {
        assert!(self.engine.release(agent, &SEMAPHORE, self.place(), Hold::permits(count, 2)).unwrap());
    }

    /// A loop that waits for both permits, of which `holder` has both and gives one back; it has come for what it was asked for.
    fn gathering(&self, holder: &Arc<Agent>) -> (EventLoop<'_>, u32) {
        assert_eq!(self.acquire(holder, 2, Limit::Once), GRANTED);
        let mut waits = self.event_loop();
        let token = pend(&mut waits, self, &SEMAPHORE, permits(2));
        self.release_permits(holder, 1);
        assert_eq!(waits.next_settled(), None);
        (waits, token)
    }

    fn until_granted(&self, waits: &mut EventLoop<'_>, token: u32) {
        let waits = RefCell::new(waits);
        self.until("its turn", |_| waits.borrow_mut().next_settled() == self.settled(token, GRANTED));
    }

    /// Runs something beside a thread that blocks for both permits, while one is free.
    fn beside_a_gatherer<'s>(&'s self, scope: &'s thread::Scope<'s, '_>, holder: &Arc<Agent>) {
        assert_eq!(self.acquire(holder, 1, Limit::Once), GRANTED);
        scope.spawn(|| {
            let me = self.agent(9);
            assert_eq!(self.acquire(&me, 2, Limit::after(PROMPT)), GRANTED);
            self.release_permits(&me, 2);
        });
        self.until_waiting(&SEMAPHORE, 1);
    }
}

#[test]
fn whoever_comes_takes_what_is_free_before_those_who_wait_have_aged() {
    let world = &World::new(false);
    let [holder, newcomer] = [0, 1].map(|thread| world.agent(thread));
    thread::scope(|scope| {
        world.beside_a_gatherer(scope, &holder);
        assert_eq!(world.acquire(&newcomer, 1, Limit::Once), GRANTED);
        world.release_permits(&newcomer, 1);
        world.release_permits(&holder, 1);
    });
    assert_eq!(world.value(), 0);
}

#[test]
fn nobody_passes_one_that_has_aged_and_gathers_permits() {
    let world = &World::new(true);
    let [holder, newcomer] = [0, 1].map(|thread| world.agent(thread));
    thread::scope(|scope| {
        world.beside_a_gatherer(scope, &holder);
        assert_eq!(world.value() & !WAITING, 1, "one is free");
        assert_eq!(world.acquire(&newcomer, 1, Limit::Once), Outcome::TimedOut);
        let mut waits = world.event_loop();
        let token = pend(&mut waits, world, &SEMAPHORE, permits(1));
        assert_eq!(waits.next_settled(), None);
        world.release_permits(&holder, 1);
        world.until_granted(&mut waits, token);
        waits.end();
    });
}

/// The one ahead is a loop: a blocked thread has slices too, and is not counted on between two of its own.
#[test]
fn a_slice_that_ends_leaves_what_is_gathered_ahead() {
    let patience = Patience {
        grant_after: Duration::ZERO,
        grant_every: Duration::ZERO,
        slice: Duration::from_millis(1),
        ..Patience::default()
    };
    let world = &World::with(patience);
    let holder = world.agent(1);
    let pauses = &AtomicU32::new(0);
    let (mut waits, token) = world.gathering(&holder);
    thread::scope(|scope| {
        scope.spawn(move || {
            let me = world.agent(8);
            let mut pause = || {
                pauses.fetch_add(1, Ordering::SeqCst);
                true
            };
            let one = permits(1);
            let outcome = world.engine.wait(&me, &SEMAPHORE, world.place(), one, Limit::Endless, &mut pause);
            assert_eq!(outcome.unwrap(), GRANTED);
            world.release_permits(&me, 1);
        });
        world.until("slices", |_| pauses.load(Ordering::SeqCst) >= 5);
        assert_eq!(world.engine.inspect(&SEMAPHORE, world.place()).waiters.len(), 2);
        world.release_permits(&holder, 1);
        world.until_granted(&mut waits, token);
        world.release_permits(waits.agent(), 2);
    });
    assert_eq!(world.value(), 0);
    waits.end();
}

#[test]
fn a_slice_that_ends_overtakes_nobody_of_a_fair_one() {
    let world = &World::with(Patience { slice: Duration::from_millis(1), ..Patience::default() });
    let (holder, pauses, is_in) = (world.agent(1), &AtomicU32::new(0), &AtomicBool::new(false));
    let ask = |agent: &Arc<Agent>, count, limit, pause: &mut dyn FnMut() -> bool| {
        world.engine.wait(agent, &FAIR_SEMAPHORE, world.place(), permits(count), limit, &mut || pause()).unwrap()
    };
    let release = |agent: &Arc<Agent>, count| {
        assert!(world.engine.release(agent, &FAIR_SEMAPHORE, world.place(), Hold::permits(count, 2)).unwrap());
    };
    assert_eq!(ask(&holder, 1, Limit::Once, &mut || true), GRANTED);
    let mut waits = world.event_loop();
    let token = pend(&mut waits, world, &FAIR_SEMAPHORE, permits(2));
    thread::scope(|scope| {
        scope.spawn(move || {
            let me = world.agent(8);
            let mut pause = || {
                pauses.fetch_add(1, Ordering::SeqCst);
                true
            };
            assert_eq!(ask(&me, 1, Limit::Endless, &mut pause), GRANTED);
            is_in.store(true, Ordering::SeqCst);
            release(&me, 1);
        });
        world.until("slices", |_| pauses.load(Ordering::SeqCst) >= 5 || is_in.load(Ordering::SeqCst));
        assert!(!is_in.load(Ordering::SeqCst), "the first asks for more than there is");
        release(&holder, 1);
        assert_eq!(waits.next_settled(), world.settled(token, GRANTED));
        release(&Arc::clone(waits.agent()), 2);
    });
    assert_eq!(world.value(), 0);
    waits.end();
}

#[test]
fn a_loop_leaves_what_is_gathered_ahead() {
    let world = &World::new(true);
    let holder = world.agent(0);
    thread::scope(|scope| {
        world.beside_a_gatherer(scope, &holder);
        let mut waits = world.event_loop();
        let token = pend(&mut waits, world, &SEMAPHORE, permits(1));
        waits.agent().leave_notice(Notice::Offer(world.place().address()));
        assert_eq!(waits.next_settled(), None, "one is free, and not for it");
        world.release_permits(&holder, 1);
        world.until_granted(&mut waits, token);
        waits.end();
    });
}

#[test]
fn a_stalled_loop_delays_nobody() {
    let world = World::new(true);
    let [holder, newcomer] = [0, 1].map(|thread| world.agent(thread));
    assert_eq!(world.acquire(&holder, 2, Limit::Once), GRANTED);
    let mut stalled = world.event_loop();
    let mut next = world.event_loop();
    pend(&mut stalled, &world, &SEMAPHORE, permits(2));
    let token = pend(&mut next, &world, &SEMAPHORE, permits(1));
    world.release_permits(&holder, 1);
    assert_eq!(next.next_settled(), world.settled(token, GRANTED), "the one ahead was asked, and does not come");
    world.release_permits(&Arc::clone(next.agent()), 1);
    assert_eq!(world.acquire(&newcomer, 1, Limit::Once), GRANTED);
    stalled.end();
}

#[test]
fn permits_are_gathered_for_a_loop_that_comes_and_kept_for_it() {
    let world = World::new(true);
    let [holder, newcomer] = [0, 1].map(|thread| world.agent(thread));
    let (mut waits, token) = world.gathering(&holder);
    assert_eq!(world.acquire(&newcomer, 1, Limit::Once), Outcome::TimedOut, "it is being gathered");
    world.release_permits(&holder, 1);
    assert_eq!(world.value() & !WAITING, 2, "what is kept counts as taken");
    assert_eq!(world.acquire(&newcomer, 1, Limit::Once), Outcome::TimedOut);
    assert_eq!(waits.next_settled(), world.settled(token, GRANTED));
    world.release_permits(&Arc::clone(waits.agent()), 2);
    assert_eq!(world.value(), 0);
    assert_eq!(world.clock.take_leases().len(), 1);
}

#[test]
fn of_two_loops_that_came_in_vain_one_after_the_other_is_kept_a_permit_for() {
    let (world, holder) = World::exhausted();
    let [mut first, mut second] = [(); 2].map(|()| world.event_loop());
    let tokens = [&mut first, &mut second].map(|waits| {
        let token = pend(waits, &world, &SEMAPHORE, permits(1));
        waits.agent().notify(Notice::Offer(world.place().address()));
        assert_eq!(waits.next_settled(), None, "in vain");
        token
    });
    world.release_permits(&holder, 2);
    assert_eq!(world.value() & !WAITING, 1, "for the first");
    for (waits, token) in [&mut first, &mut second].into_iter().zip(tokens) {
        assert_eq!(waits.next_settled(), world.settled(token, GRANTED));
    }
    for waits in [first, second] {
        world.release_permits(waits.agent(), 1);
    }
    assert_eq!(world.value(), 0);
}

#[test]
fn permits_that_are_kept_for_a_loop_go_back_when_its_lease_is_over() {
    let world = World::new(true);
    let [holder, newcomer] = [0, 1].map(|thread| world.agent(thread));
    let (mut waits, token) = world.gathering(&holder);
    world.release_permits(&holder, 1);
    world.clock.end_leases(&world.engine);
    assert_eq!(world.value(), 0, "and all who are first in line were notified");
    assert_eq!(world.acquire(&newcomer, 2, Limit::Once), GRANTED);
    assert_eq!(waits.next_settled(), None);
    world.release_permits(&newcomer, 2);
    assert_eq!(waits.next_settled(), world.settled(token, GRANTED));
}

#[test]
fn what_was_kept_for_an_aborted_wait_counts_for_the_next_of_its_loop() {
    for next in [1, 2] {
        let world = World::new(true);
        let holder = world.agent(0);
        let (mut waits, first) = world.gathering(&holder);
        let second = pend(&mut waits, &world, &SEMAPHORE, permits(next));
        world.release_permits(&holder, 1);
        assert!(waits.cancel(first).is_some());
        assert_eq!(waits.next_settled(), world.settled(second, GRANTED));
        world.release_permits(&Arc::clone(waits.agent()), next);
        assert_eq!(world.value(), 0);
    }
}

#[test]
fn what_was_kept_for_an_aborted_wait_goes_to_others_if_the_next_of_its_loop_asks_for_more() {
    let world = World::new(true);
    let holder = world.agent(0);
    assert_eq!(world.acquire(&holder, 2, Limit::Once), GRANTED);
    let (mut waits, mut others) = (world.event_loop(), world.event_loop());
    let first = pend(&mut waits, &world, &SEMAPHORE, permits(1));
    let other = pend(&mut others, &world, &SEMAPHORE, permits(1));
    pend(&mut waits, &world, &SEMAPHORE, permits(2));
    world.release_permits(&holder, 1);
    assert_eq!(world.acquire(&holder, 1, Limit::Once), GRANTED);
    assert_eq!((waits.next_settled(), others.next_settled()), (None, None), "both come in vain");
    world.release_permits(&holder, 1);
    assert_eq!(world.value() & !WAITING, 2, "one is kept for it");
    assert!(waits.cancel(first).is_some());
    assert_eq!(waits.next_settled(), None, "the next asks for two");
    assert_eq!(others.next_settled(), world.settled(other, GRANTED));
}

#[test]
fn what_was_kept_for_a_loop_goes_back_when_its_last_wait_is_aborted_or_it_ends() {
    for ends in [false, true] {
        let world = World::new(true);
        let holder = world.agent(0);
        let (mut waits, token) = world.gathering(&holder);
        world.release_permits(&holder, 1);
        if ends {
            waits.end();
        } else {
            assert!(waits.cancel(token).is_some());
        }
        assert_eq!(world.value(), 0);
    }
}

#[test]
fn a_release_looks_at_the_queue_unless_all_who_are_first_in_line_were_told() {
    let (world, holder) = World::exhausted();
    let mut waits = world.event_loop();
    let token = pend(&mut waits, &world, &SEMAPHORE, permits(1));
    assert_eq!(world.value(), WAITING | 2);
    world.release_permits(&holder, 1);
    assert_eq!(world.value(), 1, "it was offered what is free: fast paths work");
    assert_eq!(world.acquire(&holder, 1, Limit::Once), GRANTED);
    assert_eq!(waits.next_settled(), None);
    assert_eq!(world.value(), WAITING | 2, "it came in vain");
    world.release_permits(&holder, 1);
    assert_eq!(waits.next_settled(), world.settled(token, GRANTED));
}

#[test]
fn a_release_looks_at_the_queue_while_a_blocked_thread_in_it_is_not_woken() {
    let (world, holder) = &World::exhausted();
    thread::scope(|scope| {
        scope.spawn(|| {
            let me = world.agent(1);
            assert_eq!(world.acquire(&me, 1, Limit::after(PROMPT)), GRANTED);
            world.release_permits(&me, 1);
        });
        world.until_waiting(&SEMAPHORE, 1);
        assert_eq!(world.value(), WAITING | 2);
        world.release_permits(holder, 2);
    });
    assert_eq!(world.value(), 0);
}

#[test]
fn batches_of_permits_let_in_blocked_threads_and_loops() {
    let (world, holder) = &World::exhausted();
    let mut waits = world.event_loop();
    thread::scope(|scope| {
        scope.spawn(|| assert_eq!(world.acquire(&world.agent(1), 1, Limit::after(PROMPT)), GRANTED));
        world.until_waiting(&SEMAPHORE, 1);
        let token = pend(&mut waits, world, &SEMAPHORE, permits(1));
        world.release_permits(holder, 2);
        world.until_granted(&mut waits, token);
    });
    assert_eq!(world.value(), 2);
}

#[test]
fn one_place_is_fair_for_all_who_wait_or_for_none() {
    let (world, holder) = World::exhausted();
    let mut waits = world.event_loop();
    let token = pending(waits.wait(&SEMAPHORE, world.place(), permits(1), Limit::Endless).unwrap());
    let fair = |limit| world.engine.wait(&holder, &FAIR_SEMAPHORE, world.place(), permits(1), limit, &mut || true);
    assert!(fair(Limit::Once).is_err());
    assert!(world.engine.release(&holder, &FAIR_SEMAPHORE, world.place(), Hold::permits(1, 2)).is_err());
    assert_eq!(world.value(), WAITING | 2, "nothing changed");
    assert!(waits.cancel(token).is_some());
    assert_eq!(fair(Limit::Once).unwrap(), Outcome::TimedOut);
}

#[test]
fn whoever_waits_for_all_permits_gets_them_however_many_there_are() {
    for of in [1, 2, MAX_PERMITS] {
        for semaphore in [&SEMAPHORE as &'static dyn Primitive, &FAIR_SEMAPHORE] {
            let world = World::new(false);
            let holder = world.agent(0);
            let one = Hold::permits(1, of);
            let taken =
                world.engine.wait(&holder, semaphore, world.place(), Request::Hold(one), Limit::Once, &mut || true);
            assert_eq!(taken.unwrap(), GRANTED);
            let mut waits = world.event_loop();
            let token = pend(&mut waits, &world, semaphore, Request::Hold(Hold::permits(of, of)));
            assert!(world.engine.release(&holder, semaphore, world.place(), one).unwrap());
            assert_eq!(waits.next_settled(), world.settled(token, GRANTED), "{of} of {}", semaphore.name());
        }
    }
}

#[test]
fn each_that_has_aged_and_gathers_is_handed_its_permits_however_soon_after_another() {
    let grant_every = Duration::from_secs(3600);
    let world = &World::with(Patience { grant_every, ..World::without_slices(true) });
    let holder = world.agent(0);
    assert_eq!(world.acquire(&holder, 2, Limit::Once), GRANTED);
    thread::scope(|scope| {
        for queued in 1..=3 {
            scope.spawn(|| {
                let agent = world.agent(1);
                assert_eq!(world.acquire(&agent, 2, Limit::after(PROMPT)), GRANTED);
                world.release_permits(&agent, 2);
            });
            world.until_waiting(&SEMAPHORE, queued);
        }
        world.release_permits(&holder, 2);
    });
    assert_eq!(world.engine.stats().handovers, 3);
}

#[test]
fn a_loop_leaves_nothing_to_one_behind_it_that_gathers() {
    let world = &World::new(true);
    let holder = world.agent(0);
    assert_eq!(world.acquire(&holder, 2, Limit::Once), GRANTED);
    let mut waits = world.event_loop();
    let token = pend(&mut waits, world, &SEMAPHORE, permits(1));
    thread::scope(|scope| {
        scope.spawn(|| assert_eq!(world.acquire(&world.agent(9), 2, Limit::after(PROMPT)), GRANTED));
        world.until_waiting(&SEMAPHORE, 2);
        world.release_permits(&holder, 1);
        let settled = waits.next_settled();
        world.release_permits(&holder, 1);
        assert_eq!(settled, world.settled(token, GRANTED));
        world.release_permits(&Arc::clone(waits.agent()), 1);
    });
}

#[test]
fn nobody_passes_a_loop_that_gathers_permits_though_it_is_not_the_first_in_line() {
    let world = World::new(true);
    let [holder, newcomer] = [0, 1].map(|thread| world.agent(thread));
    assert_eq!(world.acquire(&holder, 2, Limit::Once), GRANTED);
    let [mut stalled, mut gathers] = [(); 2].map(|()| world.event_loop());
    pend(&mut stalled, &world, &SEMAPHORE, permits(1));
    pend(&mut gathers, &world, &SEMAPHORE, permits(2));
    world.release_permits(&holder, 1);
    assert_eq!(gathers.next_settled(), None, "it has come");
    assert_ne!(world.value() & WAITING, 0, "a release looks at the queue");
    assert_eq!(world.acquire(&newcomer, 1, Limit::Once), Outcome::TimedOut);
    assert!(stalled.next_settled().is_some(), "it is ahead");
    [stalled, gathers].into_iter().for_each(EventLoop::end);
}
