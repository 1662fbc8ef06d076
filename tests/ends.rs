//! Threads that end while they hold, wait, or are about to be let in.
#![cfg(not(loom))]

mod common;

use common::{Locks as _, LocksAsync as _};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;

use common::{ACQUIRED, Ending, PROMPT, World, count_wakes, pend, pending};
use sablock::agents::Notice;
use sablock::engine::{Caller, Change, Failure, Hold, HoldOwner, Limit, Outcome, Primitive, Reply, Request};
use sablock::primitives::event::{AUTO_RESET_EVENT, SET};
use sablock::primitives::mutex::{ABANDONED, MUTEX, Word};
use sablock::primitives::once::ONCE;
use sablock::primitives::rwlock::RWLOCK;
use sablock::primitives::semaphore::SEMAPHORE;

#[test]
fn an_end_that_no_waiter_stayed_to_report_is_reported_by_the_next_to_come() {
    let (world, ending) = World::held();
    let (mut waits, token) = world.queued();
    world.engine.thread_ended(ending.id);
    assert!(waits.cancel(token).is_some());
    let me = world.agent(0);
    assert_eq!(world.lock(&me, Limit::Once), Outcome::granted(Some(ending.id)));
    assert!(Word(world.value()).is_abandoned());
    world.unlock(&me);
    assert_eq!(world.value(), ABANDONED, "sticky");
    assert_eq!(world.lock(&me, Limit::Once), ACQUIRED, "reported once");
    world.engine.change(&me, &MUTEX, world.place(), Change::MarkConsistent).unwrap();
    world.unlock(&me);
    assert_eq!(world.value(), 0);
}

#[test]
fn a_loop_that_comes_for_nobody_leaves_the_word_of_an_ended_holder_to_the_scan() {
    let (world, ending) = World::held();
    let mut fickle = world.event_loop();
    let mut next = world.event_loop();
    let aborted = world.queue(&mut fickle);
    world.unlock(&ending);
    assert_eq!(world.lock(&ending, Limit::Once), ACQUIRED);
    let token = world.queue(&mut next);
    assert!(fickle.cancel(aborted).is_some());
    // Between the two halves of `thread_ended`: the holder's thread has ended, its words have not been looked for.
    world.engine.agents.remove(ending.id);
    assert_eq!(fickle.next_settled(), None);
    world.engine.thread_ended(ending.id);
    let outcome = Outcome::granted(Some(ending.id));
    assert_eq!(next.next_settled(), world.settled(token, outcome));
}

#[test]
fn a_hold_that_its_thread_never_knew_of_passes_on_unmarked() {
    let (world, me) = World::held();
    let mut ending = world.event_loop();
    let mut next = world.event_loop();
    let tokens = [world.queue(&mut ending), world.queue(&mut next)];
    world.unlock(&me);
    assert_eq!(ending.next_settled().map(|settled| settled.token), Some(tokens[0]));
    ending.end();
    assert_eq!(next.next_settled(), world.settled(tokens[1], ACQUIRED));
    assert!(!Word(world.value()).is_abandoned());
}

#[test]
fn a_loop_that_frees_the_word_of_an_ended_holder_and_may_not_take_it_lets_its_first_wait_in() {
    let (world, ending) = World::held();
    let (mut waits, first) = world.queued();
    // Between the two halves of `thread_ended`.
    world.engine.agents.remove(ending.id);
    // It stands behind the first, and the scan finds no owner any more.
    world.queue(&mut waits);
    world.engine.thread_ended(ending.id);
    let outcome = Outcome::granted(Some(ending.id));
    assert_eq!(waits.next_settled(), world.settled(first, outcome));
}

#[test]
fn a_thread_that_queues_between_the_end_of_the_holder_and_the_scan_gets_in() {
    let (world, ending) = World::held();
    world.engine.agents.remove(ending.id);
    let outcome = Outcome::granted(Some(ending.id));
    assert_eq!(world.lock(&world.agent(1), Limit::after(PROMPT)), outcome);
}

#[test]
fn blocked_threads_and_loops_get_in_when_the_thread_of_the_holder_ends() {
    let (world, ending) = &World::held();
    let outcome = Outcome::granted(Some(ending.id));
    thread::scope(|scope| {
        let blocked = scope.spawn(|| {
            let agent = world.agent(1);
            let outcome = world.lock(&agent, Limit::after(PROMPT));
            world.engine.change(&agent, &MUTEX, world.place(), Change::MarkConsistent).unwrap();
            world.unlock(&agent);
            outcome
        });
        world.until_queued(1);
        world.engine.thread_ended(ending.id);
        assert_eq!(blocked.join().unwrap(), outcome);
    });
    assert_eq!(world.value(), 0);
}

#[test]
fn waits_with_and_without_a_deadline_leave_when_their_thread_ends() {
    let (world, _) = World::held();
    let mut waits = world.event_loop();
    world.queue(&mut waits);
    pending(waits.lock(world.place(), HoldOwner::Thread, Limit::after(PROMPT)).unwrap());
    assert_eq!((world.ages().len(), world.clock.deadlines()), (2, 1));
    waits.end();
    assert_eq!((world.ages().len(), world.clock.deadlines()), (0, 0));
}

#[test]
fn a_wait_that_was_let_in_leaves_no_deadline() {
    let (world, me) = World::held();
    let mut waits = world.event_loop();
    let token = pending(waits.lock(world.place(), HoldOwner::Thread, Limit::after(PROMPT)).unwrap());
    world.unlock(&me);
    assert_eq!(waits.next_settled(), world.settled(token, ACQUIRED));
    assert_eq!(world.clock.deadlines(), 0);
}

#[test]
fn a_wait_that_is_taken_back_leaves_no_deadline() {
    let (world, _) = World::held();
    let mut waits = world.event_loop();
    let token = pending(waits.lock(world.place(), HoldOwner::Thread, Limit::after(PROMPT)).unwrap());
    assert_eq!(world.clock.deadlines(), 1);
    assert!(waits.cancel(token).is_some());
    assert_eq!(world.clock.deadlines(), 0);
}

#[test]
fn a_deadline_that_comes_after_its_wait_is_over_ends_no_later_wait_of_that_number() {
    let (world, me) = World::held();
    let mut waits = world.event_loop();
    let token = pending(waits.lock(world.place(), HoldOwner::Thread, Limit::after(PROMPT)).unwrap());
    world.unlock(&me);
    let late = world.clock.take_deadlines();
    assert_eq!(waits.next_settled(), world.settled(token, ACQUIRED));
    assert_eq!(world.queue(&mut waits), token);
    late.iter().for_each(|deadline| world.engine.expire(deadline));
    assert_eq!(waits.next_settled(), None);
    waits.end();
}

#[test]
fn a_hold_that_its_code_has_released_already_is_not_taken_from_the_next() {
    let (world, me) = World::held();
    let (mut ending, token) = world.queued();
    world.unlock(&me);
    assert_eq!(ending.next_settled(), world.settled(token, ACQUIRED));
    // Its code ran before the thread knew that the wait was over, and another has the word now.
    world.unlock(&Arc::clone(ending.agent()));
    world.lock(&me, Limit::Once);
    ending.end();
    assert!(Word(world.value()).owner() == me.id, "{:#x}", world.value());
}

#[test]
fn what_a_thread_was_granted_once_its_end_had_begun_passes_on_unmarked() {
    let world = World::new(false);
    let (me, ending) = (world.agent(0), world.agent(0));
    let lock = Hold::exclusive(HoldOwner::Thread);
    for (primitive, mine, theirs) in [
        (&MUTEX as &'static dyn Primitive, lock, lock),
        (&RWLOCK, lock, lock),
        (&RWLOCK, lock, Hold::shared(HoldOwner::Guard)),
        (&ONCE, lock, lock),
        (&SEMAPHORE, Hold::permits(2, 2), Hold::permits(1, 2)),
    ] {
        let ask = |agent: &_, hold, limit, caller: &mut dyn Caller| {
            world.engine.wait(agent, primitive, world.place(), Request::Hold(hold), limit, caller)
        };
        assert!(matches!(ask(&me, mine, Limit::Once, &mut || true), Ok(ACQUIRED)));
        thread::scope(|scope| {
            let blocked = scope.spawn(|| ask(&ending, theirs, Limit::Endless, &mut Ending));
            world.until_waiting(primitive, 1);
            assert!(world.engine.release(&me, primitive, world.place(), mine).unwrap());
            assert!(matches!(blocked.join().unwrap(), Err(Failure::Interrupted)));
        });
        assert_eq!(world.value(), 0, "{}", primitive.name());
    }
    world.engine.thread_ended(ending.id);
    assert_eq!(world.value(), 0);
}

#[test]
fn an_event_that_was_set_for_a_thread_whose_end_had_begun_is_set_for_the_next() {
    let world = World::new(false);
    let (me, ending) = (world.agent(0), world.agent(0));
    let passage = Request::Hold(Hold::PASSAGE);
    thread::scope(|scope| {
        let event = &AUTO_RESET_EVENT;
        let blocked =
            scope.spawn(|| world.engine.wait(&ending, event, world.place(), passage, Limit::Endless, &mut Ending));
        world.until_waiting(event, 1);
        world.engine.change(&me, event, world.place(), Change::Set).unwrap();
        assert!(matches!(blocked.join().unwrap(), Err(Failure::Interrupted)));
    });
    assert_eq!(world.value(), SET);
}

#[test]
fn who_only_tries_and_comes_upon_an_ended_holder_lets_those_in_who_wait() {
    // A reader does not pass those who wait, so that it takes nothing itself.
    let read = Request::Hold(Hold::shared(HoldOwner::Thread));
    let write = Request::Hold(Hold::exclusive(HoldOwner::Thread));
    for waiting in [read, write] {
        for is_blocking in [true, false] {
            let world = World::new(false);
            let ending = world.agent(0);
            assert_eq!(world.enter(&ending, write, Limit::Once), ACQUIRED);
            let mut waits = world.event_loop();
            let token = pend(&mut waits, &world, &RWLOCK, waiting);
            // Between the two halves of `thread_ended`: whoever comes finds the end first, and the scan finds no owner any more.
            world.engine.agents.remove(ending.id);
            let tried = if is_blocking {
                world.enter(&world.agent(1), read, Limit::Once)
            } else {
                let reply = world.event_loop().wait(&RWLOCK, world.place(), read, Limit::Once).unwrap();
                let Reply::Now(outcome) = reply else { panic!("{reply:?}") };
                outcome
            };
            assert_eq!(tried, Outcome::TimedOut, "{waiting:?}, blocking: {is_blocking}");
            world.engine.thread_ended(ending.id);
            let settled = world.settled(token, Outcome::granted(Some(ending.id)));
            assert_eq!(waits.next_settled(), settled, "{waiting:?}, blocking: {is_blocking}");
        }
    }
}

#[test]
fn a_loop_that_has_ended_is_woken_no_more() {
    let (world, me) = World::held();
    let (ending, _) = world.queued();
    let (agent, wakes) = (Arc::clone(ending.agent()), count_wakes(ending.agent()));
    world.unlock(&me);
    assert_eq!(wakes.load(Ordering::SeqCst), 1, "offered");
    // A drain makes the next notice wake it.
    agent.drain(&mut Vec::new());
    ending.end();
    agent.notify(Notice::Offer(world.place().address()));
    assert_eq!((wakes.load(Ordering::SeqCst), Arc::strong_count(&wakes)), (1, 1));
}

#[test]
fn all_that_an_ended_thread_held_goes_on_though_one_word_of_it_was_overwritten() {
    for overwritten in 0..3 {
        let world = World::new(false);
        let ending = world.agent(0);
        let mut waits = world.event_loop();
        let places = [world.place(), world.other(0), world.other(1)];
        let tokens = places.map(|place| {
            world.engine.lock(&ending, place, HoldOwner::Thread, Limit::Once, &mut || true).unwrap();
            pending(waits.lock(place, HoldOwner::Thread, Limit::Endless).unwrap())
        });
        // Its owner can still be read.
        places[overwritten].word().fetch_or(1 << 30, Ordering::SeqCst);
        world.engine.thread_ended(ending.id);
        let mut got: Vec<_> =
            std::iter::from_fn(|| waits.next_settled()).map(|settled| (settled.token, settled.outcome)).collect();
        got.sort_by_key(|(token, _)| *token);
        let expected = tokens.into_iter().filter(|token| *token != tokens[overwritten]);
        let outcome = Ok(Outcome::granted(Some(ending.id)));
        assert_eq!(got, expected.map(|token| (token, outcome)).collect::<Vec<_>>(), "but {overwritten}");
        waits.end();
    }
}

#[test]
fn a_loop_that_only_tries_and_frees_the_word_of_an_ended_holder_lets_its_first_wait_in() {
    let (world, ending) = World::held();
    let (mut waits, token) = world.queued();
    world.engine.agents.remove(ending.id);
    let tried = waits.lock(world.place(), HoldOwner::Thread, Limit::Once).unwrap();
    assert_eq!(tried, Reply::Now(Outcome::TimedOut), "its own wait is first");
    assert_eq!(waits.next_settled(), world.settled(token, Outcome::granted(Some(ending.id))));
}

#[test]
fn an_end_is_reported_though_the_word_was_overwritten_for_a_while() {
    let (world, ending) = World::held();
    let (mut waits, token) = world.queued();
    world.engine.thread_ended(ending.id);
    let word = world.value();
    world.words[0].store(3, Ordering::SeqCst);
    let came = world.engine.lock(&world.agent(1), world.place(), HoldOwner::Thread, Limit::Once, &mut || true);
    assert!(matches!(came, Err(Failure::Corrupt)));
    world.words[0].store(word, Ordering::SeqCst);
    assert_eq!(waits.next_settled(), world.settled(token, Outcome::granted(Some(ending.id))));
}
