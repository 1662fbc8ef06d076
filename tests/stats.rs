//! The engine's counts, and how it distinguishes one hold of a word from the next.
#![cfg(not(loom))]

mod common;

use common::Locks as _;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use common::{PROMPT, World, pending};
use sablock::agents::Notice;
use sablock::clients::{ClientLoop, Clients, Name, Names};
use sablock::engine::EventLoop;
use sablock::engine::HoldOwner;
use sablock::engine::Stats;
use sablock::engine::{Change, Failure, Hold, Limit, Mode, Outcome, Primitive, Reply, Request};
use sablock::primitives::barrier::BARRIER;
use sablock::primitives::event::MANUAL_RESET_EVENT;
use sablock::primitives::futex::FUTEX;
use sablock::primitives::mutex::MUTEX;
use sablock::primitives::once::ONCE;
use sablock::primitives::rwlock::RWLOCK;
use sablock::primitives::semaphore::{FAIR_SEMAPHORE, SEMAPHORE};

impl World {
    fn until_counted(&self, what: &str, holds: impl Fn(Stats) -> bool) {
        self.until(what, |world| holds(world.engine.stats()));
    }
}

/// With one parked thread: who waits, and how it got the word.
#[test]
fn a_wait_of_a_blocked_thread_is_counted_when_it_begins_and_when_it_ends() {
    for grants in [false, true] {
        let world = &World::new(grants);
        let me = world.agent(0);
        world.lock(&me, Limit::Once);
        assert_eq!(world.engine.stats().contended, 0, "nobody had to wait");
        thread::scope(|scope| {
            scope.spawn(|| world.hold_once());
            world.until_counted("a blocked thread", |stats| stats.blocked == 1);
            thread::sleep(Duration::from_millis(5));
            world.unlock(&me);
        });
        let stats = world.engine.stats();
        assert_eq!((stats.contended, stats.handovers, stats.blocked), (1, u64::from(grants), 0));
        assert!(stats.longest_wait >= Duration::from_millis(5), "{stats:?}");
        assert!(stats.longest_wait < PROMPT, "{stats:?}");
    }
}

#[test]
fn no_clock_is_read_before_somebody_asks() {
    let world = World::new(false);
    let mut waits = EventLoop::new(&world.engine, world.agent(1));
    for is_timed in [false, true] {
        let me = world.agent(0);
        world.lock(&me, Limit::Once);
        world.queue(&mut waits);
        thread::sleep(Duration::from_millis(3));
        world.unlock(&me);
        waits.next_settled().unwrap();
        let agent = Arc::clone(waits.agent());
        world.unlock(&agent);
        let longest = world.engine.stats().longest_wait;
        assert_eq!(longest >= Duration::from_millis(3), is_timed, "{longest:?}");
        assert!(is_timed || longest.is_zero(), "{longest:?}");
    }
}

#[test]
fn waits_that_end_without_the_word_are_counted_by_why() {
    let (world, me) = World::held();
    let other = world.agent(1);
    assert_eq!(world.lock(&other, Limit::after(Duration::from_millis(1))), Outcome::TimedOut);
    assert_eq!(world.lock(&other, Limit::Once), Outcome::TimedOut);
    let stats = world.engine.stats();
    assert_eq!((stats.timeouts, stats.blocked, stats.contended), (1, 0, 0), "one try is no wait");

    let mut waits = EventLoop::new(&world.engine, world.agent(2));
    let token = world.queue(&mut waits);
    world.queue(&mut waits);
    assert_eq!(world.engine.stats().pending, 2);
    waits.cancel(token);
    waits.end();
    let ended = world.engine.stats();
    assert_eq!((ended.aborts, ended.pending, ended.contended), (1, 0, 0));

    // Words that were overwritten, and what nobody needs to wait for any more.
    let mut waits = EventLoop::new(&world.engine, world.agent(3));
    world.queue(&mut waits);
    world.words[0].store(3, Ordering::SeqCst);
    waits.agent().notify(Notice::Offer(world.place().address()));
    assert!(waits.next_settled().is_some());
    assert_eq!(world.engine.stats(), ended, "overwritten");
    world.words[0].store(0, Ordering::SeqCst);
    let run = Request::Hold(Hold::exclusive(HoldOwner::Thread));
    let first = world.engine.wait(&me, &ONCE, world.other(0), run, Limit::Once, &mut || true);
    assert!(matches!(first, Ok(Outcome::Granted { .. })));
    assert!(matches!(waits.wait(&ONCE, world.other(0), run, Limit::Endless), Ok(Reply::Pending { .. })));
    assert_eq!(world.engine.stats().pending, 1);
    assert!(world.engine.change(&me, &ONCE, world.other(0), Change::Finish).unwrap().is_some());
    assert!(waits.next_settled().is_some());
    assert_eq!(world.engine.stats(), ended, "refused");
    world.lock(&me, Limit::Once);

    let locked = world.engine.lock(&me, world.place(), HoldOwner::Thread, Limit::Endless, &mut || true);
    assert!(matches!(locked, Err(Failure::Deadlock(_))));
    assert_eq!(world.engine.stats().deadlocks, 1);
}

#[test]
fn a_loop_that_is_passed_by_and_an_end_inside_are_counted() {
    let world = World::new(false);
    let me = world.agent(0);
    let mut waits = EventLoop::new(&world.engine, world.agent(1));
    world.lock(&me, Limit::Once);
    world.queue(&mut waits);
    world.unlock(&me);
    world.lock(&me, Limit::Once);
    // It comes in vain, so that the word is kept for it the next time; then it does not come.
    assert!(waits.next_settled().is_none());
    world.unlock(&me);
    let lease = world.clock.end_leases(&world.engine)[0];
    world.engine.end_lease(lease.address, lease.generation);
    assert_eq!(world.engine.stats().passed_by, 1);

    let ending = world.agent(2);
    world.words[0].store(ending.id, Ordering::SeqCst);
    world.engine.thread_ended(ending.id);
    assert!(matches!(world.lock(&me, Limit::Once), Outcome::Granted { abandoned_by: Some(_), .. }));
    assert_eq!(world.engine.stats().abandoned, 1);
    waits.end();
}

#[test]
fn an_end_inside_is_counted_once_though_some_give_it_back() {
    let world = World::new(false);
    let me = world.agent(0);
    for count in 1..3 {
        let ending = world.agent(1);
        world.words[0].store(ending.id, Ordering::SeqCst);
        world.engine.thread_ended(ending.id);
        for _ in 0..3 {
            let Outcome::Granted { abandoned_by, .. } = world.lock(&me, Limit::Once) else { panic!("it is free") };
            assert_eq!(abandoned_by, Some(ending.id));
            assert_eq!(world.engine.stats().abandoned, count);
            world.engine.give_back(&me, &MUTEX, world.place(), Hold::exclusive(HoldOwner::Thread), abandoned_by);
        }
        assert_eq!(world.lock(&me, Limit::Once), Outcome::granted(Some(ending.id)));
        assert_eq!(world.engine.stats().abandoned, count);
        world.unlock(&me);
    }
}

#[test]
fn a_blocked_thread_that_is_let_pass_is_no_handover() {
    let world = &World::new(false);
    let me = world.agent(0);
    let before = world.engine.stats();
    thread::scope(|scope| {
        scope.spawn(|| {
            let pass = Request::Hold(Hold::PASSAGE);
            let agent = world.agent(1);
            let passed =
                world.engine.wait(&agent, &MANUAL_RESET_EVENT, world.place(), pass, Limit::Endless, &mut || true);
            assert!(matches!(passed, Ok(Outcome::Granted { .. })));
        });
        world.until_waiting(&MANUAL_RESET_EVENT, 1);
        assert!(world.engine.change(&me, &MANUAL_RESET_EVENT, world.place(), Change::Set).unwrap().is_some());
    });
    assert_eq!(world.engine.stats(), before);
}

#[test]
fn a_wait_that_ends_after_its_grant_and_before_its_loop_comes_is_counted_by_why() {
    let world: &'static World = Box::leak(Box::new(World::new(false)));
    let two = Request::Hold(Hold::permits(2, 2));
    let [mut holder, mut late] = [(); 2].map(|()| world.event_loop());
    assert!(matches!(holder.wait(&FAIR_SEMAPHORE, world.place(), two, Limit::Endless), Ok(Reply::Now(_))));
    pending(late.wait(&FAIR_SEMAPHORE, world.place(), two, Limit::after(PROMPT)).unwrap());
    assert!(world.engine.release(holder.agent(), &FAIR_SEMAPHORE, world.place(), two.hold().unwrap()).unwrap());
    world.clock.expire(&world.engine);
    let stats = world.engine.stats();
    assert_eq!((stats.timeouts, stats.pending), (1, 0));

    let names = Box::leak(Box::new(Names::new(&world.engine)));
    let mut waits =
        [2, 3].map(|thread| ClientLoop::with_clients(&world.engine, world.agent(thread), Clients::new(names)));
    let [(held, _), (_, reply)] = waits
        .each_mut()
        .map(|waits| waits.request_name(Name::new(0, &[97]), Mode::Exclusive, false, Limit::Endless).unwrap());
    assert!(waits[0].release_name(held.number).unwrap());
    assert!(waits[1].cancel(pending(reply)).is_some());
    let stats = world.engine.stats();
    assert_eq!((stats.aborts, stats.pending), (1, 0));
}

#[test]
fn a_hold_is_distinguished_from_the_next_one_of_the_same_thread() {
    let world = &World::new(false);
    let me = world.agent(7);
    world.lock(&me, Limit::Once);
    assert_eq!(world.engine.hold(world.place()), None, "nobody waits");
    let mut waits = EventLoop::new(&world.engine, world.agent(1));
    let token = world.queue(&mut waits);
    let forgotten = world.engine.hold(world.place()).unwrap();
    waits.cancel(token);
    world.queue(&mut waits);
    let first = world.engine.hold(world.place()).unwrap();
    assert_eq!(first.thread, 7);
    assert_ne!(first.serial, forgotten.serial, "while nobody waited, it may have been another hold");
    world.queue(&mut waits);
    assert_eq!(world.lock(&world.agent(2), Limit::after(Duration::from_millis(1))), Outcome::TimedOut);
    assert_eq!(world.engine.hold(world.place()), Some(first), "whoever comes and goes");

    world.unlock(&me);
    assert_eq!(world.engine.hold(world.place()), None, "free");
    // The fast path, which nobody sees.
    world.words[0].store(me.id, Ordering::SeqCst);
    assert_eq!(world.engine.hold(world.place()), None, "held, but it may be free again at any moment");
    assert!(waits.next_settled().is_none());
    let second = world.engine.hold(world.place()).unwrap();
    assert_eq!(second.thread, 7);
    assert_ne!(second.serial, first.serial);
    waits.end();
}

#[test]
fn a_hold_is_distinguished_from_the_next_that_was_handed_over_while_others_wait() {
    // Strictly: the word says all the time that somebody waits.
    let world = World::new(false);
    let run = Request::Hold(Hold::exclusive(HoldOwner::Thread));
    let mut loops = [7, 8, 9].map(|thread| EventLoop::new(&world.engine, world.agent(thread)));
    for waits in &mut loops {
        waits.wait(&ONCE, world.place(), run, Limit::Endless).unwrap();
    }
    let first = world.engine.hold(world.place()).unwrap();
    assert!(world.engine.release(loops[0].agent(), &ONCE, world.place(), run.hold().unwrap()).unwrap());
    let second = world.engine.hold(world.place()).unwrap();
    assert_eq!((first.thread, second.thread), (7, 8));
    assert_ne!(first.serial, second.serial);
    loops.into_iter().for_each(EventLoop::end);
}

#[test]
fn what_each_waits_for_has_a_name() {
    let (read, write) = (Hold::shared(HoldOwner::Thread), Hold::exclusive(HoldOwner::Guard));
    let cases: [(&dyn Primitive, Hold, &str); 7] = [
        (&MUTEX, write, "exclusive"),
        (&RWLOCK, read, "shared"),
        (&RWLOCK, write, "exclusive"),
        (&SEMAPHORE, Hold::permits(2, 3), "permits"),
        (&ONCE, write, "exclusive"),
        (&BARRIER, Hold::party(2), "passage"),
        (&MANUAL_RESET_EVENT, Hold::PASSAGE, "passage"),
    ];
    for (primitive, hold, mode) in cases {
        assert_eq!(primitive.mode_of(Some(hold)), mode, "{}", primitive.name());
    }
    let futex: &dyn Primitive = &FUTEX;
    assert_eq!(futex.mode_of(None), "passage");
}

#[test]
fn the_longest_wait_is_not_the_last_one() {
    let world = World::new(false);
    world.engine.stats();
    let mut waits = world.event_loop();
    let longest = [50, 0].map(|milliseconds| {
        let me = world.agent(0);
        world.lock(&me, Limit::Once);
        world.queue(&mut waits);
        thread::sleep(Duration::from_millis(milliseconds));
        world.unlock(&me);
        waits.next_settled().unwrap();
        world.unlock(&Arc::clone(waits.agent()));
        world.engine.stats().longest_wait
    });
    assert!(longest[1] >= longest[0], "{longest:?}");
}
