//! Models of waiting for a notification. A notification that is lost shows as a deadlock, which loom reports.

use super::*;
use sablock::clients::condition::ConditionLock;
use sablock::engine::Outcome;
use sablock::engine::{Hold, HoldOwner, Request};
use sablock::memory::Place;
use sablock::primitives::futex::FUTEX;
use sablock::primitives::mutex::MUTEX;

/// Over when the clock says so.
const LONG: Duration = Duration::from_secs(3600);
const HOLD: Hold = Hold::exclusive(HoldOwner::Thread);

/// The lock that is held before a wait for a condition, and afterwards.
fn lock(world: &World) -> ConditionLock {
    ConditionLock { primitive: &MUTEX, place: world.word(), hold: HOLD }
}

impl World {
    /// The place at which the models wait: the second word, as a plain integer.
    fn location(&self) -> Place {
        // SAFETY: an aligned atomic; every thread of a model keeps the world until its waits are over.
        unsafe { Place::new(std::ptr::NonNull::from(&self.beside).cast(), 4) }
    }

    /// Waits while the value is 0.
    fn wait(&self, limit: Limit) -> Outcome {
        self.engine
            .wait(&self.enter(), &FUTEX, self.location(), Request::NotificationWhile(0), limit, &mut || true)
            .unwrap()
    }

    /// From now on nobody begins to wait; returns how many were notified.
    fn change_and_notify(&self, count: usize) -> usize {
        self.beside.store(1, Ordering::SeqCst);
        self.engine.notify(self.location(), count)
    }
}

/// `waitAsync`, awaited.
fn wait_async(world: &World) -> Outcome {
    wait_async_unless(world, |_, _| None)
}

/// The same, unless `ends` ends the pending wait.
fn wait_async_unless(world: &World, ends: impl FnOnce(&mut EventLoop<'_>, u32) -> Option<Outcome>) -> Outcome {
    wait_async_until(world, Limit::Endless, ends)
}

fn wait_async_until(
    world: &World,
    limit: Limit,
    ends: impl FnOnce(&mut EventLoop<'_>, u32) -> Option<Outcome>,
) -> Outcome {
    let (mut waits, parked) = event_loop(&world.engine);
    match waits.wait(&FUTEX, world.location(), Request::NotificationWhile(0), limit).unwrap() {
        Reply::Now(outcome) => outcome,
        Reply::Pending { token, .. } => {
            ends(&mut waits, token).unwrap_or_else(|| expect_notified(&mut waits, &parked, token))
        }
    }
}

fn expect_notified(waits: &mut EventLoop<'_>, parked: &Thread, token: u32) -> Outcome {
    let Settled { token: settled, outcome, .. } = turn(waits, parked);
    assert_eq!(settled, token);
    assert_eq!(waits.next_settled(), None);
    outcome.unwrap()
}

/// Expects that nobody waits any more, and as many waits ended by a notification as were notified.
fn expect_notified_once(world: &World, notified: usize, outcomes: &[Outcome]) {
    let ended = outcomes.iter().filter(|outcome| **outcome == Outcome::GRANTED).count();
    assert_eq!(ended, notified, "{outcomes:?}");
    assert_eq!(world.engine.waiting(world.location()), 0);
}

#[test]
fn wait_against_notify() {
    for waits in [|world: &World| world.wait(Limit::Endless), wait_async] {
        model(4, move || {
            let world = World::new(patience(false));
            let waiter = spawn(&world, waits);
            let notified = world.change_and_notify(1);
            expect_notified_once(&world, notified, &[waiter.join().unwrap()]);
        });
    }
}

#[test]
fn waits_of_both_kinds_against_notify() {
    model(3, || {
        let world = World::new(patience(false));
        let blocked = spawn(&world, |world| world.wait(Limit::Endless));
        let awaiting = spawn(&world, wait_async);
        let notified = world.change_and_notify(1) + world.engine.notify(world.location(), usize::MAX);
        expect_notified_once(&world, notified, &[blocked.join().unwrap(), awaiting.join().unwrap()]);
    });
}

#[test]
fn timeout_against_notify() {
    model(3, || {
        let world = World::new(patience(false));
        // Queues, and finds its time over at once.
        let hasty = spawn(&world, |world| world.wait(Limit::Until(sablock::sync::now())));
        let patient = spawn(&world, |world| world.wait(Limit::Endless));
        // The first notification goes to one, and another is left for the second, if it did not time out.
        let notified = world.change_and_notify(1) + world.engine.notify(world.location(), 1);
        expect_notified_once(&world, notified, &[hasty.join().unwrap(), patient.join().unwrap()]);
    });
}

#[test]
fn deadline_of_a_promise_against_notify() {
    model(4, || {
        let world = World::new(patience(false));
        let hasty = spawn(&world, |world| wait_async_until(world, Limit::after(LONG), |_, _| None));
        let clock = spawn(&world, |world| world.clock.expire(&world.engine));
        let notified = world.change_and_notify(1);
        clock.join().unwrap();
        expect_notified_once(&world, notified, &[hasty.join().unwrap()]);
    });
}

#[test]
fn cancel_against_notify() {
    model(3, || {
        let world = World::new(patience(false));
        let fickle = spawn(&world, |world| {
            wait_async_unless(world, |waits, token| {
                // Else it came too late: it was notified.
                waits.cancel(token).map(|_| {
                    assert_eq!(waits.next_settled(), None);
                    Outcome::TimedOut
                })
            })
        });
        let patient = spawn(&world, |world| world.wait(Limit::Endless));
        let notified = world.change_and_notify(1) + world.engine.notify(world.location(), 1);
        expect_notified_once(&world, notified, &[fickle.join().unwrap(), patient.join().unwrap()]);
    });
}

#[test]
fn end_of_an_awaiting_thread_against_notify() {
    model(3, || {
        let world = World::new(patience(false));
        let ending = spawn(&world, |world| {
            let (mut waits, _) = event_loop(&world.engine);
            waits.wait(&FUTEX, world.location(), Request::NotificationWhile(0), Limit::Endless).unwrap();
            // Perhaps it was notified; its code never knows.
            waits.end();
        });
        let patient = spawn(&world, |world| world.wait(Limit::Endless));
        // One only: if both stand in the line, the patient one must get it, directly or from the one that ended.
        world.change_and_notify(1);
        ending.join().unwrap();
        patient.join().unwrap();
        assert_eq!(world.engine.waiting(world.location()), 0);
    });
}

/// Waits, with the word held, until the second word has changed.
fn wait_for_change(world: &World) {
    let agent = world.enter();
    world.lock(&agent, Limit::Endless);
    while world.beside.load(Ordering::SeqCst) == 0 {
        let waited = lock(&world).wait(&world.engine, &agent, world.location(), Limit::Endless, &mut || true);
        assert!(matches!(waited, Ok((true, Outcome::Granted { .. }))));
    }
    world.touch();
    world.unlock(&agent);
}

#[test]
fn condition_against_change() {
    for grants in [false, true] {
        model(3, move || {
            let world = World::new(patience(grants));
            let waiter = spawn(&world, wait_for_change);
            let agent = world.enter();
            world.lock(&agent, Limit::Endless);
            world.touch();
            world.beside.store(1, Ordering::SeqCst);
            world.unlock(&agent);
            world.engine.notify(world.location(), 1);
            waiter.join().unwrap();
            world.expect_free(2);
        });
    }
}

#[test]
fn end_with_a_kept_notification_against_the_next_in_line() {
    model(3, || {
        let world = World::new(patience(false));
        let ending = spawn(&world, |world| {
            let (mut waits, _) = event_loop(&world.engine);
            let agent = Arc::clone(waits.agent());
            world.lock(&agent, Limit::Endless);
            lock(&world).wait_async(&mut waits, world.location(), Limit::Endless).unwrap();
            // Perhaps it is notified; it ends before it holds the word again.
            waits.next_settled();
            waits.next_settled();
            waits.end();
        });
        let patient = spawn(&world, |world| world.wait(Limit::Endless));
        world.change_and_notify(1);
        ending.join().unwrap();
        patient.join().unwrap();
        assert_eq!(world.engine.waiting(world.location()), 0);
    });
}
