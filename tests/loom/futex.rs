//! Models of waiting for a notification. A notification that is lost shows as a deadlock, which loom reports.

use super::*;
use sablock::engine::HoldOwner;
use sablock::engine::Outcome;
use sablock::memory::Place;

impl World {
    /// Where the models wait: the second word, as a plain integer.
    fn location(&self) -> Place {
        // SAFETY: an aligned atomic; every thread of a model keeps the world until its waits are over.
        unsafe { Place::new(std::ptr::NonNull::from(&self.beside).cast()) }
    }

    /// Waits while the value is 0.
    fn wait(&self, limit: Limit) -> Outcome {
        self.engine.wait(&self.enter(), self.location(), 0, limit, &mut || true).unwrap()
    }

    /// From now on nobody begins to wait; answers how many were told.
    fn change_and_notify(&self, count: usize) -> usize {
        self.beside.store(1, Ordering::SeqCst);
        self.engine.notify(self.location(), count)
    }
}

/// `waitAsync`, awaited.
fn wait_async(world: &World) -> Outcome {
    let (mut waits, bed) = event_loop(world);
    match waits.wait(world.location(), 0, Limit::Endless).unwrap() {
        Reply::Now(outcome) => outcome,
        Reply::Pending(token) => expect_told(&mut waits, &bed, token),
    }
}

fn expect_told(waits: &mut EventLoop<'_>, bed: &Bed, token: u32) -> Outcome {
    let Settled { token: settled, outcome, .. } = turn(waits, bed);
    assert_eq!(settled, token);
    assert_eq!(waits.next_settled(), None);
    outcome
}

/// Nobody waits any more, and as many heard of a notification as `told` were told.
fn expect_told_once(world: &World, told: usize, outcomes: &[Outcome]) {
    let heard = outcomes.iter().filter(|outcome| **outcome == Outcome::GRANTED).count();
    assert_eq!(heard, told, "{outcomes:?}");
    assert_eq!(world.engine.waiting(world.location()), 0);
}

#[test]
fn wait_against_notify() {
    for waits in [|world: &World| world.wait(Limit::Endless), wait_async] {
        model(4, move || {
            let world = World::new(patience(false));
            let waiter = spawn(&world, waits);
            let told = world.change_and_notify(1);
            expect_told_once(&world, told, &[waiter.join().unwrap()]);
        });
    }
}

#[test]
fn waits_of_both_kinds_against_notify() {
    model(3, || {
        let world = World::new(patience(false));
        let blocked = spawn(&world, |world| world.wait(Limit::Endless));
        let awaiting = spawn(&world, wait_async);
        let told = world.change_and_notify(1) + world.engine.notify(world.location(), usize::MAX);
        expect_told_once(&world, told, &[blocked.join().unwrap(), awaiting.join().unwrap()]);
    });
}

#[test]
fn timeout_against_notify() {
    model(3, || {
        let world = World::new(patience(false));
        // Queues, and finds its time over at once.
        let hasty = spawn(&world, |world| world.wait(Limit::Until(sablock::sync::now())));
        let patient = spawn(&world, |world| world.wait(Limit::Endless));
        // Whoever is told of the first, another is left for the second, if he did not time out.
        let told = world.change_and_notify(1) + world.engine.notify(world.location(), 1);
        expect_told_once(&world, told, &[hasty.join().unwrap(), patient.join().unwrap()]);
    });
}

#[test]
fn deadline_of_a_promise_against_notify() {
    model(4, || {
        let world = World::new(patience(false));
        let hasty = spawn(&world, |world| {
            let (mut waits, bed) = event_loop(world);
            match waits.wait(world.location(), 0, Limit::Endless).unwrap() {
                Reply::Now(outcome) => outcome,
                Reply::Pending(token) => {
                    // What the clock says when the deadline is over; the first wait of a world has the first serial.
                    waits.agent().notify(Notice::Expired(WaitId { token, serial: 1 }));
                    expect_told(&mut waits, &bed, token)
                }
            }
        });
        let told = world.change_and_notify(1);
        expect_told_once(&world, told, &[hasty.join().unwrap()]);
    });
}

#[test]
fn cancel_against_notify() {
    model(3, || {
        let world = World::new(patience(false));
        let fickle = spawn(&world, |world| {
            let (mut waits, bed) = event_loop(world);
            match waits.wait(world.location(), 0, Limit::Endless).unwrap() {
                Reply::Now(outcome) => outcome,
                Reply::Pending(token) if waits.cancel(token).is_some() => {
                    assert_eq!(waits.next_settled(), None);
                    Outcome::TimedOut
                }
                // It came too late: it was told, and hears of it.
                Reply::Pending(token) => expect_told(&mut waits, &bed, token),
            }
        });
        let patient = spawn(&world, |world| world.wait(Limit::Endless));
        let told = world.change_and_notify(1) + world.engine.notify(world.location(), 1);
        expect_told_once(&world, told, &[fickle.join().unwrap(), patient.join().unwrap()]);
    });
}

#[test]
fn death_of_an_awaiting_thread_against_notify() {
    model(3, || {
        let world = World::new(patience(false));
        let doomed = spawn(&world, |world| {
            let (mut waits, _) = event_loop(world);
            waits.wait(world.location(), 0, Limit::Endless).unwrap();
            // Perhaps it was told; its code never learns of it.
            waits.end();
        });
        let patient = spawn(&world, |world| world.wait(Limit::Endless));
        // One only: if both stand in the line, the patient one must get it, directly or from the dead.
        world.change_and_notify(1);
        doomed.join().unwrap();
        patient.join().unwrap();
        assert_eq!(world.engine.waiting(world.location()), 0);
    });
}

/// Waits, with the word held, until the second word has changed.
fn wait_for_change(world: &World) {
    let agent = world.enter();
    world.lock(&agent, Limit::Endless);
    while world.beside.load(Ordering::SeqCst) == 0 {
        let endless = Limit::Endless;
        let waited =
            world
                .engine
                .wait_unlocked(&agent, world.location(), world.word(), HoldOwner::Thread, endless, &mut || true);
        assert!(matches!(waited, Ok((Outcome::GRANTED, Outcome::Granted { .. }))));
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
fn death_with_a_kept_notification_against_the_next_in_line() {
    model(3, || {
        let world = World::new(patience(false));
        let doomed = spawn(&world, |world| {
            let (mut waits, _) = event_loop(world);
            let agent = Arc::clone(waits.agent());
            world.lock(&agent, Limit::Endless);
            waits.wait_unlocked(world.location(), world.word(), HoldOwner::Thread, Limit::Endless).unwrap();
            // Perhaps it hears of a notification; it ends before it holds the word again.
            waits.next_settled();
            waits.next_settled();
            waits.end();
        });
        let patient = spawn(&world, |world| world.wait(Limit::Endless));
        world.change_and_notify(1);
        doomed.join().unwrap();
        patient.join().unwrap();
        assert_eq!(world.engine.waiting(world.location()), 0);
    });
}
