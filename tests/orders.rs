//! Strict order, grants in batches, and (in `register`) the register of holds, step by step.
#![cfg(not(loom))]

mod common;
#[path = "orders/register.rs"]
mod register;

use common::Locks as _;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;

use common::{PROMPT, World, pend, pending};
use sablock::agents::Agent;
use sablock::engine::{Change, Corrupt, Failure, Hold, HoldOwner, Limit, Outcome, Primitive, Request, Settled};
use sablock::primitives::event::{AUTO_RESET_EVENT, MANUAL_RESET_EVENT};
use sablock::primitives::latch::LATCH;
use sablock::primitives::mutex::ABANDONED;
use sablock::primitives::once::{DONE, ONCE};
use sablock::primitives::semaphore::FAIR_SEMAPHORE;

const GRANTED: Outcome = Outcome::GRANTED;
const RUN: Request = Request::Hold(Hold::exclusive(HoldOwner::Thread));

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
        self.engine.wait(agent, &FAIR_SEMAPHORE, self.place(), permits(count), limit, &mut || true).unwrap()
    }

    fn release(&self, agent: &Arc<Agent>, count: u32) {
        assert!(self.engine.release(agent, &FAIR_SEMAPHORE, self.place(), Hold::permits(count, 2)).unwrap());
    }

    fn taken(&self) -> u32 {
        self.words[0].load(Ordering::SeqCst)
    }
}

fn settled(world: &World, token: u32) -> Option<Settled> {
    world.settled(token, GRANTED)
}

/// Changes the count of a latch; returns what is left.
fn add(world: &World, agent: &Arc<Agent>, count: i32) -> Result<Option<u32>, Corrupt> {
    let state = world.engine.change(agent, &LATCH, world.place(), Change::Add { count, of: 0 })?;
    Ok(state.map(|state| LATCH.found(state)[0]))
}

/// Says that what the agent has run is done.
fn finish(world: &World, agent: &Arc<Agent>) -> Result<bool, Corrupt> {
    Ok(world.engine.change(agent, &ONCE, world.place(), Change::Finish)?.is_some())
}

#[test]
fn a_large_request_at_the_head_is_never_overtaken_by_small_ones() {
    let world = &World::new(false);
    let [holder, newcomer] = [0, 1].map(|thread| world.agent(thread));
    assert_eq!(world.acquire(&holder, 2, Limit::Once), GRANTED);
    let mut large = world.event_loop();
    let mut small = world.event_loop();
    let first = pend(&mut large, world, &FAIR_SEMAPHORE, permits(2));
    let second = pend(&mut small, world, &FAIR_SEMAPHORE, permits(1));
    world.release(&holder, 1);
    assert_eq!((large.next_settled(), small.next_settled()), (None, None));
    assert_eq!(world.acquire(&newcomer, 1, Limit::Once), Outcome::TimedOut, "somebody waits");
    world.release(&holder, 1);
    assert_eq!(small.next_settled(), None);
    assert_eq!(large.next_settled(), settled(world, first));
    let agent = Arc::clone(large.agent());
    world.release(&agent, 2);
    assert_eq!(small.next_settled(), settled(world, second));
}

#[test]
fn permits_go_in_batches_to_threads_and_loops_in_the_order_of_the_queue() {
    let (world, holder) = &World::exhausted();
    let mut waits = world.event_loop();
    let first = pend(&mut waits, world, &FAIR_SEMAPHORE, permits(1));
    thread::scope(|scope| {
        scope.spawn(|| assert_eq!(world.acquire(&world.agent(1), 1, Limit::after(PROMPT)), GRANTED));
        world.until_waiting(&FAIR_SEMAPHORE, 2);
        let third = pend(&mut waits, world, &FAIR_SEMAPHORE, permits(1));
        world.release(holder, 2);
        world.until_waiting(&FAIR_SEMAPHORE, 1);
        assert_eq!(waits.next_settled(), settled(world, first));
        assert_eq!(waits.next_settled(), None, "{third} waits on");
    });
}

#[test]
fn a_grant_to_a_loop_stands_until_its_deadline() {
    let (world, holder) = World::exhausted();
    let mut waits = world.event_loop();
    let limit = Limit::after(PROMPT);
    let token = pending(waits.wait(&FAIR_SEMAPHORE, world.place(), permits(2), limit).unwrap());
    world.release(&holder, 2);
    assert_eq!(world.taken(), 2, "it shows as held");
    assert_eq!(waits.cancel(token), None, "too late");
    assert_eq!(world.clock.deadlines(), 1, "its loop has not come for it");
    world.clock.expire(&world.engine);
    assert_eq!(world.taken(), 0);
    assert_eq!(waits.next_settled(), world.settled(token, Outcome::TimedOut));
    assert_eq!(waits.next_settled(), None, "it is over once");
}

#[test]
fn a_grant_to_a_loop_that_ends_before_it_knows_passes_on() {
    let (world, holder) = World::exhausted();
    let mut ending = world.event_loop();
    let mut next = world.event_loop();
    pend(&mut ending, &world, &FAIR_SEMAPHORE, permits(2));
    let token = pend(&mut next, &world, &FAIR_SEMAPHORE, permits(2));
    world.release(&holder, 2);
    assert_eq!(next.next_settled(), None);
    ending.end();
    assert_eq!(next.next_settled(), settled(&world, token));
    next.end();
    assert_eq!(world.taken(), 0, "its code may not know of it either");
}

#[test]
fn a_waiter_that_leaves_the_head_lets_those_behind_it_in() {
    let world = World::new(false);
    let holder = world.agent(0);
    assert_eq!(world.acquire(&holder, 1, Limit::Once), GRANTED);
    let mut large = world.event_loop();
    let mut small = world.event_loop();
    let first = pend(&mut large, &world, &FAIR_SEMAPHORE, permits(2));
    let second = pend(&mut small, &world, &FAIR_SEMAPHORE, permits(1));
    assert!(large.cancel(first).is_some());
    assert_eq!(small.next_settled(), settled(&world, second));
}

#[test]
fn whoever_waits_when_a_latch_opens_passes_though_it_closes_at_once() {
    let world = World::new(false);
    let [me, other] = [0, 1].map(|thread| world.agent(thread));
    assert_eq!(add(&world, &me, 2), Ok(Some(2)));
    let mut waits = world.event_loop();
    let passage = Request::Hold(Hold::PASSAGE);
    let tokens = [pend(&mut waits, &world, &LATCH, passage), pend(&mut waits, &world, &LATCH, passage)];
    assert_eq!(add(&world, &me, -3), Ok(None), "below zero: nothing changes");
    assert_eq!(add(&world, &other, -2), Ok(Some(0)));
    assert_eq!(add(&world, &other, 1), Ok(Some(1)));
    for token in tokens {
        assert_eq!(waits.next_settled(), settled(&world, token));
    }
    assert_eq!(waits.next_settled(), None);
}

#[test]
fn an_event_lets_all_pass_until_it_is_reset() {
    let world = &World::new(false);
    let me = world.agent(0);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let passage = Request::Hold(Hold::PASSAGE);
                let outcome = world.engine.wait(
                    &world.agent(0),
                    &MANUAL_RESET_EVENT,
                    world.place(),
                    passage,
                    Limit::after(PROMPT),
                    &mut || true,
                );
                assert_eq!(outcome.unwrap(), GRANTED);
            });
        }
        world.until_waiting(&MANUAL_RESET_EVENT, 2);
        world.engine.change(&me, &MANUAL_RESET_EVENT, world.place(), Change::Set).unwrap();
    });
    assert_eq!(world.words[0].load(Ordering::SeqCst), 1);
    world.engine.change(&me, &MANUAL_RESET_EVENT, world.place(), Change::Reset).unwrap();
    assert_eq!(world.words[0].load(Ordering::SeqCst), 0);
}

#[test]
fn each_set_of_an_event_that_resets_itself_lets_one_pass() {
    let world = World::new(false);
    let me = world.agent(0);
    let set = || world.engine.change(&me, &AUTO_RESET_EVENT, world.place(), Change::Set).unwrap();
    let passage = Request::Hold(Hold::PASSAGE);
    let mut doomed = world.event_loop();
    let mut next = world.event_loop();
    pend(&mut doomed, &world, &AUTO_RESET_EVENT, passage);
    let token = pend(&mut next, &world, &AUTO_RESET_EVENT, passage);
    set();
    assert_eq!(next.next_settled(), None);
    doomed.end();
    assert_eq!(next.next_settled(), settled(&world, token), "what the other never knew of passes on");
    set();
    set();
    let pass = |agent: &Arc<Agent>| {
        world.engine.wait(agent, &AUTO_RESET_EVENT, world.place(), passage, Limit::Once, &mut || true).unwrap()
    };
    assert_eq!((pass(&me), pass(&me)), (GRANTED, Outcome::TimedOut), "two sets without a waiter are one");
}

#[test]
fn one_runs_and_all_others_go_on_when_it_is_done() {
    let world = World::new(false);
    let [first, second] = [0, 1].map(|thread| world.agent(thread));
    let run =
        |agent: &Arc<Agent>| world.engine.wait(agent, &ONCE, world.place(), RUN, Limit::Once, &mut || true).unwrap();
    assert_eq!((run(&first), run(&second)), (GRANTED, Outcome::TimedOut));
    let mut waits = world.event_loop();
    let tokens = [pend(&mut waits, &world, &ONCE, RUN), pend(&mut waits, &world, &ONCE, RUN)];
    assert_eq!(finish(&world, &second), Ok(false));
    // It fails: the next in line runs, and is done.
    assert!(world.engine.release(&first, &ONCE, world.place(), RUN.hold().unwrap()).unwrap());
    assert_eq!(waits.next_settled(), settled(&world, tokens[0]));
    let agent = Arc::clone(waits.agent());
    assert_eq!(finish(&world, &agent), Ok(true));
    let refused = waits.next_settled().map(|settled| (settled.token, settled.outcome));
    assert_eq!(refused, Some((tokens[1], Ok(Outcome::Refused { found: 0 }))));
    assert_eq!(run(&second), Outcome::Refused { found: 0 });
}

#[test]
fn a_thread_that_blocks_behind_its_own_promise_in_strict_order_is_in_a_deadlock() {
    let world = World::new(false);
    let runner = world.agent(0);
    assert_eq!(world.engine.wait(&runner, &ONCE, world.place(), RUN, Limit::Once, &mut || true).unwrap(), GRANTED);
    // A loop that waits for nobody comes first.
    let [mut ahead, mut waits] = [(); 2].map(|()| world.event_loop());
    pend(&mut ahead, &world, &ONCE, RUN);
    pend(&mut waits, &world, &ONCE, RUN);
    let me = Arc::clone(waits.agent());
    let outcome = world.engine.wait(&me, &ONCE, world.place(), RUN, Limit::Endless, &mut || true);
    assert!(matches!(outcome, Err(Failure::Deadlock(cycle)) if cycle.len() == 1));
}

#[test]
fn an_entry_of_a_latch_waits_for_nobody() {
    let world = World::new(false);
    let me = world.agent(0);
    assert_eq!(add(&world, &me, 1), Ok(Some(1)));
    let mut waits = world.event_loop();
    let token = pend(&mut waits, &world, &LATCH, Request::Hold(Hold::PASSAGE));
    let entry = Hold::entries(1);
    let entered = world.engine.wait(&me, &LATCH, world.place(), Request::Hold(entry), Limit::Once, &mut || true);
    let counted = Outcome::Granted { abandoned_by: None, found: 1 };
    assert_eq!(entered.unwrap(), counted, "though somebody waits for it to open");
    assert!(world.engine.release(&me, &LATCH, world.place(), entry).unwrap());
    assert_eq!(add(&world, &me, -1), Ok(Some(0)));
    assert_eq!(waits.next_settled(), settled(&world, token));
}

#[test]
fn a_blocked_waiter_in_strict_order_learns_that_its_word_was_overwritten() {
    let world = &World::with_slices(false);
    let holder = world.agent(0);
    assert_eq!(world.acquire(&holder, 2, Limit::Once), GRANTED);
    thread::scope(|scope| {
        let blocked = scope.spawn(|| {
            let (agent, mut pauses) = (world.agent(1), 0..100);
            let mut pause = || pauses.next().is_some();
            world.engine.wait(&agent, &FAIR_SEMAPHORE, world.place(), permits(1), Limit::Endless, &mut pause)
        });
        world.until_waiting(&FAIR_SEMAPHORE, 1);
        world.words[0].store(1 << 30, Ordering::SeqCst);
        let outcome = blocked.join().unwrap();
        assert!(matches!(outcome, Err(Failure::Corrupt)), "{outcome:?}");
    });
    assert_eq!(world.taken(), 1 << 30, "left alone");
}

#[test]
fn no_number_is_too_large_for_a_latch() {
    let world = World::new(false);
    let me = world.agent(0);
    assert_eq!(add(&world, &me, 1), Ok(Some(1)));
    for by in [i32::MIN, i32::MAX] {
        assert_eq!(add(&world, &me, by), Ok(None), "{by}");
    }
    assert_eq!(world.taken(), 1);
}

#[test]
fn a_place_with_waiters_is_no_other_primitive() {
    let (world, me) = World::exhausted();
    let mut waits = world.event_loop();
    pend(&mut waits, &world, &FAIR_SEMAPHORE, permits(1));
    assert!(world.engine.lock(&me, world.place(), HoldOwner::Thread, Limit::Once, &mut || true).is_err());
    assert_eq!(world.engine.change(&me, &MANUAL_RESET_EVENT, world.place(), Change::Set), Err(Corrupt));
}

#[test]
fn when_the_thread_that_runs_ends_the_next_in_line_runs_and_knows() {
    let world = World::new(false);
    let doomed = world.event_loop();
    let agent = Arc::clone(doomed.agent());
    assert_eq!(world.engine.wait(&agent, &ONCE, world.place(), RUN, Limit::Once, &mut || true).unwrap(), GRANTED);
    let mut waits = world.event_loop();
    let token = pend(&mut waits, &world, &ONCE, RUN);
    doomed.end();
    let outcome = Ok(Outcome::granted(Some(agent.id)));
    assert_eq!(waits.next_settled().map(|settled| (settled.token, settled.outcome)), Some((token, outcome)));
}

#[test]
fn a_run_that_knew_of_an_end_and_failed_leaves_it_to_the_next_to_know() {
    let world = World::new(false);
    let doomed = world.event_loop();
    let run = |agent| world.engine.wait(agent, &ONCE, world.place(), RUN, Limit::Once, &mut || true).unwrap();
    let agent = Arc::clone(doomed.agent());
    assert_eq!(run(&agent), GRANTED);
    doomed.end();
    let [first, second] = [1, 2].map(|thread| world.agent(thread));
    for agent in [&first, &second] {
        run(agent);
        assert_ne!(world.taken() & ABANDONED, 0);
        assert!(world.engine.release(agent, &ONCE, world.place(), RUN.hold().unwrap()).unwrap());
    }
    run(&first);
    assert_eq!(finish(&world, &first), Ok(true));
    assert_eq!(world.taken(), DONE);
}
