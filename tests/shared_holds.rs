//! Holds that many have at once, by the readers-writer lock: loops and threads enter together, and pass no writer.
#![cfg(not(loom))]

mod common;

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;

use common::{PROMPT, READ, WRITE, World, pending, slot};
use sablock::agents::{Agent, Notice};
use sablock::engine::{Change, Corrupt, EventLoop, Failure, HoldOwner, Limit, Outcome, Request};
use sablock::memory::Place;
use sablock::primitives::mutex::ABANDONED;
use sablock::primitives::rwlock::RWLOCK;

const GRANTED: Outcome = Outcome::GRANTED;

fn pend(waits: &mut EventLoop<'_>, world: &World, request: Request) -> u32 {
    common::pend(waits, world, &RWLOCK, request)
}

fn change(world: &World, change: Change, agent: &Arc<Agent>) -> Result<bool, Corrupt> {
    Ok(world.engine.change(agent, &RWLOCK, world.place(), change)?.is_some())
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
    assert_eq!(world.value(), 0);
}

#[test]
fn loops_that_come_for_shared_holds_enter_beside_those_who_are_in() {
    let world = World::new(false);
    let writer = world.agent(0);
    assert_eq!(world.enter(&writer, WRITE, Limit::Once), GRANTED);
    let mut loops = [world.event_loop(), world.event_loop()];
    let tokens = [0, 1].map(|index| pend(&mut loops[index], &world, READ));
    world.exit(&writer, WRITE);
    for (waits, token) in loops.iter_mut().zip(tokens) {
        assert_eq!(waits.next_settled(), world.settled(token, GRANTED));
    }
    assert_eq!(world.word().readers(), 2);
}

#[test]
fn a_loop_that_waits_for_two_shared_holds_gets_both() {
    let world = World::new(false);
    let writer = world.agent(0);
    assert_eq!(world.enter(&writer, WRITE, Limit::Once), GRANTED);
    let mut waits = world.event_loop();
    let tokens = [(); 2].map(|()| pend(&mut waits, &world, READ));
    world.exit(&writer, WRITE);
    assert_eq!(tokens.map(|_| waits.next_settled()), tokens.map(|token| world.settled(token, GRANTED)));
}

/// A writer of a loop comes in vain while readers are in, and one who wants to read waits behind it: the writer is next once they
/// `leave`.
fn a_writer_that_came_in_vain_is_next(world: &World, leave: impl FnOnce()) {
    let mut waits = world.event_loop();
    let token = pend(&mut waits, world, WRITE);
    thread::scope(|scope| {
        let behind = scope.spawn(|| world.enter_once(READ));
        world.until_waiting(&RWLOCK, 2);
        // It comes, finds a reader in, and is remembered.
        waits.agent().notify(Notice::Offer(world.place().address()));
        assert_eq!(waits.next_settled(), None);
        leave();
        assert_eq!(waits.next_settled(), world.settled(token, GRANTED));
        assert_ne!(world.word().writer(), 0);
        let agent = Arc::clone(waits.agent());
        world.exit(&agent, WRITE);
        behind.join().unwrap();
    });
    assert_eq!(world.word().readers(), 0);
}

#[test]
fn readers_do_not_pass_a_writer_of_a_loop_that_came_in_vain() {
    let world = &World::new(false);
    let reader = world.agent(0);
    assert_eq!(world.enter(&reader, READ, Limit::Once), GRANTED);
    a_writer_that_came_in_vain_is_next(world, || world.exit(&reader, READ));
}

#[test]
fn readers_do_not_pass_a_writer_that_came_in_vain_while_others_are_in() {
    let world = &World::new(false);
    let [first, second] = [0, 1].map(|thread| world.agent(thread));
    for reader in [&first, &second] {
        assert_eq!(world.enter(reader, READ, Limit::Once), GRANTED);
    }
    a_writer_that_came_in_vain_is_next(world, || {
        world.exit(&first, READ);
        let waiting = world.engine.inspect(&RWLOCK, world.place()).waiters.len();
        assert_eq!(waiting, 2, "nobody has passed the writer");
        world.exit(&second, READ);
    });
}

#[test]
fn a_read_hold_of_a_thread_that_ends_goes_back_and_the_writer_gets_in() {
    let world = World::new(false);
    let doomed = world.event_loop();
    let reader = Arc::clone(doomed.agent());
    world.engine.add_slot(&RWLOCK, world.place(), slot(&reader).0);
    assert_eq!(world.enter(&reader, READ, Limit::Once), GRANTED);
    let mut waits = world.event_loop();
    let token = pend(&mut waits, &world, WRITE);
    doomed.end();
    assert_eq!(waits.next_settled(), world.settled(token, GRANTED), "unmarked");
    assert_eq!(world.word().writer(), waits.agent().id);
}

#[test]
fn the_register_of_one_thread_stays_when_that_of_another_goes() {
    type Goes = fn(&World, EventLoop<'_>);
    let ways: [(&str, Goes); 2] = [
        ("ends", |_, other| other.end()),
        ("frees its slot", |world, other| {
            assert!(world.engine.free_slot(&RWLOCK, world.place(), other.agent().id));
        }),
    ];
    for (way, goes) in ways {
        let world = World::new(false);
        let [doomed, other] = [(); 2].map(|()| world.event_loop());
        for waits in [&doomed, &other] {
            world.engine.add_slot(&RWLOCK, world.place(), slot(waits.agent()).0);
        }
        assert_eq!(world.enter(doomed.agent(), READ, Limit::Once), GRANTED);
        goes(&world, other);
        doomed.end();
        assert_eq!(world.value(), 0, "another {way}");
    }
}

#[test]
fn the_register_of_a_thread_that_ends_is_gone_though_the_word_was_overwritten() {
    let world = World::new(false);
    let doomed = world.event_loop();
    world.engine.add_slot(&RWLOCK, world.place(), slot(doomed.agent()).0);
    assert_eq!(world.enter(doomed.agent(), READ, Limit::Once), GRANTED);
    world.words[0].store(1 << 31, Ordering::SeqCst);
    doomed.end();
    assert!(world.engine.holders(&RWLOCK, world.place()).registered.is_empty());
    assert_eq!(world.value(), 1 << 31);
}

#[test]
fn a_writer_that_ends_inside_marks_the_lock_for_readers_too() {
    let world = World::new(false);
    let doomed = world.event_loop();
    let writer = Arc::clone(doomed.agent());
    assert_eq!(world.enter(&writer, WRITE, Limit::Once), GRANTED);
    doomed.end();
    let reader = world.agent(0);
    assert_eq!(world.enter(&reader, READ, Limit::Once), Outcome::granted(Some(writer.id)));
    assert!(world.word().is_abandoned());
    world.exit(&reader, READ);
    assert!(world.word().is_abandoned(), "until somebody marks it consistent");
}

#[test]
fn who_reads_and_blocks_to_read_behind_a_write_of_its_own_loop_is_in_a_deadlock_though_that_has_a_signal() {
    let world = World::with_slices(false);
    let mut waits = world.event_loop();
    let agent = Arc::clone(waits.agent());
    world.engine.add_slot(&RWLOCK, world.place(), slot(&agent).0);
    assert_eq!(world.enter(&agent, READ, Limit::Once), GRANTED);
    let token = pending(waits.wait(&RWLOCK, world.place(), WRITE, Limit::Revocable).unwrap());
    let mut pauses = 0;
    let mut is_patient = || {
        pauses += 1;
        pauses < 20
    };
    let found = world.engine.wait(&agent, &RWLOCK, world.place(), READ, Limit::Endless, &mut is_patient);
    assert!(matches!(&found, Err(Failure::Deadlock(cycle)) if cycle.len() == 1), "{found:?}");
    world.exit(&agent, READ);
    assert_eq!(waits.next_settled(), world.settled(token, GRANTED));
}

#[test]
fn who_blocks_behind_a_write_of_its_own_loop_that_has_a_time_limit_is_in_no_deadlock() {
    let world = World::with_slices(false);
    let mut waits = world.event_loop();
    let agent = Arc::clone(waits.agent());
    world.engine.add_slot(&RWLOCK, world.place(), slot(&agent).0);
    assert_eq!(world.enter(&agent, READ, Limit::Once), GRANTED);
    let token = pending(waits.wait(&RWLOCK, world.place(), WRITE, Limit::after(PROMPT)).unwrap());
    let mut time_is_over = || {
        world.clock.expire(&world.engine);
        true
    };
    let found = world.engine.wait(&agent, &RWLOCK, world.place(), READ, Limit::Endless, &mut time_is_over);
    assert_eq!(found.unwrap(), GRANTED);
    assert_eq!(waits.next_settled(), world.settled(token, Outcome::TimedOut));
}

#[test]
fn a_reader_that_would_wait_behind_a_writer_that_waits_for_it_is_in_a_deadlock() {
    let world = &World::with_slices(false);
    let reader = world.agent(7);
    world.engine.add_slot(&RWLOCK, world.place(), slot(&reader).0);
    assert_eq!(world.enter(&reader, READ, Limit::Once), GRANTED);
    let lock = |agent: &Arc<Agent>, request, pause: &mut dyn FnMut() -> bool| {
        world.engine.wait(agent, &RWLOCK, world.place(), request, Limit::Endless, &mut || pause())
    };
    let refused = lock(&reader, WRITE, &mut || true);
    assert!(matches!(refused, Err(Failure::Deadlock(cycle)) if cycle.len() == 1), "write inside read");
    // Until the writer has looked for a circle itself, it may be the one that finds it.
    let has_slept = &AtomicBool::new(false);
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let agent = world.agent(8);
            let mut pause = || {
                has_slept.store(true, Ordering::SeqCst);
                true
            };
            assert_eq!(lock(&agent, WRITE, &mut pause).unwrap(), GRANTED);
            world.exit(&agent, WRITE);
        });
        world.until("a writer that sleeps", |_| has_slept.load(Ordering::SeqCst));
        let Err(Failure::Deadlock(cycle)) = lock(&reader, READ, &mut || true) else { panic!("read inside read") };
        // The writer only stands in line: it holds nothing.
        assert_eq!(cycle.iter().map(|hop| hop.thread).collect::<Vec<_>>(), [7]);
        world.exit(&reader, READ);
        writer.join().unwrap();
    });
    assert_eq!(world.value(), 0);
}

#[test]
fn a_writer_turns_into_a_reader_and_lets_readers_in_and_the_only_reader_into_a_writer() {
    let world = &World::new(false);
    let [me, other] = [0, 1].map(|thread| world.agent(thread));
    world.engine.add_slot(&RWLOCK, world.place(), slot(&me).0);
    world.engine.add_slot(&RWLOCK, world.place(), slot(&other).0);
    assert_eq!(world.enter(&me, WRITE, Limit::Once), GRANTED);
    let mut waits = world.event_loop();
    let token = pend(&mut waits, world, READ);
    assert_eq!(change(world, Change::Downgrade(HoldOwner::Thread), &other), Ok(false));
    assert_eq!(change(world, Change::Downgrade(HoldOwner::Thread), &me), Ok(true));
    assert_eq!(waits.next_settled(), world.settled(token, GRANTED));
    assert_eq!(world.word().readers(), 2);
    assert_eq!(change(world, Change::Upgrade(HoldOwner::Thread), &me), Ok(false), "two readers");
    let agent = Arc::clone(waits.agent());
    world.exit(&agent, READ);
    let mut behind = world.event_loop();
    let token = pend(&mut behind, world, WRITE);
    assert_eq!(change(world, Change::Upgrade(HoldOwner::Thread), &me), Ok(false), "a writer waits");
    assert!(behind.cancel(token).is_some());
    assert_eq!(change(world, Change::Upgrade(HoldOwner::Thread), &me), Ok(true));
    assert_eq!(world.word().writer(), me.id);
    assert!(world.engine.inspect(&RWLOCK, world.place()).registered.is_empty());
}

#[test]
fn a_thread_that_has_read_before_takes_nothing_from_a_writer_when_it_ends() {
    let world = World::new(false);
    for is_reserved in [false, true] {
        let doomed = world.event_loop();
        let reader = Arc::clone(doomed.agent());
        world.engine.add_slot(&RWLOCK, world.place(), slot(&reader).0);
        assert_eq!(world.enter(&reader, READ, Limit::Once), GRANTED);
        world.exit(&reader, READ);
        let mut waits = world.event_loop();
        let writer = world.agent(0);
        assert_eq!(world.enter(&writer, WRITE, Limit::Once), GRANTED);
        let token = is_reserved.then(|| pend(&mut waits, &world, WRITE));
        if is_reserved {
            // It comes in vain once, so that the lock is then kept for it.
            waits.agent().notify(Notice::Offer(world.place().address()));
            assert_eq!(waits.next_settled(), None);
            world.exit(&writer, WRITE);
            assert_ne!(world.word().0, 0, "reserved");
        }
        doomed.end();
        if let Some(token) = token {
            assert_eq!(waits.next_settled(), world.settled(token, GRANTED));
            let agent = Arc::clone(waits.agent());
            world.exit(&agent, WRITE);
        } else {
            assert_eq!(world.word().writer(), writer.id, "still written under");
            world.exit(&writer, WRITE);
        }
        assert_eq!(world.word().0, 0);
    }
}

#[test]
fn who_knows_the_memory_since_an_end_only_is_not_told_of_it() {
    let world = World::new(false);
    let ending = world.agent(0);
    let before = world.engine.moment();
    let (registered, _) = slot(&ending);
    world.engine.add_slot(&RWLOCK, world.place(), registered);
    assert_eq!(world.enter(&ending, READ, Limit::Once), GRANTED);
    world.engine.thread_ended(ending.id);
    let since = world.engine.moment();
    assert_eq!(world.engine.take_ended(&RWLOCK, world.place(), since), [], "it may have been other memory");
    assert_eq!(world.engine.take_ended(&RWLOCK, world.place(), before), [ending.id]);
    assert_eq!(world.engine.take_ended(&RWLOCK, world.place(), before), [], "once");
}

#[test]
fn an_end_is_told_of_at_each_place_by_itself() {
    // More places than the engine has buckets.
    let words: &'static [AtomicU32; 16] = Box::leak(Box::default());
    // SAFETY: two aligned atomics that are never freed.
    let places = [0, 1, 2, 3, 4, 5, 6, 7].map(|index| unsafe { Place::new((&words[2 * index]).into(), 8 * index) });
    let world = World::new(false);
    let (ending, before) = (world.agent(0), world.engine.moment());
    for place in places {
        world.engine.add_slot(&RWLOCK, place, slot(&ending).0);
        let read = world.engine.wait(&ending, &RWLOCK, place, READ, Limit::Once, &mut || true);
        assert_eq!(read.unwrap(), GRANTED);
    }
    world.engine.thread_ended(ending.id);
    for place in places {
        assert!(world.engine.has_ended(place));
        assert_eq!(world.engine.take_ended(&RWLOCK, place, before), [ending.id], "{}", place.byte_offset);
        assert!(!world.engine.has_ended(place));
    }
}

#[test]
fn the_second_word_says_that_somebody_waits_though_the_lock_is_free() {
    let world = &World::new(false);
    let holder = world.agent(0);
    let hint = || world.place().second_word().load(Ordering::SeqCst);
    assert_eq!(world.enter(&holder, WRITE, Limit::Once), GRANTED);
    let mut waits = world.event_loop();
    let token = pend(&mut waits, world, WRITE);
    world.exit(&holder, WRITE);
    // It was offered the lock, and has not come.
    assert_eq!((world.value(), hint()), (0, 1));
    assert_eq!(world.enter(&holder, READ, Limit::Once), Outcome::TimedOut);
    assert_eq!(waits.next_settled(), world.settled(token, GRANTED));
    assert_eq!(hint(), 0);
}

#[test]
fn the_mark_of_a_writer_that_ended_stays_however_those_leave_who_read_after_it() {
    type Leaves = fn(&World, EventLoop<'_>);
    let ways: [(&str, Leaves); 2] =
        [("unlocks", |world, reader| world.exit(reader.agent(), READ)), ("ends", |_, reader| reader.end())];
    for (way, leaves) in ways {
        let world = World::new(false);
        let [doomed, reader] = [(); 2].map(|()| world.event_loop());
        assert_eq!(world.enter(doomed.agent(), WRITE, Limit::Once), GRANTED);
        let ended = doomed.agent().id;
        doomed.end();
        world.engine.add_slot(&RWLOCK, world.place(), slot(reader.agent()).0);
        assert_eq!(world.enter(reader.agent(), READ, Limit::Once), Outcome::granted(Some(ended)));
        leaves(&world, reader);
        assert_eq!((world.word().readers(), world.value() & ABANDONED), (0, ABANDONED), "the reader {way}");
    }
}

#[test]
fn read_holds_of_a_thread_that_ends_go_back_though_another_lock_that_it_read_was_overwritten() {
    for overwritten in 0..2 {
        let world = World::new(false);
        let doomed = world.event_loop();
        let places = [world.place(), world.other(0)];
        for place in places {
            world.engine.add_slot(&RWLOCK, place, slot(doomed.agent()).0);
            world.engine.wait(doomed.agent(), &RWLOCK, place, READ, Limit::Once, &mut || true).unwrap();
        }
        places[overwritten].word().store(1 << 31, Ordering::SeqCst);
        doomed.end();
        assert_eq!(places[1 - overwritten].word().load(Ordering::SeqCst), 0, "but {overwritten}");
    }
}
