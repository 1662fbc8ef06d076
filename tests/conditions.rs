//! Conditions: a notification is the waiter's once it holds the mutex again, and passes on if it never does.
#![cfg(not(loom))]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use common::{ACQUIRED, Ending, PROMPT, World, count_wakes, pending};
use sablock::agents::Agent;
use sablock::clients::condition::{ConditionFailure, ConditionLock};
use sablock::engine::{EventLoop, Failure, Hold, HoldOwner, Limit, Outcome, ReplyError, Request, Settled};
use sablock::primitives::futex::FUTEX;
use sablock::primitives::mutex::MUTEX;

const HOLD: Hold = Hold::exclusive(HoldOwner::Thread);

impl World {
    fn condition_lock(&self) -> ConditionLock {
        ConditionLock { primitive: &MUTEX, place: self.place(), hold: HOLD }
    }

    /// `Condition.wait`, with the mutex held.
    fn wait(&self, agent: &Arc<Agent>, pause: &mut dyn FnMut() -> bool) -> Result<(bool, Outcome), ConditionFailure> {
        let limit = Limit::after(PROMPT);
        self.condition_lock().wait(&self.engine, agent, self.other(0), limit, &mut || pause())
    }

    /// `Condition.waitAsync`, with the mutex held.
    fn wait_async(&self, waits: &mut EventLoop<'_>) -> u32 {
        pending(self.condition_lock().wait_async(waits, self.other(0), Limit::Endless).unwrap())
    }

    fn notify(&self) -> usize {
        self.engine.notify(self.other(0), 1)
    }

    fn until_notifiable(&self, count: usize) {
        self.until("waiters", |world| world.engine.waiting(world.other(0)) == count);
    }

    fn notified(&self, token: u32) -> Option<Settled> {
        Some(Settled { token, place: self.other(0), is_for_hold: false, outcome: Ok(ACQUIRED) })
    }
}

/// A blocked thread that was notified, and cannot lock the mutex again for `why`.
fn fails_to_lock_again(why: impl Fn(&World, &AtomicBool), is_expected: impl Fn(&Failure) -> bool) {
    let world = &World::with_slices(false);
    let [me, first] = &[0, 1].map(|thread| world.agent(thread));
    let is_interrupted = &AtomicBool::new(false);
    let mut next = world.event_loop();
    thread::scope(|scope| {
        world.lock(first, Limit::Once);
        let waiter = scope.spawn(move || world.wait(first, &mut || !is_interrupted.load(Ordering::SeqCst)));
        world.until_notifiable(1);
        world.lock(me, Limit::after(PROMPT));
        let token = pending(next.wait(&FUTEX, world.other(0), Request::Notification, Limit::Endless).unwrap());
        assert_eq!(world.notify(), 1);
        world.until_queued(1);
        why(world, is_interrupted);
        let outcome = waiter.join().unwrap();
        assert!(matches!(&outcome, Err(ConditionFailure::NotLocked(failure)) if is_expected(failure)), "{outcome:?}");
        assert_eq!(next.next_settled(), world.notified(token));
    });
}

#[test]
fn the_notification_of_a_thread_that_ends_before_it_locks_again_passes_on() {
    fails_to_lock_again(
        |_, is_interrupted| is_interrupted.store(true, Ordering::SeqCst),
        |failure| matches!(failure, Failure::Interrupted),
    );
}

#[test]
fn the_notification_of_a_thread_whose_mutex_was_overwritten_passes_on() {
    fails_to_lock_again(
        |world, _| world.words[0].store(3, Ordering::SeqCst),
        |failure| matches!(failure, Failure::Corrupt),
    );
}

/// A blocked thread that is notified, after `act`, once its end has begun.
fn ends_as_it_locks_again(world: &World, act: impl FnOnce()) {
    let ending = &world.agent(0);
    world.lock(ending, Limit::Once);
    thread::scope(|scope| {
        let (place, limit) = (world.other(0), Limit::after(PROMPT));
        let wait = move || world.condition_lock().wait(&world.engine, ending, place, limit, &mut Ending);
        let waiter = scope.spawn(wait);
        world.until_notifiable(1);
        act();
        assert_eq!(world.notify(), 1);
        let outcome = waiter.join().unwrap();
        assert!(matches!(outcome, Err(ConditionFailure::NotLocked(Failure::Interrupted))), "{outcome:?}");
    });
}

#[test]
fn a_thread_whose_end_has_begun_when_it_locks_again_at_once_leaves_mutex_and_notification_to_others() {
    let world = &World::new(false);
    let mut next = world.event_loop();
    let mut token = None;
    ends_as_it_locks_again(world, || {
        let reply = next.wait(&FUTEX, world.other(0), Request::Notification, Limit::Endless);
        token = Some(pending(reply.unwrap()));
    });
    assert_eq!(world.value(), 0);
    assert_eq!(next.next_settled(), token.and_then(|token| world.notified(token)));
}

#[test]
fn a_thread_whose_end_has_begun_when_it_locks_again_leaves_the_report_of_another_end_to_the_next() {
    let world = &World::new(false);
    let [doomed, next] = &[1, 2].map(|thread| world.agent(thread));
    ends_as_it_locks_again(world, || {
        world.lock(doomed, Limit::Once);
        world.engine.thread_ended(doomed.id);
    });
    assert_eq!(world.lock(next, Limit::Once), Outcome::granted(Some(doomed.id)));
}

#[test]
fn a_wait_that_is_interrupted_before_its_notification_does_not_lock_again() {
    let world = &World::with_slices(false);
    let me = world.agent(0);
    world.lock(&me, Limit::Once);
    let mut pauses = 0;
    let outcome = world.wait(&me, &mut || {
        pauses += 1;
        pauses > 1
    });
    assert!(matches!(outcome, Err(ConditionFailure::NotLocked(Failure::Interrupted))), "{outcome:?}");
    assert_eq!((world.value(), world.engine.waiting(world.other(0))), (0, 0));
}

#[test]
fn a_wait_whose_time_is_over_was_not_notified_and_takes_the_mutex_however_long_that_takes() {
    let world = &World::new(false);
    let [me, other] = &[0, 1].map(|thread| world.agent(thread));
    world.lock(me, Limit::Once);
    thread::scope(|scope| {
        let (place, limit) = (world.other(0), Limit::after(Duration::from_millis(5)));
        let wait = move || world.condition_lock().wait(&world.engine, me, place, limit, &mut || true);
        let waiter = scope.spawn(wait);
        world.lock(other, Limit::after(PROMPT));
        world.until_queued(1);
        world.unlock(other);
        assert!(matches!(waiter.join().unwrap(), Ok((false, Outcome::Granted { .. }))));
    });
    world.unlock(me);
}

#[test]
fn a_notification_that_its_code_never_knew_of_passes_on() {
    let world = World::new(false);
    let (mut ending, mut next) = (world.event_loop(), world.event_loop());
    for waits in [&mut ending, &mut next] {
        let agent = Arc::clone(waits.agent());
        world.lock(&agent, Limit::Once);
        world.wait_async(waits);
    }
    assert_eq!(world.notify(), 1);
    assert!(ending.next_settled().is_some());
    assert_eq!(next.next_settled(), None);
    let wakes = count_wakes(next.agent());
    ending.refuse();
    assert_eq!(wakes.load(Ordering::SeqCst), 1);
    assert!(next.next_settled().is_some(), "before the thread has ended");
    ending.end();
}

#[test]
fn a_notification_that_was_accepted_ends_with_its_thread() {
    let world = World::new(false);
    let (mut ending, mut next) = (world.event_loop(), world.event_loop());
    let mut tokens = Vec::new();
    for waits in [&mut ending, &mut next] {
        let agent = Arc::clone(waits.agent());
        world.lock(&agent, Limit::Once);
        tokens.push(world.wait_async(waits));
    }
    assert_eq!(world.notify(), 1);
    assert_eq!(ending.next_settled(), world.notified(tokens[0]));
    ending.accept(tokens[0]);
    ending.end();
    assert_eq!(next.next_settled(), None);
    assert_eq!(world.engine.waiting(world.other(0)), 1);
    next.end();
}

#[test]
fn a_wait_that_was_notified_leaves_no_deadline() {
    let world = World::new(false);
    let mut waits = world.event_loop();
    let agent = Arc::clone(waits.agent());
    world.lock(&agent, Limit::Once);
    let reply = world.condition_lock().wait_async(&mut waits, world.other(0), Limit::after(PROMPT));
    let token = pending(reply.unwrap());
    assert_eq!((world.clock.deadlines(), world.notify()), (1, 1));
    assert_eq!(waits.next_settled(), world.notified(token));
    assert_eq!(world.clock.deadlines(), 0);
    waits.accept(token);
}

#[test]
fn a_wait_without_the_mutex_takes_no_notification() {
    let world = World::new(false);
    let me = world.agent(0);
    assert!(matches!(world.wait(&me, &mut || true), Err(ConditionFailure::NotHeld)));
    assert_eq!((world.engine.waiting(world.other(0)), world.notify()), (0, 0));
    let mut waits = world.event_loop();
    let mut wait_async = || world.condition_lock().wait_async(&mut waits, world.other(0), Limit::Endless);
    assert!(matches!(wait_async(), Err(ReplyError::NotHeld)));
    assert_eq!((world.engine.waiting(world.other(0)), world.notify()), (0, 0));
    // With a mutex that was overwritten neither.
    world.words[0].store(3, Ordering::SeqCst);
    assert!(matches!(wait_async(), Err(ReplyError::Corrupt)));
    assert!(matches!(world.wait(&me, &mut || true), Err(ConditionFailure::Corrupt)));
    assert_eq!((world.engine.waiting(world.other(0)), world.notify()), (0, 0));
    assert_eq!((waits.pending(), waits.next_settled()), (0, None));
}

#[test]
fn a_wait_is_settled_once_though_an_earlier_one_of_its_number_was_notified_and_dropped() {
    let world = World::new(false);
    let mut waits = world.event_loop();
    let agent = Arc::clone(waits.agent());
    world.lock(&agent, Limit::Once);
    let dropped = world.wait_async(&mut waits);
    assert_eq!(world.notify(), 1);
    waits.drop_wait(dropped);
    world.lock(&agent, Limit::Once);
    let token = world.wait_async(&mut waits);
    assert_eq!(token, dropped, "the number is used again");
    assert_eq!(world.notify(), 1);
    assert_eq!(waits.next_settled(), world.notified(token));
    assert_eq!(waits.next_settled(), None, "the notice of the earlier one is old");
}

#[test]
fn promises_are_returned_in_the_order_of_their_notifications_though_a_number_was_used_before() {
    let world = World::new(false);
    let mut waits = world.event_loop();
    let mut wait = |place| pending(waits.wait(&FUTEX, place, Request::Notification, Limit::Endless).unwrap());
    let (dropped, first) = (wait(world.other(0)), wait(world.other(1)));
    assert_eq!(world.notify(), 1);
    waits.drop_wait(dropped);
    assert_eq!(world.engine.notify(world.other(1), 1), 1);
    let second = pending(waits.wait(&FUTEX, world.other(0), Request::Notification, Limit::Endless).unwrap());
    assert_eq!(second, dropped, "the number is used again");
    assert_eq!(world.notify(), 1);
    let returned = [(); 3].map(|()| waits.next_settled().map(|settled| settled.token));
    assert_eq!(returned, [Some(first), Some(second), None]);
    // The same if the loop has taken the notice of the earlier one out of its inbox.
    let mut wait = |place| pending(waits.wait(&FUTEX, place, Request::Notification, Limit::Endless).unwrap());
    let (first, dropped, second) = (wait(world.other(0)), wait(world.other(0)), wait(world.other(1)));
    assert_eq!((world.engine.notify(world.other(0), 2), world.engine.notify(world.other(1), 1)), (2, 1));
    assert_eq!(waits.next_settled().map(|settled| settled.token), Some(first));
    waits.drop_wait(dropped);
    let third = pending(waits.wait(&FUTEX, world.other(0), Request::Notification, Limit::Endless).unwrap());
    assert_eq!(third, dropped, "the number is used again");
    assert_eq!(world.notify(), 1);
    let returned = [(); 3].map(|()| waits.next_settled().map(|settled| settled.token));
    assert_eq!(returned, [Some(second), Some(third), None]);
}
