//! The register of holds: what a thread that ends has held goes back.

use sablock::primitives::rwlock::RWLOCK;

use super::common::slot;
use super::*;

#[test]
fn what_the_register_says_of_a_thread_that_ends_goes_back() {
    let world = World::new(false);
    let ending = world.event_loop();
    let agent = Arc::clone(ending.agent());
    let (slot, counts) = slot(&agent);
    world.engine.add_slot(&FAIR_SEMAPHORE, world.place(), slot);
    assert_eq!(world.acquire(&agent, 2, Limit::Once), GRANTED);
    assert_eq!(counts[1].load(Ordering::SeqCst), 2, "the slow path writes the slot too");
    assert!(!world.engine.free_slot(&FAIR_SEMAPHORE, world.place(), agent.id), "in use");
    world.release(&agent, 1);
    assert_eq!(counts[1].load(Ordering::SeqCst), 1);
    assert_eq!(world.engine.inspect(&FAIR_SEMAPHORE, world.place()).registered, [(agent.thread, 1)]);
    let mut next = world.event_loop();
    let token = pend(&mut next, &world, &FAIR_SEMAPHORE, permits(2));
    ending.end();
    assert_eq!(next.next_settled(), settled(&world, token));
    assert_eq!(world.taken() & !(1 << 31), 2);
}

#[test]
fn a_slot_with_a_hold_of_any_owner_is_in_use() {
    for owner in [HoldOwner::Thread, HoldOwner::Guard] {
        let world = World::new(false);
        let ending = world.event_loop();
        let agent = Arc::clone(ending.agent());
        world.engine.add_slot(&RWLOCK, world.place(), slot(&agent).0);
        let read = Request::Hold(Hold::shared(owner));
        assert_eq!(world.enter(&agent, read, Limit::Once), GRANTED);
        assert!(!world.engine.free_slot(&RWLOCK, world.place(), agent.id), "{owner:?}");
        ending.end();
        assert_eq!(world.word().readers(), 0, "{owner:?}: it goes back with its thread");
    }
}

#[test]
fn ended_holds_are_reported_once_of_their_own_primitive() {
    let world = World::new(false);
    let end_with = |count| {
        let doomed = world.event_loop();
        let agent = Arc::clone(doomed.agent());
        world.engine.add_slot(&FAIR_SEMAPHORE, world.place(), slot(&agent).0);
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
    assert!(!world.engine.has_ended(world.other(0)), "another place");
    assert_eq!(world.engine.take_ended(&FAIR_SEMAPHORE, world.place(), 0), ended);
    assert!(!world.engine.has_ended(world.place()));
    end_with(1);
    assert_eq!(world.engine.take_ended(&LATCH, world.place(), 0), [], "its memory is a latch's now");
    assert!(!world.engine.has_ended(world.place()));
}

#[test]
fn ended_holds_that_nobody_learns_of_do_not_pile_up() {
    let world = World::new(false);
    let ended = [(); 1000].map(|()| {
        let doomed = world.event_loop();
        let agent = Arc::clone(doomed.agent());
        world.engine.add_slot(&FAIR_SEMAPHORE, world.place(), slot(&agent).0);
        assert_eq!(world.acquire(&agent, 1, Limit::Once), GRANTED);
        doomed.end();
        agent.id
    });
    assert_eq!(world.engine.stats().ended, 1000);
    let kept = world.engine.take_ended(&FAIR_SEMAPHORE, world.place(), 0);
    assert!((1..=100).contains(&kept.len()), "{}", kept.len());
    assert!(ended.ends_with(&kept), "the oldest go: {kept:?}");
    assert!(!world.engine.has_ended(world.place()));
}

#[test]
fn a_slot_takes_the_place_of_one_for_another_primitive() {
    let world = World::new(false);
    let doomed = world.event_loop();
    let agent = Arc::clone(doomed.agent());
    world.engine.add_slot(&LATCH, world.place(), slot(&agent).0);
    let (slot, counts) = slot(&agent);
    world.engine.add_slot(&FAIR_SEMAPHORE, world.place(), slot);
    assert_eq!(world.acquire(&agent, 2, Limit::Once), GRANTED);
    assert_eq!(counts[1].load(Ordering::SeqCst), 2);
    doomed.end();
    assert_eq!(world.taken(), 0, "given back as permits");
}

#[test]
fn entries_of_a_thread_that_ends_are_counted_down() {
    let world = World::new(false);
    let ending = world.event_loop();
    let agent = Arc::clone(ending.agent());
    let (slot, _) = slot(&agent);
    world.engine.add_slot(&LATCH, world.place(), slot);
    let entry = Request::Hold(Hold::entries(1));
    assert_eq!(world.engine.wait(&agent, &LATCH, world.place(), entry, Limit::Once, &mut || true).unwrap(), GRANTED);
    let mut waits = world.event_loop();
    let token = pend(&mut waits, &world, &LATCH, Request::Hold(Hold::PASSAGE));
    ending.end();
    assert_eq!(waits.next_settled(), settled(&world, token));
    assert_eq!(world.words[0].load(Ordering::SeqCst), 0);
}

#[test]
fn permits_that_a_loop_was_granted_and_never_knew_of_go_back_once() {
    let (world, holder) = World::exhausted();
    let mut ending = world.event_loop();
    let (slot, counts) = slot(ending.agent());
    world.engine.add_slot(&FAIR_SEMAPHORE, world.place(), slot);
    let token = pend(&mut ending, &world, &FAIR_SEMAPHORE, permits(1));
    world.release(&holder, 1);
    assert_eq!(ending.next_settled(), settled(&world, token));
    assert_eq!(counts[1].load(Ordering::SeqCst), 1);
    ending.end();
    assert_eq!(world.taken(), 1, "the holder's");
}

#[test]
fn an_entry_that_others_counted_down_counts_nothing_down_when_it_is_released_or_its_thread_ends() {
    let world = World::new(false);
    let ending = world.event_loop();
    let agent = Arc::clone(ending.agent());
    let (slot, counts) = slot(&agent);
    world.engine.add_slot(&LATCH, world.place(), slot);
    let entry = Hold::entries(1);
    let entered = world.engine.wait(&agent, &LATCH, world.place(), Request::Hold(entry), Limit::Once, &mut || true);
    assert_eq!(entered.unwrap(), GRANTED);
    let other = world.agent(1);
    assert_eq!(add(&world, &other, -1), Ok(Some(0)));
    assert_eq!(world.engine.release(&agent, &LATCH, world.place(), entry), Ok(false), "others counted it down");
    assert_eq!((world.taken(), counts[1].load(Ordering::SeqCst)), (0, 0));
    assert_eq!(add(&world, &other, 1), Ok(Some(1)));
    ending.end();
    assert_eq!(world.taken(), 1, "the other's");
}

#[test]
fn what_was_another_primitive_before_goes_back_as_what_it_is() {
    let world = World::new(false);
    let ending = world.event_loop();
    let agent = Arc::clone(ending.agent());
    let (before, _) = slot(&agent);
    world.engine.add_slot(&RWLOCK, world.place(), before);
    let (now, counts) = slot(&agent);
    world.engine.add_slot(&FAIR_SEMAPHORE, world.place(), now);
    assert_eq!(world.acquire(&agent, 1, Limit::Once), GRANTED);
    assert_eq!((world.taken(), counts[1].load(Ordering::SeqCst)), (1, 1));
    ending.end();
    assert_eq!(world.taken(), 0);
}
#[test]
fn who_downgrades_is_registered_as_the_reader_that_it_is_and_no_more_when_it_upgrades() {
    for (owner, registered) in [(HoldOwner::Thread, [1, 0]), (HoldOwner::Guard, [0, 1])] {
        let world = World::new(false);
        let me = world.agent(0);
        let (slot, counts) = slot(&me);
        world.engine.add_slot(&RWLOCK, world.place(), slot);
        let write = Request::Hold(Hold::exclusive(owner));
        let locked = world.engine.wait(&me, &RWLOCK, world.place(), write, Limit::Once, &mut || true);
        assert_eq!(locked.unwrap(), GRANTED);
        for (change, expected) in [(Change::Downgrade(owner), registered), (Change::Upgrade(owner), [0, 0])] {
            assert!(world.engine.change(&me, &RWLOCK, world.place(), change).unwrap().is_some());
            assert_eq!([0, 1].map(|index: usize| counts[index].load(Ordering::SeqCst)), expected, "{change:?}");
        }
    }
}
