//! Whose turn it is between readers and writers, threads that block and loops that await.
#![cfg(not(loom))]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use common::{ACQUIRED, PROMPT, READ, WRITE, World};
use sablock::agents::{Agent, Notice};
use sablock::engine::{Change, EventLoop, HoldOwner, Limit, Outcome, Patience, Request};
use sablock::primitives::mutex::{RESERVED, WAITING};
use sablock::primitives::rwlock::{RWLOCK, SHARED};

fn pend(waits: &mut EventLoop<'_>, world: &World, request: Request) -> u32 {
    common::pend(waits, world, &RWLOCK, request)
}

/// The loop comes, as for an offer, and is not let in.
fn comes_in_vain(waits: &mut EventLoop<'_>, world: &World) {
    waits.agent().leave_notice(Notice::Offer(world.place().address()));
    assert_eq!(waits.next_settled(), None);
}

/// As JS enters a free word to read, of which the core sees nothing.
fn read_fast(world: &World) {
    world.words[0].compare_exchange(0, SHARED | 1, Ordering::SeqCst, Ordering::SeqCst).expect("a free word");
}

/// A loop that waits to write, was offered the lock, and does not come, with a reader inside.
fn stalled_writer<'w>(world: &'w World, reader: &Arc<Agent>) -> EventLoop<'w> {
    let mut stalled = world.event_loop();
    assert_eq!(world.enter(reader, READ, Limit::Once), ACQUIRED);
    pend(&mut stalled, world, WRITE);
    world.exit(reader, READ);
    read_fast(world);
    stalled
}

#[test]
fn a_reader_whose_slice_is_over_does_not_pass_a_writer_that_waits() {
    let world = &World::with(Patience { slice: Duration::from_millis(1), ..Patience::default() });
    let first = world.agent(0);
    assert_eq!(world.enter(&first, READ, Limit::Once), ACQUIRED);
    let mut writer = world.event_loop();
    let token = pend(&mut writer, world, WRITE);
    comes_in_vain(&mut writer, world);
    let slices = &AtomicUsize::new(0);
    thread::scope(|scope| {
        let behind = scope.spawn(|| {
            let agent = world.agent(1);
            let mut pause = || {
                slices.fetch_add(1, Ordering::SeqCst);
                true
            };
            let limit = Limit::after(PROMPT);
            assert_eq!(world.engine.wait(&agent, &RWLOCK, world.place(), READ, limit, &mut pause).unwrap(), ACQUIRED);
            assert_eq!(world.word().readers(), 1, "it reads after the writer, alone");
            world.exit(&agent, READ);
        });
        world.until("three slices, or the reader is in", |world| {
            slices.load(Ordering::SeqCst) > 2 || world.word().readers() == 2
        });
        assert_eq!(world.word().readers(), 1, "a writer waits ahead of it");
        world.exit(&first, READ);
        assert_eq!(writer.next_settled(), world.settled(token, ACQUIRED));
        world.exit(&Arc::clone(writer.agent()), WRITE);
        behind.join().unwrap();
    });
    assert_eq!(world.value(), 0);
}

#[test]
fn a_loop_that_comes_to_read_does_not_pass_a_writer_that_waits() {
    let world = World::new(false);
    let first = world.agent(0);
    assert_eq!(world.enter(&first, READ, Limit::Once), ACQUIRED);
    let mut loops = [WRITE, READ].map(|request| {
        let mut waits = world.event_loop();
        let token = pend(&mut waits, &world, request);
        (waits, token)
    });
    let [(writer, written), (reader, read)] = &mut loops;
    comes_in_vain(writer, &world);
    comes_in_vain(reader, &world);
    assert_eq!(world.word().readers(), 1);
    world.exit(&first, READ);
    assert_eq!(reader.next_settled(), None, "the writer is first");
    assert_eq!(writer.next_settled(), world.settled(*written, ACQUIRED));
    world.exit(&Arc::clone(writer.agent()), WRITE);
    assert_eq!(reader.next_settled(), world.settled(*read, ACQUIRED));
}

#[test]
fn a_blocked_reader_passes_the_write_of_a_loop_that_was_offered_the_lock_and_does_not_come() {
    let world = &World::new(false);
    let [first, second] = [0, 1].map(|thread| world.agent(thread));
    let _stalled = stalled_writer(world, &first);
    assert_eq!(world.enter(&second, READ, Limit::after(PROMPT)), ACQUIRED);
    assert_eq!(world.word().readers(), 2);
}

#[test]
fn a_loop_that_reads_passes_the_write_of_a_loop_that_was_offered_the_lock_and_does_not_come() {
    let world = &World::new(false);
    let _stalled = stalled_writer(world, &world.agent(0));
    let mut reader = world.event_loop();
    let token = pend(&mut reader, world, READ);
    assert_eq!(reader.next_settled(), world.settled(token, ACQUIRED));
    assert_eq!(world.word().readers(), 2);
}

#[test]
fn a_loop_that_writes_and_comes_after_all_is_the_next_to_get_in() {
    let world = &World::new(false);
    let [first, second] = [0, 1].map(|thread| world.agent(thread));
    let mut writer = stalled_writer(world, &first);
    assert_eq!(writer.next_settled(), None, "it comes, and a reader is in");
    assert_eq!(world.enter(&second, READ, Limit::Once), Outcome::TimedOut);
    let mut reader = world.event_loop();
    let token = pend(&mut reader, world, READ);
    assert_eq!(reader.next_settled(), None, "behind the writer");
    world.exit(&first, READ);
    assert_eq!(world.value(), RESERVED | WAITING);
    assert!(writer.next_settled().is_some());
    world.exit(&Arc::clone(writer.agent()), WRITE);
    assert_eq!(reader.next_settled(), world.settled(token, ACQUIRED));
}

#[test]
fn the_lock_is_kept_for_a_loop_that_came_in_vain_to_read() {
    let world = World::new(false);
    let writer = world.agent(0);
    assert_eq!(world.enter(&writer, WRITE, Limit::Once), ACQUIRED);
    let mut reader = world.event_loop();
    let token = pend(&mut reader, &world, READ);
    comes_in_vain(&mut reader, &world);
    world.exit(&writer, WRITE);
    assert_eq!((world.word().readers(), world.word().writer()), (0, 0));
    assert_eq!(world.enter(&writer, WRITE, Limit::Once), Outcome::TimedOut, "kept for the reader");
    assert_eq!(reader.next_settled(), world.settled(token, ACQUIRED));
    world.exit(&Arc::clone(reader.agent()), READ);
    assert_eq!(world.value(), 0);
}

#[test]
fn with_the_loop_that_the_lock_was_kept_for_all_of_its_readers_and_those_of_others_go_in() {
    let world = World::new(false);
    let writer = world.agent(0);
    assert_eq!(world.enter(&writer, WRITE, Limit::Once), ACQUIRED);
    let (mut reader, mut other) = (world.event_loop(), world.event_loop());
    let tokens = [(); 2].map(|()| pend(&mut reader, &world, READ));
    let beside = pend(&mut other, &world, READ);
    comes_in_vain(&mut reader, &world);
    world.exit(&writer, WRITE);
    assert_eq!(world.enter(&writer, WRITE, Limit::Once), Outcome::TimedOut, "kept for the readers");
    for token in tokens {
        assert_eq!(reader.next_settled(), world.settled(token, ACQUIRED));
    }
    assert_eq!(other.next_settled(), world.settled(beside, ACQUIRED));
    assert_eq!(world.word().readers(), 3);
}

#[test]
fn others_read_beside_a_loop_that_the_lock_is_kept_for_and_writers_wait_until_its_lease_is_over() {
    let world = World::new(false);
    let [writer, other] = [0, 1].map(|thread| world.agent(thread));
    assert_eq!(world.enter(&writer, WRITE, Limit::Once), ACQUIRED);
    let mut reader = world.event_loop();
    pend(&mut reader, &world, READ);
    comes_in_vain(&mut reader, &world);
    world.exit(&writer, WRITE);
    for _ in 0..2 {
        assert_eq!(world.enter(&other, READ, Limit::after(PROMPT)), ACQUIRED);
        assert_eq!((world.word().readers(), world.enter(&writer, WRITE, Limit::Once)), (1, Outcome::TimedOut));
        world.exit(&other, READ);
        assert_eq!(world.enter(&writer, WRITE, Limit::Once), Outcome::TimedOut, "still kept");
    }
    assert_eq!(world.enter(&other, READ, Limit::after(PROMPT)), ACQUIRED);
    assert_eq!(world.clock.end_leases(&world.engine).len(), 1);
    assert_eq!(world.word().readers(), 1);
    world.exit(&other, READ);
    assert_eq!(world.enter(&writer, WRITE, Limit::Once), ACQUIRED);
}

#[test]
fn each_of_several_loops_that_came_in_vain_to_read_has_its_turn_before_the_next_writer() {
    let world = World::new(false);
    let writer = world.agent(0);
    assert_eq!(world.enter(&writer, WRITE, Limit::Once), ACQUIRED);
    let mut loops = [(); 3].map(|()| world.event_loop());
    let tokens = loops.each_mut().map(|waits| pend(waits, &world, READ));
    for waits in &mut loops {
        comes_in_vain(waits, &world);
    }
    world.exit(&writer, WRITE);
    for (waits, token) in loops.iter_mut().zip(tokens) {
        assert_eq!(world.enter(&writer, WRITE, Limit::Once), Outcome::TimedOut, "kept for the next reader");
        assert_eq!(waits.next_settled(), world.settled(token, ACQUIRED));
        world.exit(&Arc::clone(waits.agent()), READ);
    }
    assert_eq!(world.enter(&writer, WRITE, Limit::Once), ACQUIRED);
}

#[test]
fn a_loop_that_comes_to_read_and_finds_an_ended_writer_lets_the_writer_ahead_of_it_in() {
    let world = World::new(false);
    let ending = world.agent(0);
    assert_eq!(world.enter(&ending, WRITE, Limit::Once), ACQUIRED);
    let (mut writer, mut reader) = (world.event_loop(), world.event_loop());
    let written = pend(&mut writer, &world, WRITE);
    pend(&mut reader, &world, READ);
    comes_in_vain(&mut writer, &world);
    // Between the end and the scan, which will not find the owner any more.
    world.engine.agents.remove(ending.id);
    comes_in_vain(&mut reader, &world);
    world.engine.thread_ended(ending.id);
    let outcome = Outcome::granted(Some(ending.id));
    assert_eq!(writer.next_settled(), world.settled(written, outcome));
}

#[test]
fn a_blocked_reader_whose_slice_is_over_and_finds_an_ended_writer_lets_the_writer_ahead_of_it_in() {
    let world = &World::with(Patience { slice: Duration::from_millis(1), ..Patience::default() });
    let ending = world.agent(0);
    assert_eq!(world.enter(&ending, WRITE, Limit::Once), ACQUIRED);
    let mut writer = world.event_loop();
    let written = pend(&mut writer, world, WRITE);
    comes_in_vain(&mut writer, world);
    thread::scope(|scope| {
        scope.spawn(|| {
            let agent = world.agent(1);
            let outcome = world.enter(&agent, READ, Limit::after(PROMPT));
            assert!(matches!(outcome, Outcome::Granted { abandoned_by: None, .. }), "{outcome:?}");
            world.exit(&agent, READ);
        });
        world.until_waiting(&RWLOCK, 2);
        world.engine.agents.remove(ending.id);
        world.until("the owner is freed", |world| world.word().writer() == 0);
        world.engine.thread_ended(ending.id);
        let outcome = Outcome::granted(Some(ending.id));
        assert_eq!(writer.next_settled(), world.settled(written, outcome));
        world.exit(&Arc::clone(writer.agent()), WRITE);
    });
}

#[test]
fn a_loop_that_comes_to_read_goes_in_before_the_write_of_a_loop_behind_it() {
    let world = World::new(false);
    let first = world.agent(0);
    assert_eq!(world.enter(&first, WRITE, Limit::Once), ACQUIRED);
    let [mut reader, mut writer] = [(); 2].map(|()| world.event_loop());
    let token = pend(&mut reader, &world, READ);
    pend(&mut writer, &world, WRITE);
    comes_in_vain(&mut writer, &world);
    world.engine.change(&first, &RWLOCK, world.place(), Change::Downgrade(HoldOwner::Thread)).unwrap();
    assert_eq!(reader.next_settled(), world.settled(token, ACQUIRED));
    assert_eq!(world.word().readers(), 2);
    writer.end();
}

#[test]
fn a_loop_that_comes_to_read_goes_in_beside_one_ahead_of_it_that_the_lock_is_kept_for() {
    let world = World::new(false);
    let first = world.agent(0);
    assert_eq!(world.enter(&first, WRITE, Limit::Once), ACQUIRED);
    let mut loops = [(); 2].map(|()| {
        let mut waits = world.event_loop();
        let token = pend(&mut waits, &world, READ);
        comes_in_vain(&mut waits, &world);
        (waits, token)
    });
    world.exit(&first, WRITE);
    assert_eq!(world.value(), SHARED | RESERVED | WAITING, "kept for the one ahead");
    for (waits, token) in loops.iter_mut().rev() {
        assert_eq!(waits.next_settled(), world.settled(*token, ACQUIRED));
    }
    assert_eq!(world.word().readers(), 2);
}

#[test]
fn a_loop_that_comes_to_read_does_not_pass_a_writer_that_is_not_the_first_in_line() {
    let world = World::new(false);
    let first = world.agent(0);
    assert_eq!(world.enter(&first, WRITE, Limit::Once), ACQUIRED);
    let mut loops = [READ, WRITE, READ].map(|request| {
        let mut waits = world.event_loop();
        pend(&mut waits, &world, request);
        waits
    });
    comes_in_vain(&mut loops[1], &world);
    world.engine.change(&first, &RWLOCK, world.place(), Change::Downgrade(HoldOwner::Thread)).unwrap();
    comes_in_vain(&mut loops[2], &world);
    assert!(loops[0].next_settled().is_some(), "ahead of the writer");
    loops.into_iter().for_each(EventLoop::end);
}
