//! Threads that block in a circle, on real threads: the models are in `loom/deadlocks.rs`.
#![cfg(not(loom))]

mod common;

use common::Locks as _;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use common::{ACQUIRED, PROMPT, READ, WRITE, World, pend, pending, slot};
use sablock::agents::{Agent, AgentId};
use sablock::clients::condition::ConditionLock;
use sablock::clients::{ClientLoop, Clients, LockSet, Names};
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

/// Words of their own, in one row, so that a set takes them in this order.
fn row() -> [Place; 8] {
    let words: &'static [AtomicU32; 8] = Box::leak(Box::default());
    // SAFETY: aligned, zero, and never freed.
    [0, 1, 2, 3, 4, 5, 6, 7].map(|index| unsafe { Place::new((&words[index]).into(), 4 * index) })
}

/// A set that waits for the last of these, which somebody holds, and has the others until its time is over.
fn holds_for_a_time<const N: usize>(waits: &mut ClientLoop<'_>, parts: [(&'static dyn Primitive, Place, Hold); N]) {
    let reply = waits.lock_all(&mut LockSet::new(parts), Limit::after(PROMPT));
    assert!(matches!(reply, Ok(Reply::Pending { .. })), "{reply:?}");
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
    type Nested = fn(&World, &Arc<Agent>, [Place; 3]);
    fn limit() -> Limit {
        Limit::after(Duration::from_millis(1))
    }
    let lock: Nested = |world, agent, [elsewhere, ..]| {
        let waited = world.engine.lock(agent, elsewhere, HoldOwner::Thread, limit(), &mut || true);
        assert_eq!(waited.unwrap(), Outcome::TimedOut);
    };
    let condition: Nested = |world, agent, [_, mutex, condition]| {
        let lock = ConditionLock { primitive: &MUTEX, place: mutex, hold: Hold::exclusive(HoldOwner::Thread) };
        world.lock_at(agent, lock.place, &mut || true).unwrap();
        let waited = lock.wait(&world.engine, agent, condition, limit(), &mut || true);
        assert!(matches!(waited, Ok((false, ACQUIRED))), "{waited:?}");
        world.unlock_at(agent, lock.place);
    };
    for wait in [lock, condition] {
        let world = &World::with_slices(false);
        let [first, second] = &[0, 1].map(|thread| world.agent(thread));
        let [a, b, elsewhere, own, condition, ..] = row();
        for (agent, place) in [(first, a), (second, b), (second, elsewhere)] {
            world.lock_at(agent, place, &mut || true).unwrap();
        }
        let has_nested = &AtomicBool::new(false);
        thread::scope(|scope| {
            let blocked = scope.spawn(move || {
                let mut is_patient = some_pauses();
                let mut pause = || {
                    // A debugger evaluates a call of its own.
                    wait(world, first, [elsewhere, own, condition]);
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
        // A wait of the same loop that has nothing of it comes first.
        let mut single = LockSet::new([(&MUTEX as &'static dyn Primitive, b, hold)]);
        let tokens = [&mut single, &mut set].map(|set| {
            let Ok(Reply::Pending { token, .. }) = waits.lock_all(set, limit) else { panic!() };
            token
        });
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
                assert!(tokens.map(|token| waits.cancel(token)).iter().all(Option::is_some));
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

#[test]
fn a_wait_that_has_a_time_limit_closes_no_circle() {
    let world = &World::with_slices(false);
    let [first, second] = &[0, 1].map(|thread| world.agent(thread));
    let [a, b] = [world.place(), world.other(0)];
    world.lock_at(first, a, &mut || true).unwrap();
    world.lock_at(second, b, &mut || true).unwrap();
    let has_looked = &AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(move || {
            // In place of the time, which is long, so that the other surely looks before.
            let is_over = &mut || !has_looked.load(Ordering::SeqCst);
            let gives_up = world.engine.lock(first, b, HoldOwner::Thread, Limit::after(PROMPT), is_over);
            assert!(matches!(gives_up, Err(Failure::Interrupted)), "{gives_up:?}");
            world.unlock_at(first, a);
        });
        world.until("the first waits", |world| !world.engine.inspect(&MUTEX, b).waiters.is_empty());
        let mut is_patient = some_pauses();
        let got = world.lock_at(second, a, &mut || {
            has_looked.store(true, Ordering::SeqCst);
            is_patient()
        });
        has_looked.store(true, Ordering::SeqCst);
        assert!(matches!(got, Ok(ACQUIRED)), "{got:?}");
    });
    world.unlock_at(second, a);
    world.unlock_at(second, b);
}

#[test]
fn what_a_signal_may_abort_is_in_no_circle_while_its_thread_is_blocked_for_a_notification() {
    type Waits = fn(&World, &Arc<Agent>);
    // Whoever notifies the thread lets its loop turn.
    let ways: [(&str, Waits); 2] = [
        ("for a notification", |world, agent| {
            let wait = Request::Notification;
            let waited = world.engine.wait(agent, &FUTEX, world.other(0), wait, Limit::Endless, &mut || true);
            assert!(matches!(waited, Ok(ACQUIRED)), "{waited:?}");
        }),
        ("for a condition", |world, agent| {
            let hold = Hold::exclusive(HoldOwner::Thread);
            let lock = ConditionLock { primitive: &MUTEX, place: world.other(1), hold };
            world.lock_at(agent, lock.place, &mut || true).unwrap();
            let waited = lock.wait(&world.engine, agent, world.other(0), Limit::Endless, &mut Pausing(&mut || true));
            assert!(matches!(waited, Ok((true, ACQUIRED))), "{waited:?}");
            world.unlock_at(agent, lock.place);
        }),
    ];
    for (way, wait) in ways {
        let world = &World::with_slices(false);
        let mut waits = world.event_loop();
        let (reader, agent) = (world.agent(1), Arc::clone(waits.agent()));
        world.engine.add_slot(&RWLOCK, world.place(), slot(&reader).0);
        assert_eq!(world.enter(&reader, READ, Limit::Once), ACQUIRED);
        let token = pending(waits.wait(&RWLOCK, world.place(), WRITE, Limit::Revocable).unwrap());
        thread::scope(|scope| {
            let blocked = scope.spawn(|| wait(world, &agent));
            world.until(way, |world| agent.is_blocked() && world.engine.waiting(world.other(0)) == 1);
            let blocked = &mut Some(blocked);
            let mut is_patient = some_pauses();
            let mut pause = || {
                if let Some(blocked) = blocked.take() {
                    assert_eq!(world.engine.notify(world.other(0), 1), 1);
                    blocked.join().unwrap();
                    assert!(!agent.is_blocked() && agent.blockage().is_none(), "{way}: blocked no more");
                    assert!(waits.cancel(token).is_some());
                }
                is_patient()
            };
            let limit = Limit::Endless;
            let again = world.engine.wait(&reader, &RWLOCK, world.place(), READ, limit, &mut Pausing(&mut pause));
            pause();
            assert!(matches!(again, Ok(ACQUIRED)), "{way}: {again:?}");
        });
    }
}

#[test]
fn what_a_reader_keeps_is_in_a_deadlock_though_something_beside_it_goes_back() {
    // Whether it reads beside what goes back, and whether that is its own.
    for (keeps, is_its_own) in [(true, false), (true, true), (false, true)] {
        let world = World::with_slices(false);
        let names = Names::new(&world.engine);
        let [lock, _, mutex, ..] = row();
        let [me, another, holder] = [0, 1, 2].map(|thread| world.agent(thread));
        world.lock_at(&holder, mutex, &mut || true).unwrap();
        for agent in [&me, &another] {
            world.engine.add_slot(&RWLOCK, lock, slot(agent).0);
        }
        if keeps {
            let read = world.engine.wait(&me, &RWLOCK, lock, READ, Limit::Once, &mut || true);
            assert!(matches!(read, Ok(ACQUIRED)));
        }
        let agent = if is_its_own { &me } else { &another };
        let mut waits = EventLoop::with_clients(&world.engine, Arc::clone(agent), Clients::new(&names));
        let [read, write] = [Hold::shared(HoldOwner::Guard), Hold::exclusive(HoldOwner::Guard)];
        holds_for_a_time(&mut waits, [(&RWLOCK, lock, read), (&MUTEX, mutex, write)]);
        let mut is_patient = some_pauses();
        let found = world.engine.wait(&me, &RWLOCK, lock, WRITE, Limit::Endless, &mut || {
            world.clock.expire(&world.engine);
            is_patient()
        });
        if keeps {
            assert!(matches!(&found, Err(Failure::Deadlock(cycle)) if cycle.len() == 1), "{is_its_own}: {found:?}");
        } else {
            assert!(matches!(found, Ok(ACQUIRED)), "{found:?}");
        }
        waits.end();
    }
}

#[test]
fn a_circle_of_others_that_the_clock_ends_is_walked_once() {
    let world = &World::with_slices(false);
    let names = Names::new(&world.engine);
    let [a, b, ..] = row();
    let [me, other, third] = &[0, 1, 2].map(|thread| world.agent(thread));
    world.lock_at(other, b, &mut || true).unwrap();
    let mut waits = EventLoop::with_clients(&world.engine, Arc::clone(me), Clients::new(&names));
    let hold = Hold::exclusive(HoldOwner::Guard);
    holds_for_a_time(&mut waits, [(&MUTEX, a, hold), (&MUTEX, b, hold)]);
    let asleep = &AtomicUsize::new(0);
    thread::scope(|scope| {
        for (agent, wanted, held) in [(other, a, Some(b)), (me, b, None)] {
            scope.spawn(move || {
                let (mut is_patient, mut is_first) = (some_pauses(), true);
                let mut pause = || {
                    asleep.fetch_add(usize::from(std::mem::take(&mut is_first)), Ordering::SeqCst);
                    is_patient()
                };
                assert_eq!(world.lock_at(agent, wanted, &mut pause).unwrap(), ACQUIRED);
                world.unlock_at(agent, wanted);
                held.into_iter().for_each(|held| world.unlock_at(agent, held));
            });
            world.until("it waits, and has found no deadlock", |world| {
                !world.engine.inspect(&MUTEX, wanted).waiters.is_empty()
            });
        }
        world.until("both sleep", |_| asleep.load(Ordering::SeqCst) == 2);
        let mut is_patient = some_pauses();
        let got = world.lock_at(third, a, &mut || {
            world.clock.expire(&world.engine);
            is_patient()
        });
        assert!(matches!(got, Ok(ACQUIRED)), "{got:?}");
        world.unlock_at(third, a);
    });
    waits.end();
}

#[test]
fn a_circle_is_told_without_those_who_wait_beside_it() {
    for is_given_back in [false, true] {
        let world = &World::with_slices(false);
        let names = Names::new(&world.engine);
        let [lock, _, mine, elsewhere, last, ..] = row();
        let [me, beside, inside, idle] = &[0, 1, 2, 3].map(|thread| world.agent(thread));
        for reader in [beside, inside] {
            world.engine.add_slot(&RWLOCK, lock, slot(reader).0);
            let read = world.engine.wait(reader, &RWLOCK, lock, READ, Limit::Once, &mut || true);
            assert!(matches!(read, Ok(ACQUIRED)));
        }
        world.lock_at(me, mine, &mut || true).unwrap();
        world.lock_at(idle, last, &mut || true).unwrap();
        let mut waits = EventLoop::with_clients(&world.engine, Arc::clone(me), Clients::new(&names));
        if is_given_back {
            // That reader waits for this thread too, until the clock gives back what it waits for.
            let hold = Hold::exclusive(HoldOwner::Guard);
            holds_for_a_time(&mut waits, [(&MUTEX, elsewhere, hold), (&MUTEX, last, hold)]);
        } else {
            world.lock_at(idle, elsewhere, &mut || true).unwrap();
        }
        thread::scope(|scope| {
            for (agent, wanted) in [(beside, elsewhere), (inside, mine)] {
                scope.spawn(move || {
                    assert_eq!(world.lock_at(agent, wanted, &mut some_pauses()).unwrap(), ACQUIRED);
                    world.unlock_at(agent, wanted);
                });
                world.until("it waits", |world| !world.engine.inspect(&MUTEX, wanted).waiters.is_empty());
                world.until("it is blocked", |_| agent.blockage().is_some());
            }
            let write = |pause: &mut dyn FnMut() -> bool| {
                world.engine.wait(me, &RWLOCK, lock, WRITE, Limit::Endless, &mut Pausing(pause))
            };
            let found = write(&mut some_pauses());
            let hops = [(0, lock, "RwLock"), (2, mine, "Mutex")].map(|(thread, Place { byte_offset, .. }, kind)| Hop {
                thread,
                byte_offset,
                kind,
            });
            assert!(matches!(&found, Err(Failure::Deadlock(cycle)) if *cycle == hops), "{is_given_back}: {found:?}");
            world.unlock_at(me, mine);
            if is_given_back {
                world.clock.expire(&world.engine);
            } else {
                world.unlock_at(idle, elsewhere);
            }
        });
        waits.end();
    }
}

#[test]
fn who_locks_what_it_waits_for_in_a_pause_waits_for_itself() {
    let world = World::with_slices(false);
    let [holder, me] = [0, 1].map(|thread| world.agent(thread));
    world.lock_at(&holder, world.place(), &mut || true).unwrap();
    let (mut found, mut pauses) = (None, 0);
    let waited = world.lock_at(&me, world.place(), &mut || {
        assert_eq!(world.engine.find_cycle_in_pause(&me), None, "another holds it");
        // A debugger evaluates a `tryLock()`.
        world.unlock_at(&holder, world.place());
        assert_eq!(world.lock(&me, Limit::Once), ACQUIRED);
        found = world.engine.find_cycle_in_pause(&me);
        pauses += 1;
        false
    });
    assert!(matches!(waited, Err(Failure::Interrupted)), "{waited:?}");
    let hops = vec![Hop { thread: 1, byte_offset: 0, kind: "Mutex" }];
    assert_eq!((found, pauses, world.engine.stats().deadlocks), (Some(hops), 1, 1));
    world.unlock_at(&me, world.place());
}

#[test]
fn a_writer_that_is_gone_is_not_seen_in_a_later_wait_of_its_number() {
    let world = &World::with_slices(false);
    let me = world.agent(0);
    world.engine.add_slot(&RWLOCK, world.place(), slot(&me).0);
    assert_eq!(world.enter(&me, READ, Limit::Once), ACQUIRED);
    let mut waits = world.event_loop();
    let mut write = |limit| pending(waits.wait(&RWLOCK, world.place(), WRITE, limit).unwrap());
    let (timed, gone) = (Limit::after(PROMPT), Limit::Endless);
    write(timed);
    let token = write(gone);
    assert!(waits.cancel(token).is_some());
    pending(waits.wait(&RWLOCK, world.place(), WRITE, timed).unwrap());
    // What is ahead of it has a time limit only.
    let mut is_patient = some_pauses();
    let again = world.engine.wait(&me, &RWLOCK, world.place(), READ, Limit::Endless, &mut || {
        world.clock.expire(&world.engine);
        is_patient()
    });
    assert!(matches!(again, Ok(ACQUIRED)), "{again:?}");
    waits.end();
}

#[test]
fn who_waits_for_what_it_holds_learns_which_lock_that_is() {
    let world = World::new(false);
    let me = world.agent(7);
    let place = world.other(1);
    world.lock_at(&me, place, &mut || true).unwrap();
    let Err(Failure::Deadlock(hops)) = world.lock_at(&me, place, &mut || true) else { panic!("it waits for itself") };
    assert_eq!(hops, [Hop { thread: 7, byte_offset: place.byte_offset, kind: "Mutex" }]);
    world.unlock_at(&me, place);
}

#[test]
fn who_locks_in_a_pause_what_it_waits_for_for_a_time_is_in_no_deadlock() {
    let world = World::with_slices(false);
    let [holder, me] = [0, 1].map(|thread| world.agent(thread));
    let place = world.place();
    world.lock_at(&holder, place, &mut || true).unwrap();
    let mut found = Vec::new();
    let waited = world.engine.lock(&me, place, HoldOwner::Thread, Limit::after(PROMPT), &mut || {
        world.unlock_at(&holder, place);
        assert_eq!(world.lock(&me, Limit::Once), ACQUIRED);
        found.push(world.engine.find_cycle_in_pause(&me));
        false
    });
    assert!(matches!(waited, Err(Failure::Interrupted)), "{waited:?}");
    assert_eq!((found, world.engine.stats().deadlocks), (vec![None], 0));
    world.unlock_at(&me, place);
}
