//! Reports: the order of each list, and the words.

mod stuck;
mod told;

use std::time::{Duration, Instant};

use super::holds::{HoldTable, SuspectHold};
use super::names::{ENDED, Lock, LockId};
use super::order::Edge;
use super::state::Knowledge;
use super::trace::Slice;
use super::waits::{Outside, TrackedWait, WaitNumber, WaitStep};
use super::{contention::Unlock, testing, waits::Deadlock};
use crate::agents::ThreadId;
use crate::sync;

const SECOND: Duration = Duration::from_secs(1);
const LIMIT: Duration = Duration::from_secs(10);
/// A space without the bit of those of stores.
const SPACE: u32 = 7;

fn ago(seconds: u32) -> Instant {
    sync::now().checked_sub(seconds * SECOND).unwrap()
}

/// Knowledge with the limit of a program, of which nothing is ever likely.
fn knowing() -> Knowledge {
    let mut state = Knowledge::default();
    (state.options.stuck, state.options.long_hold) = (Some(LIMIT), LIMIT);
    state
}

fn mutex(state: &mut Knowledge, name: Option<&str>, address: usize) -> LockId {
    let name = name.map(str::to_owned);
    state.names.lock(Lock { name, kind: "Mutex".into(), byte_offset: Some(8), address })
}

fn name_of(state: &mut Knowledge, name: &str, space: u32) -> LockId {
    let (name, kind) = (Some(name.to_owned()), "HeldLock".into());
    state.names.lock(Lock { name, kind, byte_offset: None, address: space as usize })
}

fn site(state: &mut Knowledge, frame: &str) -> u32 {
    state.names.site(vec![format!("{frame} (/app/{frame}.js:1:2)")])
}

fn waits_at(
    state: &mut Knowledge,
    thread: ThreadId,
    lock: LockId,
    address: usize,
    site: u32,
    seconds: u32,
) -> WaitNumber {
    state.begin_wait(TrackedWait { site, ..testing::wait(thread, lock, address, ago(seconds)) })
}

fn holds(state: &mut Knowledge, thread: ThreadId, lock: LockId, site: u32, is_exclusive: bool, address: usize) {
    let serial = f64::from(1000 * thread + lock + 1);
    let slot = [serial, f64::from(lock), f64::from(site), 0.0, f64::from(u8::from(is_exclusive)), address as f64];
    state.tables.insert(thread, HoldTable::with(slot));
}

fn suspect(lock: LockId, thread: ThreadId, site: u32, held: Duration) -> SuspectHold {
    SuspectHold { lock, place: (thread, site), held, is_terminated: false }
}

#[test]
fn lists_of_a_report_begin_with_what_is_longest_and_certain_and_threads_are_named_once() {
    let mut state = knowing();
    let lock = mutex(&mut state, None, 8);
    for (thread, seconds) in [(1, 2), (2, 30), (3, 4)] {
        waits_at(&mut state, thread, lock, 8, 0, seconds);
        state.note_long_hold(suspect(lock, thread, thread, seconds * SECOND));
    }
    for is_certain in [false, true] {
        state.deadlocks.push(Deadlock { is_certain, waits: Vec::new(), is_reported: false });
    }
    holds(&mut state, 5, lock, 0, true, 24);
    let report = state.report(&[9, 5, 4, 9]);
    assert_eq!(report.waiting.iter().map(|wait| wait.waiter.0).collect::<Vec<_>>(), [2, 3, 1]);
    assert_eq!(report.long_holds.iter().map(|hold| hold.place.0).collect::<Vec<_>>(), [2, 3, 1]);
    assert_eq!(report.deadlocks.iter().map(|deadlock| deadlock.is_certain).collect::<Vec<_>>(), [true, false]);
    assert_eq!(report.threads_without, [4, 9]);
}

#[test]
fn locks_that_were_waited_for_longest_come_first() {
    let mut state = knowing();
    state.options.counts = true;
    for (thread, milliseconds) in [(1, 2), (2, 30), (3, 4)] {
        let lock = mutex(&mut state, None, thread as usize * 8);
        let number = waits_at(&mut state, thread, lock, 8, 0, 0);
        state.end_wait(number, Some((0.0, Duration::from_millis(milliseconds))), false);
    }
    let report = state.report(&[]);
    let totals: Vec<_> = report.contention.iter().map(|contended| contended.all.total.as_millis()).collect();
    assert_eq!(totals, [30, 4, 2]);
}

#[test]
fn what_is_a_problem_is_each_of_its_kinds_but_what_others_ended_and_figures() {
    type Problem = fn(&mut Knowledge, LockId);
    let problems: [(&str, usize, Problem); 7] = [
        ("a lock order", 1, |state, lock| {
            let other = mutex(state, None, 800);
            for (from, to) in [(lock, other), (other, lock)] {
                let (one, next) = (state.names.node(from), state.names.node(to));
                state.order.add(one, next, Edge { from, to, held: 1, locked: 2, thread: 0, gates: Vec::new() });
            }
        }),
        ("a deadlock", 1, |state, _| {
            state.deadlocks.push(Deadlock { is_certain: false, waits: Vec::new(), is_reported: false });
        }),
        ("a hold never released", 1, |state, lock| state.never_released.push(suspect(lock, 1, 1, SECOND))),
        ("a hold of a thread that was terminated", 0, |state, lock| {
            state.never_released.push(SuspectHold { is_terminated: true, ..suspect(lock, 1, 1, SECOND) });
        }),
        ("a leak", 1, |state, lock| state.note_leak(lock, 1, 1)),
        ("a stuck lock", 1, |state, lock| {
            let stuck = super::waits::Stuck { lock, holders: Vec::new(), outside: None, waiters: Vec::new() };
            state.stuck.push(stuck);
        }),
        ("a wait", 0, |state, lock| _ = waits_at(state, 1, lock, 8, 0, 60)),
    ];
    for (what, count, add) in problems {
        let mut state = knowing();
        let lock = mutex(&mut state, None, 8);
        add(&mut state, lock);
        assert_eq!(state.report(&[]).problems(), count, "{what}");
        assert_eq!(state.text_once(&[]).is_some(), count == 1, "{what}");
    }
}

#[test]
fn a_reader_has_no_reader_in_its_way_and_a_writer_has_all() {
    let mut state = knowing();
    let lock = mutex(&mut state, None, 8);
    for (thread, is_exclusive) in [(1, false), (2, true)] {
        holds(&mut state, thread, lock, 0, is_exclusive, 8);
    }
    for is_exclusive in [false, true] {
        state.begin_wait(TrackedWait { is_exclusive, ..testing::wait(3, lock, 8, sync::now()) });
    }
    let mut ways: Vec<_> = state.report(&[]).waiting.iter().map(|wait| wait.holders.len()).collect();
    ways.sort_unstable();
    assert_eq!(ways, [1, 2]);
}

#[test]
fn permits_and_what_runs_once_are_no_long_holds_and_never_released_in_turn() {
    let mut state = knowing();
    state.options.long_hold = Duration::ZERO;
    for (thread, kind) in [(1, "Semaphore"), (2, "Once"), (3, "Mutex")] {
        let lock = Lock { name: None, kind: kind.into(), byte_offset: Some(0), address: 8 };
        let lock = state.names.lock(lock);
        holds(&mut state, thread, lock, 0, true, 8);
        state.end_long_hold(u64::from(1000 * thread + lock + 1), thread);
    }
    let long = state.report(&[]).long_holds;
    assert_eq!(long.iter().filter(|hold| hold.place.0 == 1).count(), 0, "permits");
    assert!(state.long_holds.iter().all(|hold| hold.place.0 != 1), "permits that went back");
    for thread in 1..=3 {
        state.detach(thread, true);
        state.detach(thread, true);
    }
    let lost: Vec<_> = state.never_released.iter().map(|hold| (hold.place.0, hold.is_terminated)).collect();
    assert_eq!(lost, [(1, true), (3, true)]);
}

#[test]
fn what_a_thread_holds_as_it_ends_is_told_once_and_is_no_long_hold_then() {
    let mut state = knowing();
    state.options.long_hold = Duration::ZERO;
    let lock = mutex(&mut state, None, 8);
    holds(&mut state, 1, lock, 0, true, 8);
    waits_at(&mut state, 1, lock, 8, 0, 1);
    waits_at(&mut state, 2, lock, 8, 0, 1);
    state.note_end(1);
    assert_eq!((state.never_released.len(), state.report(&[]).long_holds.len()), (1, 0));
    state.detach(1, true);
    assert_eq!((state.never_released.len(), state.never_released[0].is_terminated), (1, false));
    assert_eq!(state.waits.values().map(|wait| wait.thread).collect::<Vec<_>>(), [2]);
}

#[test]
fn a_bundle_is_told_of_once() {
    let mut state = knowing();
    for file in ["/app/a.js", "/app/b.js", "/app/a.js"] {
        state.add_bundle(file.into());
    }
    assert_eq!(state.report(&[]).bundles, ["/app/a.js", "/app/b.js"]);
}

fn step(number: WaitNumber, lock: LockId, waiter: (ThreadId, u32), holder: (ThreadId, u32)) -> WaitStep {
    WaitStep { number, lock, waiter, holder, waited: 2 * SECOND }
}

#[test]
fn the_text_tells_each_lock_once_what_hangs_first_and_each_place_as_what_it_is() {
    let mut state = knowing();
    state.folder = "/app".into();
    state.options.counts = true;
    let sites = ["one", "two", "three", "four"].map(|frame| site(&mut state, frame));
    let dead = mutex(&mut state, Some("dead"), 8);
    let stuck = mutex(&mut state, None, 16);
    let slow = mutex(&mut state, Some("slow"), 24);
    let far = name_of(&mut state, "far", SPACE);
    for is_certain in [true, false] {
        let waits = vec![step(1, dead, (1, sites[0]), (2, sites[1]))];
        state.deadlocks.push(Deadlock { is_certain, waits, is_reported: false });
    }
    let places = |count: u32| (0..count).map(|thread| (thread, sites[0])).collect::<Vec<_>>();
    for (lock, holders, outside) in [
        (dead, 1, None),
        (stuck, 5, None),
        (far, 0, Some(Outside::default())),
        (far, 0, Some(Outside { client: Some("its\u{1b}".into()), pid: Some(3), since: None })),
    ] {
        let stuck = super::waits::Stuck { lock, holders: places(holders), outside, waiters: places(1) };
        state.stuck.push(stuck);
    }
    for lock in [dead, stuck, slow] {
        waits_at(&mut state, 4, lock, lock as usize, sites[3], 20);
        state.note_long_hold(suspect(lock, 6, sites[2], 12 * SECOND));
    }
    let [from, to] = [slow, stuck].map(|lock| state.names.node(lock));
    for (one, other, from, to) in [(from, to, slow, stuck), (to, from, stuck, slow)] {
        state.order.add(one, other, Edge { from, to, held: sites[0], locked: sites[1], thread: 3, gates: Vec::new() });
    }
    for waited in [5, 700] {
        let number = waits_at(&mut state, 5, slow, 24, sites[3], 1);
        state.contention.unlocking(24, Unlock { place: (ENDED, sites[2]), at: sync::now() });
        state.end_wait(number, Some((0.0, Duration::from_millis(waited))), true);
    }
    let text = state.asked_text(&[8, 7]);
    let expected = r#"sablock doctor: 2 deadlocks, 3 stuck locks, 1 lock order that can deadlock, 1 l…
DEADLOCK (certain): somebody waits for what it holds itself
  Mutex "dead"
    held by   thread 2  two (two.js:1:2)
    wanted by thread 1  one (one.js:1:2), 2000 ms
DEADLOCK (likely): somebody waits for what it holds itself
  Mutex "dead"
    held by   thread 2  two (two.js:1:2)
    wanted by thread 1  one (one.js:1:2), 2000 ms
  Not certain: code that waits for none of these may still unlock one.
STUCK: Mutex at byte 8, 1 waiter
    held by   thread 0  one (one.js:1:2)
    held by   thread 1  one (one.js:1:2)
    held by   thread 2  one (one.js:1:2)
    ... and 2 more
    wanted by thread 0  one (one.js:1:2)
STUCK: lock "far" of the machine, 1 waiter
    held by   another process
    wanted by thread 0  one (one.js:1:2)
STUCK: lock "far" of the machine, 1 waiter
    held by   its\u{1b}
    wanted by thread 0  one (one.js:1:2)
WAITING: Mutex "slow", 20.0 s
    wanted by thread 4  four (four.js:1:2)
LOCK ORDER: these deadlock if they run at the same time
  Mutex at byte 8, then Mutex "slow"
    locked    thread 3  one (one.js:1:2)
    and then  thread 3  two (two.js:1:2)
  Mutex "slow", then Mutex at byte 8
    locked    thread 3  one (one.js:1:2)
    and then  thread 3  two (two.js:1:2)
LONG HOLD: Mutex "slow", 12.0 s
    held by   thread 6  three (three.js:1:2)
CONTENTION, the longest waits first
  Mutex "slow": 2 waits, 705 ms in all, 700 ms at most
    waited    thread 5  four (four.js:1:2), 705 ms
    freed by  ended threads  three (three.js:1:2), 705 ms
Threads without the doctor: 7, 8
"#;
    assert_eq!(text, expected);
}

#[test]
fn a_lock_is_called_by_its_name_or_its_place_or_its_class() {
    let mut state = knowing();
    let bare = |kind: &str| Lock { kind: kind.into(), ..Lock::default() };
    let locks = [name_of(&mut state, "near", 0), mutex(&mut state, None, 8), state.names.lock(bare("Kind"))];
    for lock in locks {
        state.note_leak(lock, 1, 0);
    }
    let text = state.asked_text(&[]);
    let called: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("LEAK: ")?.split_once(',')).collect();
    assert_eq!(called.iter().map(|(lock, _)| *lock).collect::<Vec<_>>(), ["lock \"near\"", "Mutex at byte 8", "Kind"]);
}

#[test]
fn a_wait_for_what_is_no_lock_is_no_delay() {
    let mut state = knowing();
    (state.options.counts, state.options.traces) = (true, true);
    let lock = mutex(&mut state, None, 8);
    for is_counted in [false, true] {
        let number = state.begin_wait(TrackedWait { is_counted, ..testing::wait(1, lock, 8, sync::now()) });
        state.end_wait(number, Some((0.0, SECOND)), true);
        let counted = (state.report(&[]).contention.len(), state.trace.slices.len());
        assert_eq!(counted, (usize::from(is_counted), usize::from(is_counted)));
    }
}

#[test]
fn of_each_kind_ten_are_printed_and_the_rest_is_counted() {
    for (count, rest) in [(10, None), (11, Some("  ... and 1 more\n")), (25, Some("  ... and 15 more\n"))] {
        let mut state = knowing();
        for thread in 0..count {
            state.note_leak(0, thread, 0);
        }
        let text = state.asked_text(&[]);
        assert_eq!(text.matches("LEAK").count(), 10);
        assert_eq!(text.lines().next(), Some(format!("sablock doctor: {count} leaked guards").as_str()));
        assert!(rest.map_or(!text.contains("more"), |rest| text.contains(rest)), "{text}");
    }
}

#[test]
fn short_waits_are_printed_for_whoever_asks_only() {
    let mut state = knowing();
    let lock = mutex(&mut state, None, 8);
    waits_at(&mut state, 1, lock, 8, 0, 0);
    assert!(state.asked_text(&[]).contains("WAITING"));
    let news = state.news();
    assert!(!news.contains("WAITING") && news.contains("1 wait now"), "{news}");
    waits_at(&mut state, 1, lock, 8, 0, 2);
    assert_eq!(state.news().matches("WAITING").count(), 1);
}

#[test]
fn times_of_a_trace_are_since_the_first_begin_though_that_is_of_a_slice_which_ended_later() {
    let mut state = knowing();
    let lock = mutex(&mut state, Some("a\"\\\u{1}\n"), 8);
    let start = ago(1);
    let ms = Duration::from_millis(1);
    let freed = Some(Unlock { place: (4, 0), at: start + 5 * ms });
    for (kind, begin, end, freed) in [("wait", 3, 6, freed), ("hold", 0, 7, None)] {
        let slice = Slice { kind, lock, place: (2, 0), begin: start + begin * ms, end: start + end * ms, freed };
        state.trace.push(slice);
    }
    let lock = r#""lock":{"name":"a\"\\\u0001\u000a","kind":"Mutex","byteOffset":8}"#;
    let place = r#""place":{"threadId":2,"stack":[]}"#;
    let wait =
        format!(r#"{{"kind":"wait",{lock},{place},"begin":3000,"end":6000,"freed":{{"threadId":4,"at":5000}}}}"#);
    let hold = format!(r#"{{"kind":"hold",{lock},{place},"begin":0,"end":7000,"freed":null}}"#);
    assert_eq!(state.trace_json(), format!("[{wait},{hold}]"));
}

#[test]
fn figures_and_places_of_a_report_are_each_in_its_own_place() {
    let mut state = knowing();
    state.options.counts = true;
    let lock = mutex(&mut state, None, 8);
    let inner = mutex(&mut state, None, 16);
    for waited in [5, 700] {
        let number = waits_at(&mut state, ENDED, lock, 24, 0, 1);
        state.end_wait(number, Some((0.0, Duration::from_millis(waited))), true);
    }
    let sites = ["one", "two"].map(|frame| site(&mut state, frame));
    let nodes = [lock, inner].map(|lock| state.names.node(lock));
    for (at, (from, to)) in [(lock, inner), (inner, lock)].into_iter().enumerate() {
        let edge = Edge { from, to, held: sites[0], locked: sites[1], thread: 3, gates: Vec::new() };
        state.order.add(nodes[at], nodes[1 - at], edge);
    }
    let json = state.report(&[]).json();
    for part in [
        r#""waits":2,"totalMs":705,"maxMs":700,"waiters":[{"place":{"threadId":-1,"stack":[]},"waits":2,"totalMs":705}]"#,
        r#""held":{"threadId":3,"stack":["one (/app/one.js:1:2)"]},"locked":{"threadId":3,"stack":["two (/app/two.js:1:2)"]}"#,
    ] {
        assert!(json.contains(part), "{part}\n{json}");
    }
}
