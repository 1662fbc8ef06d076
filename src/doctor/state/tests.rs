//! Findings that are kept, and holders that are watched.

use super::super::names::Lock;
use super::super::testing;
use super::*;

/// A thread's table with one hold since then, in milliseconds.
fn table_since(since: f64) -> HoldTable {
    HoldTable::with([1.0, 1.0, 1.0, since, 1.0, 8.0])
}

#[test]
fn a_hold_that_was_away_began_when_it_came_back_though_the_watchdog_did_not_look_meanwhile() {
    let mut state = Knowledge::default();
    state.options.long_hold = Duration::from_nanos(8);
    state.tables.insert(1, table_since(0.0));
    state.tick();
    state.end_long_hold(1, 1);
    assert_eq!(state.long_holds.len(), 1);
    // It comes back later than this test ends.
    state.tables.insert(1, table_since(1e9));
    assert_eq!(state.seen_for(&state.tables[&1].read()[0]), Duration::ZERO);
    state.long_holds.clear();
    state.end_long_hold(1, 1);
    assert!(state.long_holds.is_empty());
}

#[test]
fn a_lock_that_is_watched_moves_when_somebody_gets_in_and_not_when_somebody_gives_up() {
    for is_granted in [false, true] {
        let mut state = Knowledge::default();
        let since = sync::now();
        state.watched.insert(64, Watched { holder: vec![(1, 1)], since, is_reported: true });
        let number = state.begin_wait(testing::wait(2, 1, 64, since));
        state.end_wait(number, Some((0.0, Duration::ZERO)), is_granted);
        let Watched { since: then, is_reported, .. } = state.watched[&64];
        assert_eq!((then == since, is_reported), (!is_granted, !is_granted), "granted: {is_granted}");
    }
}

#[test]
fn a_slice_of_a_wait_begins_when_its_thread_says_and_ends_no_earlier_than_its_unlock() {
    const WAITED: Duration = Duration::from_millis(3);
    let mut state = Knowledge::default();
    (state.options.traces, state.options.counts) = (true, true);
    state.tables.insert(2, table_since(0.0));
    for is_freed_late in [false, true] {
        let begin = state.tables[&2].instant(5.0);
        let number = state.begin_wait(testing::wait(2, 1, 64, sync::now()));
        let place = (1, 0);
        let at = if is_freed_late { begin + 2 * WAITED } else { begin + WAITED / 2 };
        state.contention.unlocking(64, Unlock { place, at });
        state.end_wait(number, Some((5.0, WAITED)), true);
        let slice = state.trace.slices.last().unwrap();
        let end = begin + if is_freed_late { 2 * WAITED } else { WAITED };
        assert_eq!((slice.begin, slice.end), (begin, end), "freed late: {is_freed_late}");
        assert_eq!(slice.freed.map(|unlock| unlock.at), Some(at));
    }
}

#[test]
fn of_findings_the_last_ones_are_kept() {
    let mut findings = Vec::new();
    for finding in 0..=MOST_FINDINGS {
        note(&mut findings, finding);
    }
    assert_eq!((findings.len(), findings[0]), (MOST_FINDINGS, 1));
}

#[test]
fn long_holds_of_locks_of_one_name_at_one_place_are_one_and_the_longest_stays() {
    let mut state = Knowledge::default();
    let mut lock = |name: &str, byte_offset| {
        let lock = Lock { name: Some(name.into()), kind: "Mutex".into(), byte_offset: Some(byte_offset), address: 0 };
        state.names.lock(lock)
    };
    let [first, second, other] = [lock("a", 0), lock("a", 8), lock("b", 16)];
    let holds = [(first, 1, 5), (second, 1, 9), (first, 1, 7), (second, 2, 1), (other, 1, 2)];
    for (lock, site, held) in holds {
        let held = Duration::from_millis(held);
        state.note_long_hold(SuspectHold { lock, place: (1, site), held, is_terminated: false });
    }
    let kept: Vec<_> = state.long_holds.iter().map(|hold| (hold.lock, hold.place.1, hold.held.as_millis())).collect();
    assert_eq!(kept, [(second, 1, 9), (second, 2, 1), (other, 1, 2)]);
}

#[test]
fn of_long_holds_the_last_kinds_are_kept() {
    let mut state = Knowledge::default();
    for thread in 0..=MOST_FINDINGS as ThreadId {
        state.note_long_hold(SuspectHold { lock: 0, place: (thread, 1), held: Duration::ZERO, is_terminated: false });
    }
    assert_eq!((state.long_holds.len(), state.long_holds[0].place.0), (MOST_FINDINGS, 1));
}

#[test]
fn a_holder_elsewhere_is_a_new_one_by_its_client_or_process_or_if_nothing_is_known_of_it_any_more() {
    let mut state = Knowledge::default();
    state.options.stuck = Some(Duration::ZERO);
    let lock = Lock { name: Some("a".into()), kind: "HeldLock".into(), byte_offset: None, address: 7 };
    let lock = state.names.lock(lock);
    let number = state.begin_wait(testing::wait(1, lock, 64, sync::now()));
    let of_store = |client: &str| Outside { client: Some(client.into()), pid: None, since: Some(sync::now()) };
    let of_machine = |pid| Outside { client: None, pid: Some(pid), since: Some(sync::now()) };
    let holders = [Some(of_machine(1)), Some(of_machine(2)), None, Some(of_store("a")), Some(of_store("b"))];
    for told in &holders {
        for is_news in [true, false] {
            assert_eq!(state.watch_outside(vec![(lock, told.clone())]), is_news, "{told:?}");
            assert_eq!(state.waits[&number].outside, *told);
        }
    }
    assert_eq!(state.stuck.len(), holders.len());
}
