//! Waiting for a notification, step by step, and on real threads.
#![cfg(not(loom))]

use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use sablock::clients::condition::{ConditionFailure, ConditionLock};
use sablock::engine::Limit;
use sablock::engine::Outcome::{self, TimedOut};
use sablock::engine::{Deadline, EventLoop, Failure, Hold, HoldOwner, Reply, Request, Settled, Timers};
use sablock::engine::{Engine, Patience};
use sablock::memory::Place;
use sablock::primitives::futex::FUTEX;
use sablock::primitives::mutex::MUTEX;

const PROMPT: Duration = Duration::from_secs(20);
/// The value was another.
const REFUSED: Outcome = Outcome::Refused { found: 0 };

/// Deadlines that were asked for; a test says when they are over.
#[derive(Default, Clone)]
struct Deadlines(Arc<Mutex<Vec<Deadline>>>);

impl Timers for Deadlines {
    fn deadline(&self, deadline: Deadline, _: Instant) -> io::Result<()> {
        self.0.lock().unwrap().push(deadline);
        Ok(())
    }
    fn cancel(&self, serial: u64) {
        self.0.lock().unwrap().retain(|kept| kept.serial != serial);
    }
    fn lease(&self, _: usize, _: u64, _: Instant) {}
}

/// An engine of its own with one location, as an element of eight bytes or, where it begins, of four.
struct World {
    engine: Engine,
    deadlines: Deadlines,
    value: AtomicU64,
}

impl World {
    fn new() -> Self {
        let deadlines = Deadlines::default();
        let engine = Engine::new(1, 70_000, Patience::default(), Box::new(deadlines.clone()));
        Self { engine, deadlines, value: AtomicU64::new(0) }
    }

    fn big(&self) -> Place {
        // SAFETY: an aligned atomic that outlives all waits, which end inside the test.
        unsafe { Place::big_int64(NonNull::from(&self.value), 0) }
    }

    fn small(&self) -> Place {
        // SAFETY: as in `big`; it is aligned to 8, and so to 4.
        unsafe { Place::new(NonNull::from(&self.value).cast(), 0) }
    }

    fn wait(&self, limit: Limit) -> Outcome {
        let agent = self.engine.agents.add(0).unwrap();
        self.engine.wait(&agent, &FUTEX, self.small(), Request::NotificationWhile(0), limit, &mut || true).unwrap()
    }

    fn event_loop(&self) -> EventLoop<'_> {
        EventLoop::new(&self.engine, self.engine.agents.add(0).unwrap())
    }

    fn queue(&self, waits: &mut EventLoop<'_>, limit: Limit) -> u32 {
        match waits.wait(&FUTEX, self.small(), Request::NotificationWhile(0), limit).unwrap() {
            Reply::Pending { token, .. } => token,
            now => panic!("{now:?}"),
        }
    }

    fn notify(&self, count: usize) -> usize {
        self.engine.notify(self.small(), count)
    }

    fn until_waiting(&self, waiters: usize) {
        let start = Instant::now();
        while self.engine.waiting(self.small()) != waiters {
            assert!(start.elapsed() < PROMPT, "never came: {waiters} waiters");
            thread::yield_now();
        }
    }

    fn settled(&self, token: u32, outcome: Outcome) -> Option<Settled> {
        Some(Settled { token, place: self.small(), is_for_hold: false, outcome: Ok(outcome) })
    }
}

#[test]
fn a_wait_for_another_value_is_refused_at_once() {
    let world = World::new();
    world.value.store(u64::MAX, Ordering::SeqCst);
    let agent = world.engine.agents.add(0).unwrap();
    let wait = |location, value| {
        world
            .engine
            .wait(&agent, &FUTEX, location, Request::NotificationWhile(value), Limit::Once, &mut || true)
            .unwrap()
    };
    assert_eq!(wait(world.small(), 0), REFUSED);
    assert_eq!(wait(world.small(), -1), TimedOut, "all bits are -1");
    assert_eq!(wait(world.big(), -1), TimedOut);
    assert_eq!(wait(world.big(), i64::from(u32::MAX)), REFUSED, "all eight bytes are compared");
    assert_eq!(
        world.event_loop().wait(&FUTEX, world.big(), Request::NotificationWhile(0), Limit::Endless).unwrap(),
        Reply::Now(REFUSED)
    );
    assert_eq!(
        world.event_loop().wait(&FUTEX, world.big(), Request::NotificationWhile(-1), Limit::Once).unwrap(),
        Reply::Now(TimedOut)
    );
    assert_eq!(world.engine.waiting(world.big()), 0);
    // Though a wait of the same loop is pending there.
    let mut waits = world.event_loop();
    let pending = waits.wait(&FUTEX, world.small(), Request::NotificationWhile(-1), Limit::Endless);
    assert!(matches!(pending, Ok(Reply::Pending { .. })));
    let another = waits.wait(&FUTEX, world.small(), Request::NotificationWhile(0), Limit::Endless);
    assert_eq!(another.unwrap(), Reply::Now(REFUSED));
    waits.end();
}

#[test]
fn waiters_are_notified_in_the_order_in_which_they_came_whatever_their_kind() {
    let world = &World::new();
    let (notified, is_notified) = mpsc::channel();
    thread::scope(|scope| {
        let mut waits = world.event_loop();
        let mut tokens = Vec::new();
        for place in 0..6 {
            if place % 2 == 0 {
                tokens.push(world.queue(&mut waits, Limit::Endless));
            } else {
                let notified = notified.clone();
                scope.spawn(move || notified.send((place, world.wait(Limit::Endless))).unwrap());
            }
            world.until_waiting(place + 1);
        }
        for (round, token) in tokens.into_iter().enumerate() {
            assert_eq!(world.notify(1), 1);
            assert_eq!(waits.next_settled(), world.settled(token, Outcome::GRANTED));
            assert_eq!(waits.next_settled(), None);
            assert_eq!(world.notify(1), 1);
            assert_eq!(is_notified.recv_timeout(PROMPT).unwrap(), (2 * round + 1, Outcome::GRANTED));
        }
    });
    assert_eq!(world.notify(usize::MAX), 0);
}

#[test]
fn elements_of_both_sizes_that_begin_at_the_same_byte_have_one_queue() {
    let world = World::new();
    let mut waits = world.event_loop();
    let small = world.queue(&mut waits, Limit::Endless);
    let Reply::Pending { token: big, .. } =
        waits.wait(&FUTEX, world.big(), Request::NotificationWhile(0), Limit::Endless).unwrap()
    else {
        panic!()
    };
    assert_eq!(world.engine.notify(world.big(), 1), 1);
    assert_eq!(waits.next_settled(), world.settled(small, Outcome::GRANTED));
    assert_eq!(world.notify(1), 1);
    assert_eq!(waits.next_settled().map(|settled| settled.token), Some(big));
}

#[test]
fn a_notification_before_the_deadline_wins_whenever_its_waiter_learns_of_it() {
    let world = World::new();
    let mut waits = world.event_loop();
    let token = world.queue(&mut waits, Limit::after(PROMPT));
    assert_eq!(world.notify(1), 1);
    let deadline = world.deadlines.0.lock().unwrap()[0];
    world.engine.expire(&deadline);
    assert_eq!(waits.next_settled(), world.settled(token, Outcome::GRANTED));
    assert_eq!(waits.next_settled(), None);
    assert!(world.deadlines.0.lock().unwrap().is_empty(), "its deadline is forgotten");
}

#[test]
fn a_wait_that_timed_out_takes_no_notification() {
    let world = World::new();
    let mut waits = world.event_loop();
    let hasty = world.queue(&mut waits, Limit::after(PROMPT));
    let patient = world.queue(&mut waits, Limit::Endless);
    let deadline = world.deadlines.0.lock().unwrap()[0];
    world.engine.expire(&deadline);
    assert_eq!(world.notify(1), 1);
    assert_eq!(waits.next_settled(), world.settled(hasty, TimedOut));
    assert_eq!(waits.next_settled(), world.settled(patient, Outcome::GRANTED));
}

#[test]
fn a_cancelled_wait_takes_no_notification_and_one_that_was_notified_cannot_be_cancelled() {
    let world = World::new();
    let mut waits = world.event_loop();
    let tokens = [(); 2].map(|()| world.queue(&mut waits, Limit::Endless));
    assert!(waits.cancel(tokens[0]).is_some());
    assert_eq!(world.notify(usize::MAX), 1);
    assert!(waits.cancel(tokens[1]).is_none());
    assert_eq!(waits.next_settled(), world.settled(tokens[1], Outcome::GRANTED));
}

#[test]
fn a_thread_that_ends_passes_on_its_notification() {
    let world = World::new();
    let (mut ending, mut next) = (world.event_loop(), world.event_loop());
    world.queue(&mut ending, Limit::Endless);
    world.queue(&mut ending, Limit::Endless);
    let token = world.queue(&mut next, Limit::Endless);
    assert_eq!(world.notify(1), 1);
    assert_eq!(next.next_settled(), None);
    ending.end();
    assert_eq!(next.next_settled(), world.settled(token, Outcome::GRANTED));
}

#[test]
fn a_thread_that_ends_with_a_notification_that_its_code_never_saw_passes_it_on() {
    let world = World::new();
    let (mut ending, mut next) = (world.event_loop(), world.event_loop());
    let notified = world.queue(&mut ending, Limit::Endless);
    let token = world.queue(&mut next, Limit::Endless);
    assert_eq!(world.notify(1), 1);
    assert_eq!(ending.next_settled(), world.settled(notified, Outcome::GRANTED));
    ending.end();
    assert_eq!(next.next_settled(), world.settled(token, Outcome::GRANTED));
}

#[test]
fn a_notification_that_its_code_saw_ends_with_its_thread() {
    let world = World::new();
    let (mut ending, mut other) = (world.event_loop(), world.event_loop());
    let notified = world.queue(&mut ending, Limit::Endless);
    world.queue(&mut other, Limit::Endless);
    assert_eq!(world.notify(1), 1);
    assert_eq!(ending.next_settled(), world.settled(notified, Outcome::GRANTED));
    assert_eq!(ending.next_settled(), None, "asking again says that it was seen");
    ending.end();
    assert_eq!(other.next_settled(), None);
}

#[test]
fn the_end_of_a_thread_notifies_nobody_who_came_after_its_notification() {
    let world = World::new();
    let (mut ending, mut late) = (world.event_loop(), world.event_loop());
    world.queue(&mut ending, Limit::Endless);
    assert_eq!(world.notify(1), 1);
    let token = world.queue(&mut late, Limit::Endless);
    ending.end();
    assert_eq!(late.next_settled(), None);
    assert_eq!(world.notify(1), 1);
    assert_eq!(late.next_settled(), world.settled(token, Outcome::GRANTED));
}

#[test]
fn the_end_of_a_thread_notifies_nobody_who_came_after_its_notification_and_was_left_by_a_later_one() {
    let world = World::new();
    let (mut ending, mut late) = (world.event_loop(), world.event_loop());
    world.queue(&mut ending, Limit::Endless);
    assert_eq!(world.notify(1), 1);
    let tokens = [(); 2].map(|()| world.queue(&mut late, Limit::Endless));
    assert_eq!(world.notify(1), 1);
    ending.end();
    assert_eq!(late.next_settled(), world.settled(tokens[0], Outcome::GRANTED));
    assert_eq!(late.next_settled(), None);
}

#[test]
fn the_end_of_a_thread_passes_on_through_those_who_were_notified_later() {
    let world = World::new();
    let (mut ending, mut second, mut third) = (world.event_loop(), world.event_loop(), world.event_loop());
    world.queue(&mut ending, Limit::Endless);
    let next = world.queue(&mut second, Limit::Endless);
    assert_eq!(world.notify(1), 1);
    let last = world.queue(&mut third, Limit::Endless);
    assert_eq!(world.notify(1), 1);
    assert_eq!(second.next_settled(), world.settled(next, Outcome::GRANTED));
    // Without the thread that ended, the first notification would have been the second's, and the second one the third's.
    ending.end();
    assert_eq!(third.next_settled(), world.settled(last, Outcome::GRANTED));
}

#[test]
fn a_blocked_thread_that_is_interrupted_passes_on_its_notification() {
    let world = &World::new();
    let (paused, is_paused) = mpsc::channel();
    let (go_on, goes_on) = mpsc::channel::<()>();
    thread::scope(|scope| {
        let ending = scope.spawn(move || {
            let agent = world.engine.agents.add(0).unwrap();
            let mut pause = || {
                paused.send(()).unwrap();
                goes_on.recv().unwrap();
                false
            };
            world.engine.wait(&agent, &FUTEX, world.small(), Request::NotificationWhile(0), Limit::Endless, &mut pause)
        });
        is_paused.recv_timeout(PROMPT).unwrap();
        let next = scope.spawn(|| world.wait(Limit::after(PROMPT)));
        world.until_waiting(2);
        assert_eq!(world.notify(1), 1, "it is away, and first in the queue all the same");
        world.until_waiting(1);
        go_on.send(()).unwrap();
        assert!(ending.join().unwrap().is_err());
        assert_eq!(next.join().unwrap(), Outcome::GRANTED);
    });
}

/// The pauses of a blocked thread: in the first another queues behind it, and it is notified; the end of its thread begins
/// after that.
fn notified_then_ended(world: &World, mut queue: impl FnMut()) -> impl FnMut() -> bool {
    let mut pauses = 0;
    move || {
        pauses += 1;
        if pauses == 1 {
            queue();
            assert_eq!(world.notify(1), 1);
        }
        pauses == 1
    }
}

#[test]
fn a_blocked_thread_whose_end_begins_before_it_returns_passes_on_what_it_was_told() {
    let world = World::new();
    let doomed = world.engine.agents.add(0).unwrap();
    let mut heir = world.event_loop();
    let mut token = None;
    let mut pause = notified_then_ended(&world, || token = Some(world.queue(&mut heir, Limit::Endless)));
    let outcome =
        world.engine.wait(&doomed, &FUTEX, world.small(), Request::NotificationWhile(0), Limit::Endless, &mut pause);
    assert!(matches!(outcome, Err(Failure::Interrupted)), "{outcome:?}");
    drop(pause);
    assert_eq!(heir.next_settled(), world.settled(token.unwrap(), Outcome::GRANTED));
}

#[test]
fn a_wait_with_a_mutex_whose_thread_is_to_end_gives_back_both_unmarked() {
    let world = World::new();
    let word = AtomicU32::new(0);
    // SAFETY: an aligned atomic that outlives all waits, which end inside the test.
    let mutex = unsafe { Place::new(NonNull::from(&word), 0) };
    let doomed = world.engine.agents.add(0).unwrap();
    let hold = Hold::exclusive(HoldOwner::Thread);
    world.engine.wait(&doomed, &MUTEX, mutex, Request::Hold(hold), Limit::Endless, &mut || true).unwrap();
    let mut heir = world.event_loop();
    let mut token = None;
    let mut pause = notified_then_ended(&world, || token = Some(world.queue(&mut heir, Limit::Endless)));
    let lock = ConditionLock { primitive: &MUTEX, place: mutex, hold };
    let outcome = lock.wait(&world.engine, &doomed, world.small(), Limit::Endless, &mut pause);
    assert!(matches!(outcome, Err(ConditionFailure::NotLocked(Failure::Interrupted))), "{outcome:?}");
    drop(pause);
    assert_eq!(heir.next_settled(), world.settled(token.unwrap(), Outcome::GRANTED));
    assert_eq!(word.load(Ordering::SeqCst), 0, "free, and not marked");
}

#[test]
fn a_blocked_wait_ends_at_its_deadline_and_not_before() {
    let world = World::new();
    let start = Instant::now();
    let time = Duration::from_millis(60);
    assert_eq!(world.wait(Limit::after(time)), TimedOut);
    assert!(start.elapsed() >= time);
    assert_eq!(world.engine.waiting(world.small()), 0);
}

#[test]
fn two_ends_pass_on_no_more_than_was_given() {
    let world = World::new();
    let [mut first, mut second, mut third, mut fourth] = [(); 4].map(|()| world.event_loop());
    let wait = |waits: &mut EventLoop<'_>| {
        waits.wait(&FUTEX, world.small(), Request::NotificationWhile(0), Limit::Endless).map(drop).unwrap()
    };
    wait(&mut first);
    wait(&mut second);
    assert_eq!(world.engine.notify(world.small(), 1), 1);
    wait(&mut third);
    wait(&mut fourth);
    assert_eq!(world.engine.notify(world.small(), 1), 1);
    first.end();
    assert!(
        third.next_settled().is_some(),
        "the second could have had the first notification, and the third the second"
    );
    second.end();
    assert_eq!(
        fourth.next_settled(),
        None,
        "had the first two never waited, the first notification had reached nobody"
    );
}

#[test]
fn the_last_of_those_notified_at_once_passes_its_notification_on_too() {
    let world = World::new();
    let [mut first, mut second, mut third] = [(); 3].map(|()| world.event_loop());
    for waits in [&mut first, &mut second, &mut third] {
        waits.wait(&FUTEX, world.small(), Request::NotificationWhile(0), Limit::Endless).map(drop).unwrap();
    }
    assert_eq!(world.engine.notify(world.small(), 2), 2);
    assert_eq!(third.next_settled(), None);
    second.end();
    assert!(third.next_settled().is_some());
    drop(first);
}
