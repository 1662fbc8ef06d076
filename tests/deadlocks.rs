//! Threads that block in a circle, on real threads: the models are in `loom/deadlocks.rs`.
#![cfg(not(loom))]

mod common;

use common::Locks as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use common::{ACQUIRED, PROMPT, READ, WRITE, World, pend, pending, slot};
use sablock::agents::{Agent, AgentId};
use sablock::clients::{Clients, LockSet, Names};
use sablock::engine::{
    Caller, EventLoop, Expiry, Failure, Hold, HoldOwner, Hop, Limit, Outcome, Primitive, Reply, Request, TakesBack,
};
use sablock::memory::Place;
use sablock::primitives::futex::FUTEX;
use sablock::primitives::mutex::MUTEX;
use sablock::primitives::once::ONCE;
use sablock::primitives::rwlock::RWLOCK;

/// Runs code between two slices, and goes on once it is let in.
struct Pausing<'p>(&'p mut dyn FnMut() -> bool);

impl Caller for Pausing<'_> {
    fn pause(&mut self) -> bool {
        (self.0)()
    }

    fn goes_on(&mut self) -> bool {
        true
    }
}

impl World {
    /// Locks for as long as it takes; a circle that is not found shows as an interruption.
    fn lock_at(&self, agent: &Arc<Agent>, place: Place, pause: &mut dyn FnMut() -> bool) -> Result<Outcome, Failure> {
        self.engine.lock(agent, place, HoldOwner::Thread, Limit::Endless, &mut Pausing(pause))
    }

    fn unlock_at(&self, agent: &Arc<Agent>, place: Place) {
        assert_eq!(self.engine.unlock(agent, place, HoldOwner::Thread), Ok(true));
    }
}

/// Patient for some seconds.
fn some_pauses() -> impl FnMut() -> bool {
    let mut left = 100;
    move || {
        left -= 1;
        left > 0
    }
}

#[test]
fn a_thread_that_waited_for_something_else_during_a_pause_is_blocked_as_before() {
    let world = &World::with_slices(false);
    let [first, second] = &[0, 1].map(|thread| world.agent(thread));
    let [a, b, elsewhere] = [world.place(), world.other(0), world.other(1)];
    for (agent, place) in [(first, a), (second, b), (second, elsewhere)] {
        world.lock_at(agent, place, &mut || true).unwrap();
    }
    let has_nested = &AtomicBool::new(false);
    thread::scope(|scope| {
        let blocked = scope.spawn(move || {
            let mut is_patient = some_pauses();
            let mut pause = || {
                // A debugger evaluates a `lock()` of its own.
                let limit = Limit::after(Duration::from_millis(1));
                let nested = world.engine.lock(first, elsewhere, HoldOwner::Thread, limit, &mut || true).unwrap();
                assert_eq!(nested, Outcome::TimedOut);
                has_nested.store(true, Ordering::SeqCst);
                is_patient()
            };
            assert_eq!(world.lock_at(first, b, &mut pause).unwrap(), ACQUIRED);
            world.unlock_at(first, b);
        });
        world.until("a wait in a pause", |_| has_nested.load(Ordering::SeqCst));
        let found = world.lock_at(second, a, &mut some_pauses());
        let hops =
            [(1, a), (0, b)].map(|(thread, place)| Hop { thread, byte_offset: place.byte_offset, kind: "Mutex" });
        assert!(matches!(&found, Err(Failure::Deadlock(cycle)) if *cycle == hops), "{found:?}");
        world.unlock_at(second, b);
        blocked.join().unwrap();
        // Not before: the last pause may still wait for it.
        world.unlock_at(second, elsewhere);
    });
}

#[test]
fn a_thread_that_waits_for_another_environment_of_its_own_thread_waits_for_ever() {
    let world = World::new(false);
    let [holder, beside] = [0, 1].map(|thread| world.engine.agents.add_on(thread, 1).unwrap());
    world.lock(&holder, Limit::Once);
    let found = world.lock_at(&beside, world.place(), &mut some_pauses());
    let hops = [Hop { thread: 1, byte_offset: 0, kind: "Mutex" }];
    assert!(matches!(&found, Err(Failure::Deadlock(cycle)) if *cycle == hops), "{found:?}");
    assert_eq!(world.engine.stats().deadlocks, 1);
}

#[test]
fn what_a_thread_is_granted_during_a_pause_is_no_deadlock() {
    let world = World::with_slices(false);
    let [runner, next] = [0, 1].map(|thread| world.agent(thread));
    let hold = Hold::exclusive(HoldOwner::Thread);
    let run = Request::Hold(hold);
    let wait = |agent, caller: &mut dyn Caller| {
        world.engine.wait(agent, &ONCE, world.place(), run, Limit::Endless, caller).unwrap()
    };
    assert_eq!(wait(&runner, &mut Pausing(&mut || true)), ACQUIRED);
    let mut waits = world.event_loop();
    let mut is_granted = false;
    let mut pause = || {
        if !is_granted {
            // Somebody else waits, so that there is a queue to look at.
            pend(&mut waits, &world, &ONCE, run);
            assert_eq!(world.engine.release(&runner, &ONCE, world.place(), hold), Ok(true));
            is_granted = true;
        }
        world.engine.find_cycle_in_pause(&next).is_none()
    };
    assert_eq!(wait(&next, &mut Pausing(&mut pause)), ACQUIRED);
    assert!(is_granted);
}

#[test]
fn what_the_clock_gives_back_is_in_no_deadlock() {
    for is_timed in [true, false] {
        let world = &World::with_slices(false);
        let names = Names::new(&world.engine);
        let [me, other] = &[0, 1].map(|thread| world.agent(thread));
        let [a, b] = [world.place(), world.other(0)];
        world.lock_at(other, b, &mut || true).unwrap();
        let has_looked = &AtomicBool::new(false);
        // It has the one, and waits for the other.
        let mut waits = EventLoop::with_clients(&world.engine, me.clone(), Clients::new(&names));
        let hold = Hold::exclusive(HoldOwner::Guard);
        let mut set = LockSet::new([a, b].map(|place| (&MUTEX as &'static dyn Primitive, place, hold)));
        let limit = if is_timed { Limit::after(PROMPT) } else { Limit::Revocable };
        let Ok(Reply::Pending { token, .. }) = waits.lock_all(&mut set, limit) else { panic!() };
        thread::scope(|scope| {
            let blocked = scope.spawn(move || {
                let mut is_patient = some_pauses();
                let mut pause = || {
                    has_looked.store(true, Ordering::SeqCst);
                    is_patient()
                };
                assert_eq!(world.lock_at(other, a, &mut pause).unwrap(), ACQUIRED);
                world.unlock_at(other, a);
                world.unlock_at(other, b);
            });
            world.until("the other waits, and has looked for a cycle", |_| has_looked.load(Ordering::SeqCst));
            let mut is_patient = some_pauses();
            let got = world.lock_at(me, b, &mut || {
                world.clock.expire(&world.engine);
                is_patient()
            });
            if is_timed {
                assert!(matches!(got, Ok(ACQUIRED)), "{got:?}");
                world.unlock_at(me, b);
            } else {
                assert!(matches!(&got, Err(Failure::Deadlock(cycle)) if cycle.len() == 2), "{got:?}");
                assert!(waits.cancel(token).is_some());
            }
            blocked.join().unwrap();
        });
        waits.end();
    }
}

/// Gives back the word at the first place, but is slow.
struct Slow {
    agent: AgentId,
    place: Mutex<Place>,
    has_begun: Arc<AtomicBool>,
    /// The thread that looks has not waited for this to be over.
    is_overtaken: Arc<AtomicBool>,
}

impl Expiry for Slow {
    fn expired(&self, engine: &dyn TakesBack) {
        self.has_begun.store(true, Ordering::SeqCst);
        let end = Instant::now() + Duration::from_millis(200);
        while Instant::now() < end && !self.is_overtaken.load(Ordering::SeqCst) {
            thread::yield_now();
        }
        engine.take_back(self.agent, &MUTEX, *self.place.lock().unwrap(), Hold::exclusive(HoldOwner::Thread), None);
    }

    fn gives_back(&self, address: usize) -> bool {
        address == self.place.lock().unwrap().address()
    }
}

#[test]
fn no_search_comes_between_the_end_of_a_wait_and_what_goes_back_with_it() {
    let world = &World::with_slices(false);
    let [me, other] = &[0, 1].map(|thread| world.agent(thread));
    let [a, b] = [world.place(), world.other(0)];
    let [has_begun, is_overtaken] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
    world.lock_at(me, a, &mut || true).unwrap();
    world.lock_at(other, b, &mut || true).unwrap();
    let mut waits = EventLoop::new(&world.engine, me.clone());
    let limit = Limit::after(PROMPT);
    let token = pending(waits.wait(&FUTEX, world.other(1), Request::Notification, limit).unwrap());
    let [begun, overtaken] = [&has_begun, &is_overtaken].map(Arc::clone);
    waits.expires_with(
        token,
        Arc::new(Slow { agent: me.id, place: Mutex::new(a), has_begun: begun, is_overtaken: overtaken }),
    );
    thread::scope(|scope| {
        scope.spawn(move || {
            assert_eq!(world.lock_at(other, a, &mut some_pauses()).unwrap(), ACQUIRED);
            world.unlock_at(other, a);
            world.unlock_at(other, b);
        });
        world.until_queued(1);
        scope.spawn(|| world.clock.expire(&world.engine));
        world.until("the clock ends the wait", |_| has_begun.load(Ordering::SeqCst));
        let got = world.lock_at(me, b, &mut some_pauses());
        is_overtaken.store(true, Ordering::SeqCst);
        assert!(matches!(got, Ok(ACQUIRED)), "{got:?}");
        world.unlock_at(me, b);
    });
    waits.end();
}

#[test]
fn a_writer_that_waits_is_seen_though_a_later_one_that_was_noted_last_is_gone() {
    type Leaves = fn(EventLoop<'_>, u32);
    let ways: [(&str, Leaves); 2] = [
        ("ended", |waits, _| waits.end()),
        ("took back", |mut waits, token| {
            waits.cancel(token);
        }),
    ];
    for (way, leaves) in ways {
        let world = &World::with_slices(false);
        let me = world.agent(0);
        world.engine.add_slot(&RWLOCK, world.place(), slot(&me).0);
        assert_eq!(world.enter(&me, READ, Limit::Once), ACQUIRED);
        let [mut first, mut last] = [(); 2].map(|()| world.event_loop());
        pend(&mut first, world, &RWLOCK, WRITE);
        let token = pend(&mut last, world, &RWLOCK, WRITE);
        leaves(last, token);
        let again =
            world.engine.wait(&me, &RWLOCK, world.place(), READ, Limit::Endless, &mut Pausing(&mut some_pauses()));
        assert!(matches!(again, Err(Failure::Deadlock(_))), "{way}: {again:?}");
    }
}
