//! Locks whose holders do not change, here and elsewhere.

use std::ptr::NonNull;
use std::time::Duration;

use super::super::holds::HoldTable;
use super::super::names::Lock;
use super::super::state::Knowledge;
use super::super::stuck::Seen;
use super::super::waits::Outside;
use super::{LIMIT, SECOND, SPACE, ago, holds, knowing, mutex, name_of, waits_at};
use crate::agents::ThreadId;
use crate::clients::{NameHold, QueuedName};
use crate::engine::{LockView, Mode, State, WaiterView};
use crate::memory::Place;
use crate::sync::AtomicU32;

fn waiter(thread: ThreadId, waited: Duration) -> WaiterView {
    WaiterView { thread, is_blocking: true, mode: "exclusive", waited }
}

/// A word that is never freed.
fn place() -> Place {
    // SAFETY: aligned, of two words, and never freed.
    unsafe { Place::new(NonNull::from(Box::leak(Box::new([AtomicU32::new(0), AtomicU32::new(0)]))).cast(), 8) }
}

/// A mutex as the engine shows it.
fn seen(place: Place, holder: Option<(ThreadId, u64)>, waiters: Vec<WaiterView>) -> Seen {
    let owner = holder.map(|(thread, _)| thread);
    let view = LockView { state: State(0), owner, owner_has_ended: false, registered: Vec::new(), waiters };
    Seen { kind: "Mutex", place, view, holders: holder.into_iter().collect() }
}

#[test]
fn a_lock_is_stuck_once_its_holder_and_a_waiter_have_stayed_for_the_limit_and_once_until_it_moves() {
    let place = place();
    let (old, young) = ((2, LIMIT), (3, LIMIT - SECOND));
    let look = |holder, waiters: &[(ThreadId, Duration)]| {
        vec![seen(place, holder, waiters.iter().map(|&(thread, waited)| waiter(thread, waited)).collect())]
    };
    let age = |state: &mut Knowledge| state.watched.values_mut().for_each(|watched| watched.since -= LIMIT);
    let holder = Some((1, 5));
    for (now, waiters, is_old, is_stuck) in [
        (holder, &[old, young][..], true, true),
        (holder, &[young, old], true, true),
        (holder, &[young], true, false),
        (holder, &[old], false, false),
        (Some((1, 6)), &[old], true, false),
        (Some((4, 5)), &[old], true, false),
        (None, &[old], true, false),
    ] {
        let mut state = knowing();
        assert!(!state.watch(look(holder, &[old])));
        if is_old {
            age(&mut state);
        }
        let told = format!("{now:?} {waiters:?} {is_old}");
        for is_news in [is_stuck, false] {
            assert_eq!(state.watch(look(now, waiters)), is_news, "{told}");
        }
        assert_eq!(state.stuck.len(), usize::from(is_stuck), "{told}");
    }
    let mut state = knowing();
    for _ in 0..3 {
        assert!(!state.watch(look(None, &[old])), "nobody has it");
        age(&mut state);
    }
}

#[test]
fn a_holder_that_tells_its_holds_is_another_with_each_of_them() {
    let (mut state, place) = (knowing(), place());
    let lock = mutex(&mut state, None, place.address());
    let look = || vec![seen(place, Some((1, 5)), vec![waiter(2, LIMIT)])];
    for serial in 1..4_u32 {
        let slot = [f64::from(serial), f64::from(lock), 0.0, 0.0, 1.0, place.address() as f64];
        state.tables.insert(1, HoldTable::with(slot));
        assert!(!state.watch(look()), "{serial}");
        state.watched.values_mut().for_each(|watched| watched.since -= LIMIT);
    }
    assert!(state.watch(look()));
}

#[test]
fn a_stuck_lock_has_each_holder_once_and_its_waiters_from_the_oldest_on() {
    let (mut state, place) = (knowing(), place());
    let address = place.address();
    let [holders, others] = [Some("of holders"), Some("of waiters")].map(|name| mutex(&mut state, name, address));
    holds(&mut state, 1, holders, 4, false, address);
    for site in [6, 5] {
        waits_at(&mut state, 2, others, address, site, 20);
    }
    let elsewhere = mutex(&mut state, None, 16);
    waits_at(&mut state, 2, elsewhere, 16, 9, 20);
    let look = || {
        let mut seen = seen(place, None, vec![waiter(2, LIMIT), waiter(2, LIMIT), waiter(2, SECOND)]);
        seen.holders = vec![(1, 1), (3, 1)];
        vec![seen]
    };
    state.watch(look());
    state.watched.values_mut().for_each(|watched| watched.since -= LIMIT);
    assert!(state.watch(look()));
    let [stuck] = &state.stuck[..] else { panic!("it is one") };
    assert_eq!((stuck.lock, stuck.holders.as_slice()), (holders, &[(1, 4), (3, 0)][..]));
    assert_eq!(stuck.waiters, [(2, 6), (2, 5), (2, 0)]);
}

#[test]
fn a_stuck_lock_of_which_no_thread_tells_is_called_by_its_class_and_its_place() {
    let (mut state, place) = (knowing(), place());
    let look = || {
        let seen = seen(place, Some((1, 5)), vec![waiter(2, LIMIT)]);
        vec![Seen { kind: "RwLock", ..seen }]
    };
    state.watch(look());
    state.watched.values_mut().for_each(|watched| watched.since -= LIMIT);
    assert!(state.watch(look()));
    assert!(state.asked_text(&[]).contains("STUCK: RwLock at byte 8, 1 waiter\n"));
}

#[test]
fn a_hold_that_only_waiters_know_is_long_for_each_thread_that_does_not_tell_its_holds() {
    for (kind, expected) in [("RwLock", vec![1, 2]), ("Semaphore", vec![])] {
        let (mut state, place) = (knowing(), place());
        let lock = Lock { name: None, kind: kind.into(), byte_offset: Some(8), address: place.address() };
        let lock = state.names.lock(lock);
        waits_at(&mut state, 4, lock, place.address(), 0, 20);
        state.tables.insert(3, HoldTable::with([0.0; 6]));
        let mut silent = HoldTable::with([0.0; 6]);
        silent.is_used = false;
        state.tables.insert(2, silent);
        for _ in 0..2 {
            let mut look = seen(place, None, vec![waiter(4, LIMIT)]);
            look.holders = vec![(1, 1), (2, 1), (3, 1)];
            state.watch(vec![look]);
            state.watched.values_mut().for_each(|watched| watched.since -= LIMIT);
        }
        assert_eq!(state.long_holds.iter().map(|hold| hold.place.0).collect::<Vec<_>>(), expected, "{kind}");
    }
}

fn name_hold(thread: ThreadId, held: Duration, is_in: bool) -> NameHold {
    NameHold { number: 1, thread, mode: Mode::Shared, held, is_in }
}

#[test]
fn a_name_is_stuck_by_its_youngest_holder_and_its_oldest_waiter_and_again_once_it_has_moved() {
    let units: Box<[u16]> = "a".encode_utf16().collect();
    let queued = |holders: &[(u32, u32, bool)], waiters: &[u32]| {
        let holders = holders.iter().map(|&(thread, held, is_in)| name_hold(thread, held * SECOND, is_in)).collect();
        let waiters = waiters.iter().map(|seconds| waiter(5, *seconds * SECOND)).collect();
        vec![QueuedName { space: SPACE, name: units.clone(), holders, waiters }]
    };
    for (holders, waiters, is_stuck) in [
        (&[(1, 10, true)][..], &[10][..], true),
        (&[(1, 10, true), (2, 9, true)], &[10], false),
        (&[(1, 10, true), (2, 9, false)], &[10], true),
        (&[(1, 10, false)], &[10], false),
        (&[(1, 10, true)], &[9, 10, 3], true),
        (&[(1, 10, true)], &[9], false),
        (&[(1, 10, true)], &[], false),
    ] {
        let mut state = knowing();
        let lock = name_of(&mut state, "a", SPACE);
        let told = format!("{holders:?} {waiters:?}");
        for _ in 0..2 {
            let before = state.stuck.len();
            for is_news in [is_stuck, false] {
                assert_eq!(state.watch_names(queued(holders, waiters)), is_news, "{told}");
            }
            assert_eq!(state.stuck.len() - before, usize::from(is_stuck), "{told}");
            assert!(!state.watch_names(Vec::new()), "it has moved");
        }
        assert!(state.stuck.iter().all(|stuck| stuck.lock == lock && stuck.outside.is_none()), "{told}");
    }
}

#[test]
fn who_is_asked_for_a_holder_elsewhere_has_waited_for_long_for_what_nobody_here_holds() {
    let mut state = knowing();
    let [old, young, held, bare] = ["old", "young", "held", "bare"].map(|name| name_of(&mut state, name, SPACE));
    let process = name_of(&mut state, "process", 0);
    for (at, lock, seconds) in [(1, old, 10), (1, old, 11), (2, young, 9), (3, held, 20), (4, process, 20)] {
        waits_at(&mut state, 1, lock, at * 8, 0, seconds);
    }
    holds(&mut state, 2, held, 0, true, 24);
    assert_eq!(state.locks_to_ask_for(), [(old, SPACE, "old".to_owned())]);
    assert!(bare > held);
}

#[test]
fn of_a_lock_whose_holder_elsewhere_is_not_known_it_is_told_that_it_is_stuck_elsewhere() {
    let mut state = knowing();
    state.options.stuck = Some(Duration::ZERO);
    let lock = name_of(&mut state, "a", SPACE);
    waits_at(&mut state, 1, lock, 8, 0, 20);
    assert!(state.watch_outside(vec![(lock, None)]));
    assert_eq!(state.stuck[0].outside, Some(Outside::default()));
}

#[test]
fn a_name_that_a_thread_here_has_which_does_not_tell_so_is_held_by_no_other_process() {
    for is_in in [true, false] {
        let mut state = knowing();
        let lock = name_of(&mut state, "a", SPACE);
        waits_at(&mut state, 1, lock, 8, 0, 20);
        let outside = Outside { since: Some(ago(20)), ..Outside::default() };
        let holders = vec![name_hold(2, SECOND, is_in)];
        let name = "a".encode_utf16().collect();
        state.watch_names(vec![QueuedName { space: SPACE, name, holders, waiters: vec![waiter(1, 2 * LIMIT)] }]);
        assert_eq!(state.locks_to_ask_for().is_empty(), is_in);
        assert_eq!(state.watch_outside(vec![(lock, Some(outside))]), !is_in);
        // Nothing of it is in the process any more.
        state.watch_names(Vec::new());
        assert_eq!(state.locks_to_ask_for().len(), 1);
    }
}

#[test]
fn a_holder_elsewhere_has_held_it_since_it_says_or_since_it_was_seen_if_it_says_nothing() {
    for (since, is_stuck) in [(Some(10), true), (Some(9), false), (None, false)] {
        let mut state = knowing();
        let [lock, other] = ["a", "b"].map(|name| name_of(&mut state, name, SPACE));
        for (thread, lock, site) in [(3, lock, 6), (2, lock, 5), (2, lock, 4), (1, other, 3)] {
            waits_at(&mut state, thread, lock, lock as usize, site, 20);
        }
        let outside = Outside { client: None, pid: Some(77), since: since.map(ago) };
        assert_eq!(state.watch_outside(vec![(lock, Some(outside.clone()))]), is_stuck, "{since:?}");
        let stuck: Vec<_> = state.stuck.iter().filter(|stuck| stuck.lock == lock).collect();
        assert_eq!(stuck.len(), usize::from(is_stuck));
        for stuck in stuck {
            assert_eq!(stuck.waiters, [(3, 6), (2, 5), (2, 4)]);
            assert_eq!(stuck.outside, Some(outside.clone()));
        }
        assert_eq!(state.report(&[]).waiting.iter().filter(|wait| wait.outside.is_some()).count(), 3);
    }
}
