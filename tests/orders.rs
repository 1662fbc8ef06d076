//! Strict order, grants in batches, shared holders and the register of holds, step by step.
#![cfg(not(loom))]

mod common;

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;

use common::{PROMPT, World};
use sablock::agents::{Agent, Notice, WaitId};
use sablock::engine::{
    Corrupt, EventLoop, Failure, Hold, HoldOwner, Limit, Outcome, Primitive, Reply, ReplyError, Request, Settled, Slot,
};
use sablock::memory::Place;
use sablock::primitives::barrier::{self, BARRIER};
use sablock::primitives::event::{AUTO_RESET_EVENT, MANUAL_RESET_EVENT};
use sablock::primitives::latch::LATCH;
use sablock::primitives::mutex::ABANDONED;
use sablock::primitives::once::{DONE, ONCE};
use sablock::primitives::rwlock::{RWLOCK, Word};
use sablock::primitives::semaphore::SEMAPHORE;

const GRANTED: Outcome = Outcome::GRANTED;

/// Two permits in all.
fn permits(count: u32) -> Request {
    Request::Hold(Hold::permits(count, 2))
}

impl World {
    fn event_loop(&self) -> EventLoop<'_> {
        EventLoop::new(&self.engine, self.agent(0))
    }

    fn acquire(&self, agent: &Arc<Agent>, count: u32, limit: Limit) -> Outcome {
        self.engine.wait(agent, &SEMAPHORE, self.place(), permits(count), limit, &mut || true).unwrap()
    }

    fn release(&self, agent: &Arc<Agent>, count: u32) {
        assert!(self.engine.release(agent, &SEMAPHORE, self.place(), Hold::permits(count, 2)).unwrap());
    }

    fn taken(&self) -> u32 {
        self.word.load(Ordering::SeqCst)
    }

    fn until_waiting(&self, primitive: &dyn Primitive, count: usize) {
        self.until("waiters", |world| world.engine.inspect(primitive, world.place()).waiters.len() == count);
    }
}

fn pend(waits: &mut EventLoop<'_>, world: &World, primitive: &'static dyn Primitive, request: Request) -> u32 {
    match waits.wait(primitive, world.place(), request, Limit::Endless).unwrap() {
        Reply::Pending(token) => token,
        now => panic!("{now:?}"),
    }
}

fn settled(world: &World, token: u32) -> Option<Settled> {
    Some(Settled { token, place: world.place(), is_for_hold: true, outcome: Ok(GRANTED) })
}

/// Memory for slots that outlives the world.
fn slot(agent: &Arc<Agent>) -> (Slot, &'static [AtomicU32; 2]) {
    let memory: &'static [AtomicU32; 2] = Box::leak(Box::default());
    // SAFETY: aligned, zero, and never freed.
    (unsafe { Slot::new(agent.id, NonNull::from(memory)) }, memory)
}

#[test]
fn a_large_request_at_the_head_is_never_overtaken_by_small_ones() {
    let world = &World::new(false);
    let [holder, newcomer] = [0, 1].map(|thread| world.agent(thread));
    assert_eq!(world.acquire(&holder, 2, Limit::Once), GRANTED);
    let mut large = world.event_loop();
    let mut small = world.event_loop();
    let first = pend(&mut large, world, &SEMAPHORE, permits(2));
    let second = pend(&mut small, world, &SEMAPHORE, permits(1));
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
    let world = &World::new(false);
    let holder = world.agent(0);
    assert_eq!(world.acquire(&holder, 2, Limit::Once), GRANTED);
    let mut waits = world.event_loop();
    let first = pend(&mut waits, world, &SEMAPHORE, permits(1));
    thread::scope(|scope| {
        scope.spawn(|| assert_eq!(world.acquire(&world.agent(1), 1, Limit::after(PROMPT)), GRANTED));
        world.until_waiting(&SEMAPHORE, 2);
        let third = pend(&mut waits, world, &SEMAPHORE, permits(1));
        world.release(&holder, 2);
        world.until_waiting(&SEMAPHORE, 1);
        assert_eq!(waits.next_settled(), settled(world, first));
        assert_eq!(waits.next_settled(), None, "{third} waits on");
    });
}

#[test]
fn a_grant_to_a_loop_is_final() {
    let world = World::new(false);
    let holder = world.agent(0);
    assert_eq!(world.acquire(&holder, 2, Limit::Once), GRANTED);
    let mut waits = world.event_loop();
    let token = pend(&mut waits, &world, &SEMAPHORE, permits(2));
    world.release(&holder, 2);
    assert_eq!(world.taken(), 2, "it shows as held");
    assert_eq!(waits.cancel(token), None, "too late");
    waits.agent().notify(Notice::Expired(WaitId { token, serial: 1 }));
    assert_eq!(waits.next_settled(), settled(&world, token), "the deadline comes too late as well");
}

#[test]
fn a_grant_to_a_loop_that_ends_before_it_knows_passes_on() {
    let world = World::new(false);
    let holder = world.agent(0);
    assert_eq!(world.acquire(&holder, 2, Limit::Once), GRANTED);
    let mut doomed = world.event_loop();
    let mut next = world.event_loop();
    pend(&mut doomed, &world, &SEMAPHORE, permits(2));
    let token = pend(&mut next, &world, &SEMAPHORE, permits(2));
    world.release(&holder, 2);
    assert_eq!(next.next_settled(), None);
    doomed.end();
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
    let first = pend(&mut large, &world, &SEMAPHORE, permits(2));
    let second = pend(&mut small, &world, &SEMAPHORE, permits(1));
    assert!(large.cancel(first).is_some());
    assert_eq!(small.next_settled(), settled(&world, second));
}

#[test]
fn what_the_register_says_of_a_thread_that_ends_goes_back() {
    let world = World::new(false);
    let doomed = world.event_loop();
    let agent = Arc::clone(doomed.agent());
    let (slot, counts) = slot(&agent);
    world.engine.add_slot(&SEMAPHORE, world.place(), slot);
    assert_eq!(world.acquire(&agent, 2, Limit::Once), GRANTED);
    assert_eq!(counts[1].load(Ordering::SeqCst), 2, "the slow path writes the slot too");
    assert!(!world.engine.free_slot(&SEMAPHORE, world.place(), agent.id), "in use");
    world.release(&agent, 1);
    assert_eq!(counts[1].load(Ordering::SeqCst), 1);
    let holders = world.engine.registered_holders(&SEMAPHORE, world.place());
    assert_eq!(holders.into_iter().map(|(agent, counts)| (agent, counts.guarded)).collect::<Vec<_>>(), [(agent.id, 1)]);
    let mut next = world.event_loop();
    let token = pend(&mut next, &world, &SEMAPHORE, permits(2));
    doomed.end();
    assert_eq!(next.next_settled(), settled(&world, token));
    assert_eq!(world.taken() & !(1 << 31), 2);
}

#[test]
fn ended_holds_are_told_once_of_their_own_primitive() {
    let world = World::new(false);
    let end_with = |count| {
        let doomed = world.event_loop();
        let agent = Arc::clone(doomed.agent());
        world.engine.add_slot(&SEMAPHORE, world.place(), slot(&agent).0);
        if count > 0 {
            assert_eq!(world.acquire(&agent, count, Limit::Once), GRANTED);
        }
        doomed.end();
        agent.id
    };
    end_with(0);
    assert!(!world.engine.has_ended(world.place()), "it held nothing");
    assert_eq!(world.engine.stats().ended, 0);
    let ended = [end_with(2), end_with(1)];
    assert_eq!(world.engine.stats().ended, 2);
    assert!(world.engine.has_ended(world.place()));
    assert!(!world.engine.has_ended(barrier_of().0), "another place");
    assert_eq!(world.engine.take_ended(&SEMAPHORE, world.place()), ended);
    assert!(!world.engine.has_ended(world.place()));
    end_with(1);
    assert_eq!(world.engine.take_ended(&LATCH, world.place()), [], "its memory is a latch's now");
    assert!(!world.engine.has_ended(world.place()));
}

#[test]
fn ended_holds_that_nobody_is_told_of_do_not_pile_up() {
    let world = World::new(false);
    for _ in 0..1000 {
        let doomed = world.event_loop();
        let agent = Arc::clone(doomed.agent());
        world.engine.add_slot(&SEMAPHORE, world.place(), slot(&agent).0);
        assert_eq!(world.acquire(&agent, 1, Limit::Once), GRANTED);
        doomed.end();
    }
    assert_eq!(world.engine.stats().ended, 1000);
    let kept = world.engine.take_ended(&SEMAPHORE, world.place());
    assert!((1..=100).contains(&kept.len()), "{}", kept.len());
    assert!(!world.engine.has_ended(world.place()));
}

#[test]
fn a_slot_takes_the_place_of_one_for_another_primitive() {
    let world = World::new(false);
    let doomed = world.event_loop();
    let agent = Arc::clone(doomed.agent());
    world.engine.add_slot(&LATCH, world.place(), slot(&agent).0);
    let (slot, counts) = slot(&agent);
    world.engine.add_slot(&SEMAPHORE, world.place(), slot);
    assert_eq!(world.acquire(&agent, 2, Limit::Once), GRANTED);
    assert_eq!(counts[1].load(Ordering::SeqCst), 2);
    doomed.end();
    assert_eq!(world.taken(), 0, "given back as permits");
}

#[test]
fn whoever_waits_when_a_latch_opens_passes_though_it_closes_at_once() {
    let world = World::new(false);
    let [me, other] = [0, 1].map(|thread| world.agent(thread));
    assert_eq!(world.engine.change_latch(&me, world.place(), 2), Ok(Some(2)));
    let mut waits = world.event_loop();
    let passage = Request::Hold(Hold::PASSAGE);
    let tokens = [pend(&mut waits, &world, &LATCH, passage), pend(&mut waits, &world, &LATCH, passage)];
    assert_eq!(world.engine.change_latch(&me, world.place(), -3), Ok(None), "below zero: nothing changes");
    assert_eq!(world.engine.change_latch(&other, world.place(), -2), Ok(Some(0)));
    assert_eq!(world.engine.change_latch(&other, world.place(), 1), Ok(Some(1)));
    for token in tokens {
        assert_eq!(waits.next_settled(), settled(&world, token));
    }
    assert_eq!(waits.next_settled(), None);
}

#[test]
fn entries_of_a_thread_that_ends_are_counted_down() {
    let world = World::new(false);
    let doomed = world.event_loop();
    let agent = Arc::clone(doomed.agent());
    let (slot, _) = slot(&agent);
    world.engine.add_slot(&LATCH, world.place(), slot);
    let entry = Request::Hold(Hold::entries(1));
    assert_eq!(world.engine.wait(&agent, &LATCH, world.place(), entry, Limit::Once, &mut || true).unwrap(), GRANTED);
    let mut waits = world.event_loop();
    let token = pend(&mut waits, &world, &LATCH, Request::Hold(Hold::PASSAGE));
    doomed.end();
    assert_eq!(waits.next_settled(), settled(&world, token));
    assert_eq!(world.word.load(Ordering::SeqCst), 0);
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
        world.engine.set_event(&me, &MANUAL_RESET_EVENT, world.place()).unwrap();
    });
    assert_eq!(world.word.load(Ordering::SeqCst), 1);
    world.engine.reset_event(&me, &MANUAL_RESET_EVENT, world.place()).unwrap();
    assert_eq!(world.word.load(Ordering::SeqCst), 0);
}

#[test]
fn a_place_with_waiters_is_no_other_primitive() {
    let world = World::new(false);
    let me = world.agent(0);
    assert_eq!(world.acquire(&me, 2, Limit::Once), GRANTED);
    let mut waits = world.event_loop();
    pend(&mut waits, &world, &SEMAPHORE, permits(1));
    assert!(world.engine.lock(&me, world.place(), HoldOwner::Thread, Limit::Once, &mut || true).is_err());
    assert_eq!(world.engine.set_event(&me, &MANUAL_RESET_EVENT, world.place()), Err(Corrupt));
}

const READ: Request = Request::Hold(Hold::shared(HoldOwner::Thread));
const WRITE: Request = Request::Hold(Hold::exclusive(HoldOwner::Thread));

impl World {
    fn enter(&self, agent: &Arc<Agent>, request: Request, limit: Limit) -> Outcome {
        self.engine.wait(agent, &RWLOCK, self.place(), request, limit, &mut || true).unwrap()
    }

    fn exit(&self, agent: &Arc<Agent>, request: Request) {
        self.engine.release(agent, &RWLOCK, self.place(), request.hold().unwrap()).unwrap();
    }

    fn word(&self) -> Word {
        Word(self.word.load(Ordering::SeqCst))
    }
}

#[test]
fn blocked_readers_go_in_together_and_the_writer_behind_them_waits() {
    let world = &World::new(false);
    let [all_in, has_tried] = &[(); 2].map(|()| Barrier::new(4));
    let writer = world.agent(0);
    assert_eq!(world.enter(&writer, WRITE, Limit::Once), GRANTED);
    thread::scope(|scope| {
        for readers in 1..=3 {
            scope.spawn(|| {
                let agent = world.agent(0);
                assert_eq!(world.enter(&agent, READ, Limit::after(PROMPT)), GRANTED);
                all_in.wait();
                has_tried.wait();
                world.exit(&agent, READ);
            });
            world.until_waiting(&RWLOCK, readers);
        }
        let behind = scope.spawn(|| {
            let agent = world.agent(0);
            assert_eq!(world.enter(&agent, WRITE, Limit::after(PROMPT)), GRANTED);
            assert_eq!((world.word().writer(), world.word().readers()), (agent.id, 0), "alone");
            world.exit(&agent, WRITE);
        });
        world.until_waiting(&RWLOCK, 4);
        world.exit(&writer, WRITE);
        all_in.wait();
        assert_eq!(world.word().readers(), 3);
        assert_eq!(world.enter(&writer, READ, Limit::Once), Outcome::TimedOut, "a writer waits");
        has_tried.wait();
        behind.join().unwrap();
    });
    assert_eq!(world.taken(), 0);
}

#[test]
fn loops_that_come_for_shared_holds_enter_beside_those_who_are_in() {
    let world = World::new(false);
    let writer = world.agent(0);
    assert_eq!(world.enter(&writer, WRITE, Limit::Once), GRANTED);
    let mut loops = [world.event_loop(), world.event_loop()];
    let tokens = [0, 1].map(|index| pend(&mut loops[index], &world, &RWLOCK, READ));
    world.exit(&writer, WRITE);
    for (waits, token) in loops.iter_mut().zip(tokens) {
        assert_eq!(waits.next_settled(), settled(&world, token));
    }
    assert_eq!(world.word().readers(), 2);
}

#[test]
fn readers_do_not_pass_a_writer_of_a_loop_that_came_in_vain() {
    let world = &World::new(false);
    let reader = world.agent(0);
    assert_eq!(world.enter(&reader, READ, Limit::Once), GRANTED);
    let mut waits = world.event_loop();
    let token = pend(&mut waits, world, &RWLOCK, WRITE);
    thread::scope(|scope| {
        let behind = scope.spawn(|| {
            let agent = world.agent(0);
            assert_eq!(world.enter(&agent, READ, Limit::after(PROMPT)), GRANTED);
            world.exit(&agent, READ);
        });
        world.until_waiting(&RWLOCK, 2);
        // It comes, finds a reader in, and is remembered.
        waits.agent().notify(Notice::Offer(world.place().address()));
        assert_eq!(waits.next_settled(), None);
        world.exit(&reader, READ);
        assert_eq!(waits.next_settled(), settled(world, token));
        assert_eq!(world.word().writer(), waits.agent().id);
        let agent = Arc::clone(waits.agent());
        world.exit(&agent, WRITE);
        behind.join().unwrap();
    });
    assert_eq!(world.word().readers(), 0);
}

#[test]
fn a_read_hold_of_a_thread_that_ends_goes_back_and_the_writer_gets_in() {
    let world = World::new(false);
    let doomed = world.event_loop();
    let reader = Arc::clone(doomed.agent());
    world.engine.add_slot(&RWLOCK, world.place(), slot(&reader).0);
    assert_eq!(world.enter(&reader, READ, Limit::Once), GRANTED);
    let mut waits = world.event_loop();
    let token = pend(&mut waits, &world, &RWLOCK, WRITE);
    doomed.end();
    assert_eq!(waits.next_settled(), settled(&world, token), "unmarked");
    assert_eq!(world.word().writer(), waits.agent().id);
}

#[test]
fn a_writer_that_ends_inside_marks_the_lock_for_readers_too() {
    let world = World::new(false);
    let doomed = world.event_loop();
    let writer = Arc::clone(doomed.agent());
    assert_eq!(world.enter(&writer, WRITE, Limit::Once), GRANTED);
    doomed.end();
    let reader = world.agent(0);
    assert_eq!(world.enter(&reader, READ, Limit::Once), Outcome::Granted { abandoned_by: Some(writer.id) });
    assert!(world.word().is_abandoned());
    world.exit(&reader, READ);
    assert!(world.word().is_abandoned(), "until somebody marks it consistent");
}

#[test]
fn a_reader_that_would_wait_behind_a_writer_that_waits_for_it_is_in_a_deadlock() {
    let world = &World::new(false);
    let reader = world.agent(7);
    world.engine.add_slot(&RWLOCK, world.place(), slot(&reader).0);
    assert_eq!(world.enter(&reader, READ, Limit::Once), GRANTED);
    let lock = |agent: &Arc<Agent>, request| {
        world.engine.wait(agent, &RWLOCK, world.place(), request, Limit::Endless, &mut || true)
    };
    assert!(matches!(lock(&reader, WRITE), Err(Failure::Deadlock(cycle)) if cycle.len() == 1), "write inside read");
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let agent = world.agent(8);
            assert_eq!(lock(&agent, WRITE).unwrap(), GRANTED);
            world.exit(&agent, WRITE);
        });
        world.until_waiting(&RWLOCK, 1);
        let Err(Failure::Deadlock(cycle)) = lock(&reader, READ) else { panic!("read inside read") };
        assert_eq!(cycle.iter().map(|hop| hop.thread).collect::<Vec<_>>(), [7, 8]);
        world.exit(&reader, READ);
        writer.join().unwrap();
    });
    assert_eq!(world.taken(), 0);
}

#[test]
fn a_writer_turns_into_a_reader_and_lets_readers_in_and_the_only_reader_into_a_writer() {
    let world = &World::new(false);
    let [me, other] = [0, 1].map(|thread| world.agent(thread));
    world.engine.add_slot(&RWLOCK, world.place(), slot(&me).0);
    world.engine.add_slot(&RWLOCK, world.place(), slot(&other).0);
    assert_eq!(world.enter(&me, WRITE, Limit::Once), GRANTED);
    let mut waits = world.event_loop();
    let token = pend(&mut waits, world, &RWLOCK, READ);
    assert_eq!(world.engine.downgrade(&other, world.place(), HoldOwner::Thread), Ok(false));
    assert_eq!(world.engine.downgrade(&me, world.place(), HoldOwner::Thread), Ok(true));
    assert_eq!(waits.next_settled(), settled(world, token));
    assert_eq!(world.word().readers(), 2);
    assert_eq!(world.engine.try_upgrade(&me, world.place(), HoldOwner::Thread), Ok(false), "two readers");
    let agent = Arc::clone(waits.agent());
    world.exit(&agent, READ);
    assert_eq!(world.engine.try_upgrade(&me, world.place(), HoldOwner::Thread), Ok(true));
    assert_eq!(world.word().writer(), me.id);
    assert!(world.engine.registered_holders(&RWLOCK, world.place()).is_empty());
}

#[test]
fn each_set_of_an_event_that_resets_itself_lets_one_pass() {
    let world = World::new(false);
    let me = world.agent(0);
    let set = || world.engine.set_event(&me, &AUTO_RESET_EVENT, world.place()).unwrap();
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
        |agent: &Arc<Agent>| world.engine.wait(agent, &ONCE, world.place(), WRITE, Limit::Once, &mut || true).unwrap();
    assert_eq!((run(&first), run(&second)), (GRANTED, Outcome::TimedOut));
    let mut waits = world.event_loop();
    let tokens = [pend(&mut waits, &world, &ONCE, WRITE), pend(&mut waits, &world, &ONCE, WRITE)];
    assert_eq!(world.engine.finish_once(&second, world.place()), Ok(false));
    // It fails: the next in line runs, and is done.
    assert!(world.engine.release(&first, &ONCE, world.place(), WRITE.hold().unwrap()).unwrap());
    assert_eq!(waits.next_settled(), settled(&world, tokens[0]));
    let agent = Arc::clone(waits.agent());
    assert_eq!(world.engine.finish_once(&agent, world.place()), Ok(true));
    let refused = waits.next_settled().map(|settled| (settled.token, settled.outcome));
    assert_eq!(refused, Some((tokens[1], Ok(Outcome::Refused))));
    assert_eq!(run(&second), Outcome::Refused);
}

#[test]
fn when_the_thread_that_runs_ends_the_next_in_line_runs_and_knows() {
    let world = World::new(false);
    let doomed = world.event_loop();
    let agent = Arc::clone(doomed.agent());
    assert_eq!(world.engine.wait(&agent, &ONCE, world.place(), WRITE, Limit::Once, &mut || true).unwrap(), GRANTED);
    let mut waits = world.event_loop();
    let token = pend(&mut waits, &world, &ONCE, WRITE);
    doomed.end();
    let outcome = Ok(Outcome::Granted { abandoned_by: Some(agent.id) });
    assert_eq!(waits.next_settled().map(|settled| (settled.token, settled.outcome)), Some((token, outcome)));
}

#[test]
fn a_run_that_knew_of_an_end_and_failed_leaves_it_to_the_next_to_know() {
    let world = World::new(false);
    let doomed = world.event_loop();
    let run = |agent| world.engine.wait(agent, &ONCE, world.place(), WRITE, Limit::Once, &mut || true).unwrap();
    let agent = Arc::clone(doomed.agent());
    assert_eq!(run(&agent), GRANTED);
    doomed.end();
    let [first, second] = [1, 2].map(|thread| world.agent(thread));
    for agent in [&first, &second] {
        run(agent);
        assert_ne!(world.taken() & ABANDONED, 0);
        assert!(world.engine.release(agent, &ONCE, world.place(), WRITE.hold().unwrap()).unwrap());
    }
    run(&first);
    assert_eq!(world.engine.finish_once(&first, world.place()), Ok(true));
    assert_eq!(world.taken(), DONE);
}

/// A barrier of its own two words.
fn barrier_of() -> (Place, &'static [AtomicU32; 2]) {
    let words: &'static [AtomicU32; 2] = Box::leak(Box::default());
    // SAFETY: two aligned atomics that are never freed.
    (unsafe { Place::new(NonNull::from(&words[0]), 0) }, words)
}

fn arrive(waits: &mut EventLoop<'_>, place: Place, parties: u32) -> Result<Reply, ReplyError> {
    waits.wait(&BARRIER, place, Request::Hold(Hold::party(parties)), Limit::Endless)
}

fn outcome(waits: &mut EventLoop<'_>) -> Option<Outcome> {
    waits.next_settled().map(|settled| settled.outcome.unwrap())
}

#[test]
fn the_last_party_lets_the_others_pass_and_the_barrier_is_new() {
    let world = World::new(false);
    let (place, words) = barrier_of();
    let mut loops = [world.event_loop(), world.event_loop(), world.event_loop()];
    for round in 0..2 {
        for (index, waits) in loops.iter_mut().enumerate() {
            let reply = arrive(waits, place, 3).unwrap();
            assert_eq!(matches!(reply, Reply::Now(GRANTED)), index == 2, "round {round}");
            if index < 2 {
                assert_eq!(barrier::arrived(waits.found) as usize, index);
            }
        }
        assert_eq!(loops.each_mut().map(outcome), [Some(GRANTED), Some(GRANTED), None]);
        assert_eq!(words.each_ref().map(|word| word.load(Ordering::SeqCst)), [0, 0]);
    }
}

#[test]
fn a_party_that_goes_breaks_the_barrier_for_all_until_it_is_reset() {
    let world = World::new(false);
    let (place, words) = barrier_of();
    let me = world.agent(0);
    let [mut patient, mut fickle, mut doomed] = [(); 3].map(|()| world.event_loop());
    for ends in [false, true] {
        arrive(&mut patient, place, 3).unwrap();
        assert!(matches!(arrive(&mut fickle, place, 2), Ok(Reply::Now(Outcome::Refused))), "not the same number");
        if ends {
            arrive(&mut doomed, place, 3).unwrap();
            std::mem::replace(&mut doomed, world.event_loop()).end();
        } else {
            let Ok(Reply::Pending(token)) = arrive(&mut fickle, place, 3) else { panic!("not the last") };
            assert!(fickle.cancel(token).is_some());
        }
        assert_eq!(outcome(&mut patient), Some(Outcome::Refused));
        assert!(matches!(arrive(&mut patient, place, 3), Ok(Reply::Now(Outcome::Refused))));
        world.engine.reset_barrier(&me, place).unwrap();
        assert_eq!(words[0].load(Ordering::SeqCst), 0);
    }
    arrive(&mut patient, place, 3).unwrap();
    world.engine.reset_barrier(&me, place).unwrap();
    assert_eq!(outcome(&mut patient), Some(Outcome::Refused), "a reset breaks those who wait");
    let party = Request::Hold(Hold::party(2));
    arrive(&mut patient, place, 2).unwrap();
    let late = world.agent(1);
    assert_eq!(
        world.engine.wait(&late, &BARRIER, place, party, Limit::Once, &mut || true).unwrap(),
        GRANTED,
        "the last"
    );
    assert_eq!(outcome(&mut patient), Some(GRANTED));
    assert_eq!(world.engine.wait(&late, &BARRIER, place, party, Limit::Once, &mut || true).unwrap(), Outcome::TimedOut);
    assert!(matches!(arrive(&mut patient, place, 2), Ok(Reply::Now(Outcome::Refused))), "not to wait breaks it");
}

#[test]
fn a_member_that_ends_breaks_the_barrier() {
    let world = World::new(false);
    let (place, _) = barrier_of();
    let doomed = world.event_loop();
    let agent = Arc::clone(doomed.agent());
    world.engine.add_slot(&BARRIER, place, slot(&agent).0);
    let join = Request::Hold(Hold::MEMBER);
    assert_eq!(world.engine.wait(&agent, &BARRIER, place, join, Limit::Once, &mut || true).unwrap(), GRANTED);
    let mut waits = world.event_loop();
    arrive(&mut waits, place, 2).unwrap();
    doomed.end();
    assert_eq!(outcome(&mut waits), Some(Outcome::Refused));
}

#[test]
fn a_thread_that_blocks_behind_its_own_promise_in_strict_order_is_in_a_deadlock() {
    let world = World::new(false);
    let runner = world.agent(0);
    assert_eq!(world.engine.wait(&runner, &ONCE, world.place(), WRITE, Limit::Once, &mut || true).unwrap(), GRANTED);
    let mut waits = world.event_loop();
    pend(&mut waits, &world, &ONCE, WRITE);
    let me = Arc::clone(waits.agent());
    let outcome = world.engine.wait(&me, &ONCE, world.place(), WRITE, Limit::Endless, &mut || true);
    assert!(matches!(outcome, Err(Failure::Deadlock(cycle)) if cycle.len() == 1));
}
