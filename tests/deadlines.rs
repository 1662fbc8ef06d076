//! Deadlines of pending promises: the clock ends a wait whose time is over, whatever its loop is doing.
#![cfg(not(loom))]

mod common;

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use common::{PROMPT, READ, WRITE, World, count_wakes, pend, pending};
use sablock::agents::{Agent, Notice};
use sablock::clients::condition::ConditionLock;
use sablock::clients::{ClientLoop, Clients, LockSet, Name, Names};
use sablock::engine::{
    Change, Corrupt, EventLoop, Hold, HoldOwner, Limit, Mode, Outcome, Primitive, Reply, Request, Slot,
};
use sablock::memory::Place;
use sablock::primitives::barrier::BARRIER;
use sablock::primitives::event::{AUTO_RESET_EVENT, MANUAL_RESET_EVENT};
use sablock::primitives::exchanger::EXCHANGER;
use sablock::primitives::futex::FUTEX;
use sablock::primitives::latch::LATCH;
use sablock::primitives::mutex::MUTEX;
use sablock::primitives::named::NAMED;
use sablock::primitives::once::ONCE;
use sablock::primitives::rwlock::{self, RWLOCK};
use sablock::primitives::semaphore::{FAIR_SEMAPHORE, SEMAPHORE};

const GRANTED: Outcome = Outcome::GRANTED;
const PASSAGE: Request = Request::Hold(Hold::PASSAGE);

fn permits(count: u32) -> Request {
    Request::Hold(Hold::permits(count, 2))
}

fn take(waits: &mut EventLoop<'_>, world: &World, primitive: &'static dyn Primitive, request: Request) {
    let reply = waits.wait(primitive, world.place(), request, Limit::Endless);
    assert_eq!(reply.unwrap(), Reply::Now(GRANTED));
}

fn pend_for_a_time(
    waits: &mut EventLoop<'_>,
    world: &World,
    primitive: &'static dyn Primitive,
    request: Request,
) -> u32 {
    pending(waits.wait(primitive, world.place(), request, Limit::after(PROMPT)).unwrap())
}

fn set(world: &World, agent: &Arc<Agent>, event: &'static dyn Primitive) {
    assert!(world.engine.change(agent, event, world.place(), Change::Set).unwrap().is_some());
}

/// Locks by name of a world.
fn client_loop(world: &'static World, names: &'static Names<'static>) -> ClientLoop<'static> {
    ClientLoop::with_clients(&world.engine, world.agent(0), Clients::new(names))
}

fn world_of_names() -> (&'static World, &'static Names<'static>) {
    let world: &'static World = Box::leak(Box::new(World::new(false)));
    (world, Box::leak(Box::new(Names::new(&world.engine))))
}

fn name() -> Name {
    Name::new(0, &[97])
}

#[test]
fn a_wait_whose_time_is_over_leaves_the_queue_though_its_loop_does_not_turn() {
    let cases: [(&'static dyn Primitive, _, _, _); 2] =
        [(&RWLOCK, READ, WRITE, READ), (&FAIR_SEMAPHORE, permits(1), permits(2), permits(1))];
    for (primitive, held, asked, behind) in cases {
        let world = World::new(false);
        let [mut holder, mut late, mut next] = [(); 3].map(|()| world.event_loop());
        take(&mut holder, &world, primitive, held);
        let late_token = pend_for_a_time(&mut late, &world, primitive, asked);
        let token = pend(&mut next, &world, primitive, behind);
        assert_eq!(next.next_settled(), None, "{}", primitive.name());
        world.clock.expire(&world.engine);
        assert_eq!(next.next_settled(), world.settled(token, GRANTED), "{}", primitive.name());
        assert_eq!(late.next_settled(), world.settled(late_token, Outcome::TimedOut));
        assert_eq!((late.next_settled(), late.pending()), (None, 0));
        assert_eq!(world.engine.stats().timeouts, 1, "{}", primitive.name());
    }
}

#[test]
fn a_loop_is_woken_when_the_time_of_its_wait_is_over() {
    let run = Request::Hold(Hold::exclusive(HoldOwner::Thread));
    let cases: [(&'static dyn Primitive, _, Option<Request>); 7] = [
        (&MUTEX, WRITE, Some(WRITE)),
        (&RWLOCK, READ, Some(WRITE)),
        (&SEMAPHORE, permits(1), Some(permits(2))),
        (&FAIR_SEMAPHORE, permits(1), Some(permits(2))),
        (&ONCE, run, Some(run)),
        (&MANUAL_RESET_EVENT, PASSAGE, None),
        (&FUTEX, Request::Notification, None),
    ];
    for (primitive, asked, held) in cases {
        let world = World::new(false);
        let [mut holder, mut late] = [(); 2].map(|()| world.event_loop());
        if let Some(held) = held {
            take(&mut holder, &world, primitive, held);
        }
        let token = pend_for_a_time(&mut late, &world, primitive, asked);
        let wakes = count_wakes(late.agent());
        world.clock.expire(&world.engine);
        assert_eq!(wakes.load(Ordering::SeqCst), 1, "{}", primitive.name());
        assert_eq!(late.next_settled().map(|settled| settled.token), Some(token), "{}", primitive.name());
        late.end();
    }
}

#[test]
fn a_request_for_a_name_whose_time_is_over_keeps_nobody_out() {
    let (world, names) = world_of_names();
    let [mut holder, mut late, mut next] = [(); 3].map(|()| client_loop(world, names));
    let ask = |waits: &mut ClientLoop<'_>, mode, limit| waits.request_name(name(), mode, false, limit).unwrap();
    ask(&mut holder, Mode::Shared, Limit::Endless);
    let (request, _) = ask(&mut late, Mode::Exclusive, Limit::after(PROMPT));
    ask(&mut next, Mode::Shared, Limit::Endless);
    assert_eq!(next.next_settled(), None);
    world.clock.expire(&world.engine);
    assert_eq!(next.next_settled().map(|settled| settled.outcome), Some(Ok(GRANTED)));
    assert_eq!(late.next_settled().map(|settled| settled.outcome), Some(Ok(Outcome::TimedOut)));
    assert!(late.request(request.number).is_none());
}

#[test]
fn what_was_granted_to_a_loop_that_has_not_come_by_its_deadline_passes_on() {
    let run = Request::Hold(Hold::exclusive(HoldOwner::Thread));
    type Frees = fn(&World, &Arc<Agent>);
    let cases: [(&'static dyn Primitive, Request, Frees); 2] = [
        (&FAIR_SEMAPHORE, permits(2), |world, agent| {
            assert!(world.engine.release(agent, &FAIR_SEMAPHORE, world.place(), Hold::permits(2, 2)).unwrap());
        }),
        (&ONCE, run, |world, agent| {
            let hold = Hold::exclusive(HoldOwner::Thread);
            assert!(world.engine.release(agent, &ONCE, world.place(), hold).unwrap());
        }),
    ];
    for (primitive, request, frees) in cases {
        let world = World::new(false);
        let [mut holder, mut late, mut next] = [(); 3].map(|()| world.event_loop());
        take(&mut holder, &world, primitive, request);
        let late_token = pend_for_a_time(&mut late, &world, primitive, request);
        let token = pend(&mut next, &world, primitive, request);
        frees(&world, holder.agent());
        assert_eq!(next.next_settled(), None, "{}", primitive.name());
        world.clock.expire(&world.engine);
        assert_eq!(next.next_settled(), world.settled(token, GRANTED), "{}", primitive.name());
        assert_eq!(late.next_settled(), world.settled(late_token, Outcome::TimedOut), "{}", primitive.name());
        assert_eq!((late.next_settled(), late.pending()), (None, 0));
    }
}

#[test]
fn the_report_of_an_end_passes_on_with_what_a_loop_has_not_come_for_by_its_deadline() {
    let run = Request::Hold(Hold::exclusive(HoldOwner::Thread));
    let world = World::new(false);
    let [mut doomed, mut late, mut next] = [(); 3].map(|()| world.event_loop());
    take(&mut doomed, &world, &ONCE, run);
    pend_for_a_time(&mut late, &world, &ONCE, run);
    let token = pend(&mut next, &world, &ONCE, run);
    let report = Outcome::granted(Some(doomed.agent().id));
    doomed.end();
    world.clock.expire(&world.engine);
    assert_eq!(next.next_settled(), world.settled(token, report));

    let (world, names) = world_of_names();
    let [mut doomed, mut late, mut next] = [(); 3].map(|()| client_loop(world, names));
    let ask = |waits: &mut ClientLoop<'_>, limit| waits.request_name(name(), Mode::Exclusive, false, limit).unwrap();
    ask(&mut doomed, Limit::Endless);
    ask(&mut late, Limit::after(PROMPT));
    ask(&mut next, Limit::Endless);
    let report = Outcome::granted(Some(doomed.agent().id));
    doomed.end();
    world.clock.expire(&world.engine);
    assert_eq!(next.next_settled().map(|settled| settled.outcome), Some(Ok(report)));
}

#[test]
fn names_that_were_asked_for_together_go_back_at_the_deadline_of_the_next() {
    let (world, names) = world_of_names();
    let [mut holder, mut late, mut next] = [(); 3].map(|()| client_loop(world, names));
    let [first, last] = [97, 98];
    let ask = |waits: &mut ClientLoop<'static>, unit, limit| {
        let (request, reply) = waits.request_name(Name::new(0, &[unit]), Mode::Exclusive, false, limit).unwrap();
        (request.number, reply)
    };
    ask(&mut holder, last, Limit::Endless);
    let (held, _) = ask(&mut late, first, Limit::Endless);
    let (free, _) = ask(&mut late, 99, Limit::Endless);
    let (_, reply) = ask(&mut late, last, Limit::after(PROMPT));
    let beside = late.held_by([(held, Some(70_001)), (free, None)].into_iter(), &[]);
    late.expires_with(pending(reply), beside);
    ask(&mut next, first, Limit::Endless);
    assert_eq!(next.next_settled(), None);
    world.clock.expire(&world.engine);
    let report = Outcome::granted(Some(70_001));
    assert_eq!(next.next_settled().map(|settled| settled.outcome), Some(Ok(report)), "its report goes with it");
    assert_eq!(ask(&mut holder, 99, Limit::Once).1, Reply::Now(GRANTED), "each of them");
    // A name that its loop gives back when it comes is no more its own.
    late.give_back_name(held, None);
    assert_eq!(late.next_settled().map(|settled| settled.outcome), Some(Ok(Outcome::TimedOut)));
    let (_, reply) = ask(&mut holder, first, Limit::Once);
    assert_eq!(reply, Reply::Now(Outcome::TimedOut), "it is still held");
}

#[test]
fn a_name_that_was_granted_to_a_loop_that_has_not_come_by_its_deadline_passes_on() {
    let (world, names) = world_of_names();
    let [mut holder, mut late, mut next] = [(); 3].map(|()| client_loop(world, names));
    let ask = |waits: &mut ClientLoop<'_>, limit| waits.request_name(name(), Mode::Exclusive, false, limit).unwrap().0;
    let held = ask(&mut holder, Limit::Endless);
    let request = ask(&mut late, Limit::after(PROMPT));
    let place = request.place;
    ask(&mut next, Limit::Endless);
    assert!(holder.release_name(held.number).unwrap());
    assert_eq!(world.engine.inspect(&NAMED, place).waiters.len(), 1, "the first has it");
    world.clock.expire(&world.engine);
    assert_eq!(next.next_settled().map(|settled| settled.outcome), Some(Ok(GRANTED)));
    assert_eq!(late.next_settled().map(|settled| settled.outcome), Some(Ok(Outcome::TimedOut)));
    assert!(late.request(request.number).is_none());
}

#[test]
fn what_can_be_no_one_elses_stands_though_its_loop_comes_late() {
    type Frees = fn(&World, &Arc<Agent>);
    let cases: [(&'static dyn Primitive, Request, Frees); 3] = [
        (&AUTO_RESET_EVENT, PASSAGE, |world, agent| set(world, agent, &AUTO_RESET_EVENT)),
        (&MANUAL_RESET_EVENT, PASSAGE, |world, agent| set(world, agent, &MANUAL_RESET_EVENT)),
        (&EXCHANGER, Request::Hold(Hold::exchange(1)), |world, agent| {
            let other = Request::Hold(Hold::exchange(2));
            let outcome = world.engine.wait(agent, &EXCHANGER, world.place(), other, Limit::Endless, &mut || true);
            assert_eq!(outcome.unwrap(), Outcome::Granted { abandoned_by: None, found: 1 });
        }),
    ];
    for (primitive, request, frees) in cases {
        let world = World::new(false);
        let mut late = world.event_loop();
        let token = pend_for_a_time(&mut late, &world, primitive, request);
        frees(&world, &world.agent(0));
        world.clock.expire(&world.engine);
        let settled = late.next_settled().unwrap();
        assert_eq!(settled.token, token);
        assert!(matches!(settled.outcome, Ok(Outcome::Granted { .. })), "{}: {settled:?}", primitive.name());
    }
}

#[test]
fn what_comes_after_the_deadline_is_for_others() {
    let world = World::new(false);
    let me = world.agent(0);
    for event in [&AUTO_RESET_EVENT, &MANUAL_RESET_EVENT] {
        let mut late = world.event_loop();
        let token = pend_for_a_time(&mut late, &world, event, PASSAGE);
        world.clock.expire(&world.engine);
        set(&world, &me, event);
        assert_eq!(late.next_settled(), world.settled(token, Outcome::TimedOut));
        take(&mut late, &world, &AUTO_RESET_EVENT, PASSAGE);
    }
}

#[test]
fn a_latch_that_opens_after_the_deadline_was_not_passed() {
    let world = World::new(false);
    let me = world.agent(0);
    let change = |count| world.engine.change(&me, &LATCH, world.place(), Change::Add { count, of: 0 }).unwrap();
    assert!(change(1).is_some());
    let mut late = world.event_loop();
    let token = pend_for_a_time(&mut late, &world, &LATCH, PASSAGE);
    world.clock.expire(&world.engine);
    assert!(change(-1).is_some());
    assert_eq!(late.next_settled(), world.settled(token, Outcome::TimedOut));
}

#[test]
fn a_value_whose_time_is_over_is_exchanged_for_nothing() {
    let world = World::new(false);
    let [mut late, mut other] = [(); 2].map(|()| world.event_loop());
    let token = pend_for_a_time(&mut late, &world, &EXCHANGER, Request::Hold(Hold::exchange(1)));
    world.clock.expire(&world.engine);
    pend(&mut other, &world, &EXCHANGER, Request::Hold(Hold::exchange(2)));
    assert_eq!(late.next_settled(), world.settled(token, Outcome::TimedOut));
    assert_eq!(other.next_settled(), None);
    other.end();
}

#[test]
fn a_party_whose_time_is_over_breaks_the_barrier_for_those_who_wait() {
    let world = World::new(false);
    let [mut late, mut other] = [(); 2].map(|()| world.event_loop());
    let party = Request::Hold(Hold::party(3));
    let late_token = pend_for_a_time(&mut late, &world, &BARRIER, party);
    let token = pend(&mut other, &world, &BARRIER, party);
    world.clock.expire(&world.engine);
    assert_eq!(other.next_settled(), world.settled(token, Outcome::Refused { found: 0 }));
    assert_eq!(late.next_settled(), world.settled(late_token, Outcome::TimedOut));
}

#[test]
fn a_set_whose_time_is_over_holds_nothing_though_its_loop_does_not_turn() {
    let (world, names) = world_of_names();
    let [mut holder, mut next] = [(); 2].map(|()| world.event_loop());
    let mut late = client_loop(world, names);
    let lock = Request::Hold(Hold::exclusive(HoldOwner::Thread));
    let [first, last] = [0, 1].map(|index| world.other(index));
    assert_eq!(holder.wait(&MUTEX, last, lock, Limit::Endless).unwrap(), Reply::Now(GRANTED));
    let all = [first, last].map(|place| (&MUTEX as &'static dyn Primitive, place, lock.hold().unwrap()));
    assert!(matches!(late.lock_all(&mut LockSet::new(all), Limit::after(PROMPT)), Ok(Reply::Pending { .. })));
    let token = pending(next.wait(&MUTEX, first, lock, Limit::Endless).unwrap());
    assert_eq!(next.next_settled(), None);
    world.clock.expire(&world.engine);
    assert_eq!(next.next_settled().map(|settled| (settled.token, settled.outcome)), Some((token, Ok(GRANTED))));
    assert_eq!(late.next_settled().map(|settled| settled.outcome), Some(Ok(Outcome::TimedOut)));
    assert_eq!((late.next_settled(), late.pending()), (None, 0));
    assert_eq!(world.others[0].load(Ordering::SeqCst), next.agent().id, "nothing went back twice");
}

#[test]
fn a_set_whose_next_lock_was_overwritten_gives_back_what_it_has() {
    let (world, names) = world_of_names();
    let mut holder = world.event_loop();
    let mut late = client_loop(world, names);
    let lock = Request::Hold(Hold::exclusive(HoldOwner::Thread));
    let [first, last] = [0, 1].map(|index| world.other(index));
    assert_eq!(holder.wait(&MUTEX, last, lock, Limit::Endless).unwrap(), Reply::Now(GRANTED));
    let all = [first, last].map(|place| (&MUTEX as &'static dyn Primitive, place, lock.hold().unwrap()));
    assert!(matches!(late.lock_all(&mut LockSet::new(all), Limit::after(PROMPT)), Ok(Reply::Pending { .. })));
    world.others[1].store(3, Ordering::SeqCst);
    late.agent().leave_notice(Notice::Offer(last.address()));
    assert_eq!(late.next_settled().map(|settled| settled.outcome), Some(Err(Corrupt)));
    assert_eq!(world.others[0].load(Ordering::SeqCst), 0, "before its code learns of it");
    assert_eq!((late.next_settled(), late.pending()), (None, 0));
}

#[test]
fn read_locks_of_a_set_go_back_at_its_deadline_and_those_of_its_threads_code_stay() {
    for owner in [HoldOwner::Thread, HoldOwner::Guard] {
        let (world, names) = world_of_names();
        let words: &'static [AtomicU32; 3] = Box::leak(Box::default());
        let counts: &'static [AtomicU32; 2] = Box::leak(Box::default());
        // SAFETY: aligned atomics that are never freed.
        let [read, last] = [0, 2].map(|index| unsafe { Place::new(NonNull::from(&words[index]), 4 * index) });
        let lock = Request::Hold(Hold::exclusive(HoldOwner::Thread));
        let shared = Hold::shared(owner);
        let mut holder = world.event_loop();
        assert_eq!(holder.wait(&MUTEX, last, lock, Limit::Endless).unwrap(), Reply::Now(GRANTED));
        let mut late = client_loop(world, names);
        // SAFETY: zero, and nobody else changes them.
        let slot = unsafe { Slot::new(late.agent().id, NonNull::from(counts)) };
        world.engine.add_slot(&RWLOCK, read, slot);
        let readers = || rwlock::Word(words[0].load(Ordering::SeqCst)).readers();
        let counted = || counts[usize::from(owner == HoldOwner::Guard)].load(Ordering::SeqCst);
        let begin = |late: &mut ClientLoop<'static>, limit| {
            let parts: [(&'static dyn Primitive, _, _); 2] =
                [(&RWLOCK, read, shared), (&MUTEX, last, lock.hold().unwrap())];
            assert!(matches!(late.lock_all(&mut LockSet::new(parts), limit), Ok(Reply::Pending { .. })));
        };
        assert_eq!(late.wait(&RWLOCK, read, Request::Hold(shared), Limit::Once).unwrap(), Reply::Now(GRANTED));
        begin(&mut late, Limit::after(PROMPT));
        // Another that is pending is not touched by it.
        begin(&mut late, Limit::Endless);
        assert_eq!((readers(), counted()), (3, 1), "what waits is not its code's");
        assert_eq!(world.engine.holders(&RWLOCK, read).registered, [(0, 3)], "and its thread's all the same");
        world.clock.expire(&world.engine);
        assert_eq!((readers(), counted()), (2, 1));
        assert_eq!(late.next_settled().map(|settled| settled.outcome), Some(Ok(Outcome::TimedOut)));
        assert_eq!((late.next_settled(), readers(), counted()), (None, 2, 1), "nothing goes back twice");
        assert!(world.engine.release(holder.agent(), &MUTEX, last, lock.hold().unwrap()).unwrap());
        assert_eq!(late.next_settled().map(|settled| settled.outcome), Some(Ok(GRANTED)));
        assert!(matches!(late.go_on(), Some(Ok(Reply::Now(GRANTED)))));
        assert_eq!((late.next_settled(), readers(), counted()), (None, 2, 2), "it is its code's now");
        assert!(world.engine.release(late.agent(), &MUTEX, last, lock.hold().unwrap()).unwrap());
        assert_eq!(holder.wait(&MUTEX, last, lock, Limit::Endless).unwrap(), Reply::Now(GRANTED));
        begin(&mut late, Limit::after(PROMPT));
        assert_eq!(readers(), 3);
        late.end();
        assert_eq!(readers(), 0, "all goes back with its thread");
    }
}

#[test]
fn a_lock_that_was_offered_to_a_loop_goes_to_others_at_its_deadline() {
    let run = Request::Hold(Hold::exclusive(HoldOwner::Thread));
    let cases: [(&'static dyn Primitive, Request); 3] = [(&MUTEX, run), (&RWLOCK, WRITE), (&SEMAPHORE, permits(2))];
    for (primitive, request) in cases {
        let world = World::new(false);
        let [mut holder, mut late, mut next] = [(); 3].map(|()| world.event_loop());
        take(&mut holder, &world, primitive, request);
        let late_token = pend_for_a_time(&mut late, &world, primitive, request);
        let token = pend(&mut next, &world, primitive, request);
        // It comes in vain, so that the next release keeps the lock for it.
        late.agent().leave_notice(Notice::Offer(world.place().address()));
        assert_eq!(late.next_settled(), None);
        assert!(world.engine.release(holder.agent(), primitive, world.place(), request.hold().unwrap()).unwrap());
        world.clock.expire(&world.engine);
        assert_eq!(next.next_settled(), world.settled(token, GRANTED), "{}", primitive.name());
        assert_eq!(late.next_settled(), world.settled(late_token, Outcome::TimedOut), "{}", primitive.name());
        assert_eq!((late.next_settled(), late.pending()), (None, 0));
    }
}

#[test]
fn a_wait_for_a_condition_whose_time_is_over_takes_no_notification_and_keeps_none() {
    let (world, me) = World::held();
    let mut late = EventLoop::new(&world.engine, Arc::clone(&me));
    let hold = Hold::exclusive(HoldOwner::Thread);
    let (place, lock) = (world.other(0), ConditionLock { primitive: &MUTEX, place: world.place(), hold });
    let token = pending(lock.wait_async(&mut late, place, Limit::after(PROMPT)).unwrap());
    world.clock.expire(&world.engine);
    assert_eq!((world.engine.waiting(place), world.engine.notify(place, 1)), (0, 0));
    let settled = late.next_settled().unwrap();
    assert_eq!((settled.token, settled.outcome), (token, Ok(Outcome::TimedOut)));
    assert_eq!((late.next_settled(), late.pending()), (None, 0));
    late.accept(token);
    late.end();
}

#[test]
fn a_wait_for_words_that_were_overwritten_ends_at_its_deadline() {
    let (world, _) = World::held();
    let mut late = world.event_loop();
    let lock = Request::Hold(Hold::exclusive(HoldOwner::Thread));
    let token = pend_for_a_time(&mut late, &world, &MUTEX, lock);
    world.words[0].store(3, Ordering::SeqCst);
    world.clock.expire(&world.engine);
    assert_eq!(late.next_settled(), world.settled(token, Outcome::TimedOut));
    assert_eq!((late.next_settled(), late.pending()), (None, 0));
    assert_eq!(world.engine.waiting(world.place()), 0);
}

#[test]
fn a_wait_that_is_over_is_collected_by_an_abort_and_by_the_end_of_its_thread() {
    let (world, _) = World::held();
    let lock = Request::Hold(Hold::exclusive(HoldOwner::Thread));
    let mut late = world.event_loop();
    let token = pend_for_a_time(&mut late, &world, &MUTEX, lock);
    world.clock.expire(&world.engine);
    assert_eq!(late.cancel(token), None, "too late");
    assert_eq!(late.next_settled(), world.settled(token, Outcome::TimedOut));
    pend_for_a_time(&mut late, &world, &MUTEX, lock);
    pend_for_a_time(&mut late, &world, &FUTEX, Request::Notification);
    world.clock.expire(&world.engine);
    late.end();
    assert_eq!(world.engine.stats().pending, 0);
}

#[test]
fn read_locks_beside_a_wait_stay_counted_though_their_slot_is_taken_in_anew() {
    for owner in [HoldOwner::Thread, HoldOwner::Guard] {
        for is_ending in [false, true] {
            let (world, names) = world_of_names();
            let [read, last] = [world.place(), world.other(0)];
            let lock = Hold::exclusive(HoldOwner::Thread);
            let mut holder = world.event_loop();
            assert_eq!(holder.wait(&MUTEX, last, Request::Hold(lock), Limit::Endless).unwrap(), Reply::Now(GRANTED));
            let mut waits = client_loop(world, names);
            let agent = Arc::clone(waits.agent());
            world.engine.add_slot(&RWLOCK, read, common::slot(&agent).0);
            let parts: [(&'static dyn Primitive, _, _); 2] =
                [(&RWLOCK, read, Hold::shared(owner)), (&MUTEX, last, lock)];
            assert!(matches!(waits.lock_all(&mut LockSet::new(parts), Limit::Endless), Ok(Reply::Pending { .. })));
            // As JS does that was interrupted and never learned of the first.
            let (slot, counts) = common::slot(&agent);
            world.engine.add_slot(&RWLOCK, read, slot);
            if !is_ending {
                assert!(world.engine.release(holder.agent(), &MUTEX, last, lock).unwrap());
                assert_eq!(waits.next_settled().map(|settled| settled.outcome), Some(Ok(GRANTED)));
                assert!(matches!(waits.go_on(), Some(Ok(Reply::Now(GRANTED)))));
                assert_eq!(counts[usize::from(owner == HoldOwner::Guard)].load(Ordering::SeqCst), 1, "{owner:?}");
                assert_eq!(waits.next_settled(), None);
            }
            waits.end();
            assert_eq!(world.word().readers(), 0, "{owner:?}, ending: {is_ending}");
        }
    }
}

#[test]
fn a_time_that_no_clock_can_count_is_for_ever() {
    assert_eq!(Limit::after(Duration::MAX), Limit::Endless);
}

#[test]
fn all_sets_of_a_thread_that_ends_while_it_waits_are_given_back_unmarked() {
    let (world, names) = world_of_names();
    let [first, second, last] = [world.place(), world.other(0), world.other(1)];
    let lock = Hold::exclusive(HoldOwner::Guard);
    let mut holder = world.event_loop();
    assert_eq!(holder.wait(&MUTEX, last, Request::Hold(lock), Limit::Endless).unwrap(), Reply::Now(GRANTED));
    let mut ending = client_loop(world, names);
    for place in [first, second] {
        let parts = [place, last].map(|place| (&MUTEX as &'static dyn Primitive, place, lock));
        assert!(matches!(ending.lock_all(&mut LockSet::new(parts), Limit::Endless), Ok(Reply::Pending { .. })));
    }
    ending.end();
    assert_eq!([first, second].map(|place| place.word().load(Ordering::SeqCst)), [0, 0]);
}
