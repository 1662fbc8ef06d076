//! Deadlocks of threads, of which each has what another waits for.

use super::super::holds::HoldTable;
use super::super::names::{Lock, LockId};
use super::super::testing;
use super::*;

/// Threads that hold one lock each, and block for others.
#[derive(Default)]
struct Process(Knowledge);

impl Process {
    fn lock(&mut self, kind: &str, address: usize) -> LockId {
        self.0.names.lock(Lock { name: None, kind: kind.into(), byte_offset: Some(0), address })
    }

    fn address(&self, lock: LockId) -> usize {
        self.0.names.get(lock).map_or(0, |lock| lock.address)
    }

    /// As the thread's JS writes it into its slots.
    fn holds(&mut self, thread: ThreadId, lock: LockId, is_exclusive: bool) {
        let slot = [thread, lock, 1, 0, is_exclusive.into(), self.address(lock) as u32].map(f64::from);
        self.0.tables.insert(thread, HoldTable::with(slot));
    }

    fn blocks(&mut self, thread: ThreadId, lock: LockId, is_exclusive: bool, is_endless: bool) -> WaitNumber {
        let wait = testing::wait(thread, lock, self.address(lock), sync::now());
        self.0.begin_wait(TrackedWait { is_endless, is_exclusive, ..wait })
    }

    fn is_deadlocked(&mut self, wait: WaitNumber) -> bool {
        self.is_deadlocked_among(wait, &[1, 2])
    }

    fn is_deadlocked_among(&mut self, wait: WaitNumber, holders: &[ThreadId]) -> bool {
        let permits = FxHashMap::from_iter([(8, holders.to_vec())]);
        self.0.note_awaiting(wait, Vec::new(), &permits).is_some()
    }
}

/// Two threads, of which each holds what the other one blocks for; the second for a lock that may be shared.
fn circle(first_is_exclusive: bool, second_waits_alone: bool, second_is_endless: bool) -> bool {
    let mut process = Process::default();
    let [shared, mutex] = [("RwLock", 8), ("Mutex", 16)].map(|(kind, address)| process.lock(kind, address));
    process.holds(1, shared, first_is_exclusive);
    process.holds(2, mutex, true);
    process.blocks(1, mutex, true, true);
    let wait = process.blocks(2, shared, second_waits_alone, second_is_endless);
    process.is_deadlocked(wait)
}

#[test]
fn two_blocked_threads_that_hold_what_the_other_wants_are_a_certain_deadlock() {
    assert!(circle(true, true, true));
    assert!(circle(true, false, true));
    assert!(circle(false, true, true));
}

#[test]
fn a_wait_that_ends_by_itself_is_in_no_deadlock() {
    assert!(!circle(true, true, false));
}

#[test]
fn a_reader_does_not_wait_for_a_reader() {
    assert!(!circle(false, false, true));
}

#[test]
fn a_reader_waits_for_the_readers_before_a_writer_that_came_first() {
    for (writer_is_endless, is_stuck) in [(true, true), (false, false)] {
        let mut process = Process::default();
        let [shared, mutex] = [("RwLock", 8), ("Mutex", 16)].map(|(kind, address)| process.lock(kind, address));
        process.holds(1, shared, false);
        process.holds(2, mutex, true);
        process.blocks(1, mutex, true, true);
        process.blocks(3, shared, true, writer_is_endless);
        let wait = process.blocks(2, shared, false, true);
        assert_eq!(process.is_deadlocked(wait), is_stuck);
    }
}

#[test]
fn a_reader_does_not_wait_for_a_writer_that_came_later_or_is_elsewhere() {
    for address in [8, 24] {
        let mut process = Process::default();
        let [shared, mutex] = [("RwLock", 8), ("Mutex", 16)].map(|(kind, address)| process.lock(kind, address));
        process.holds(1, shared, false);
        process.holds(2, mutex, true);
        process.blocks(1, mutex, true, true);
        let since = sync::now();
        let reader = TrackedWait { is_exclusive: false, ..testing::wait(2, shared, 8, since) };
        let wait = process.0.begin_wait(reader);
        let since = if address == 8 { since + Duration::from_millis(1) } else { since };
        process.0.begin_wait(testing::wait(3, shared, address, since));
        assert!(!process.is_deadlocked(wait), "{address}");
    }
}

#[test]
fn a_deadlock_that_was_likely_and_is_certain_is_one_which_is_certain() {
    let mut process = Process::default();
    process.0.options.likely = Some(Duration::ZERO);
    let [first, second] = [8, 16].map(|address| process.lock("Mutex", address));
    process.holds(1, first, true);
    process.holds(2, second, true);
    process.blocks(1, second, true, true);
    let wait = process.blocks(2, first, true, true);
    for is_news in [true, false] {
        assert_eq!(process.0.find_old_deadlocks(&PermitHolders::default()), is_news);
        assert_eq!(process.0.deadlocks[0].certainty(), "likely");
    }
    assert!(process.is_deadlocked(wait));
    process.0.find_old_deadlocks(&PermitHolders::default());
    assert_eq!((process.0.deadlocks.len(), process.0.deadlocks[0].certainty()), (1, "certain"));
}

#[test]
fn a_blocked_thread_is_in_a_likely_deadlock_once_its_wait_is_old_too() {
    let mut process = Process::default();
    process.0.options.likely = Some(Duration::from_secs(10));
    let [first, second] = [8, 16].map(|address| process.lock("Mutex", address));
    process.holds(1, first, true);
    process.holds(2, second, true);
    let old = sync::now().checked_sub(Duration::from_secs(20)).unwrap();
    process.0.begin_wait(testing::wait(1, second, 16, old));
    let young = process.blocks(2, first, true, true);
    assert!(!process.0.find_old_deadlocks(&PermitHolders::default()));
    process.0.waits.get_mut(&young).unwrap().since = old;
    assert!(process.0.find_old_deadlocks(&PermitHolders::default()));
}

#[test]
fn whoever_awaits_a_wait_is_not_known_from_when_its_thread_blocks_until_it_asks_again() {
    let mut process = Process::default();
    process.0.options.likely = Some(Duration::ZERO);
    let [first, second, other] = [8, 16, 24].map(|address| process.lock("Mutex", address));
    process.holds(1, first, true);
    process.holds(2, second, true);
    process.blocks(2, first, true, true);
    let wait = TrackedWait { is_blocking: false, ..testing::wait(1, second, 16, sync::now()) };
    let wait = process.0.begin_wait(wait);
    let asks = |process: &mut Process| process.0.note_awaiting(wait, vec![1], &PermitHolders::default()).is_some();
    let looks = |process: &mut Process| process.0.find_old_deadlocks(&PermitHolders::default());
    let blocked = process.blocks(1, other, true, true);
    assert!(!looks(&mut process), "nobody has asked");
    process.0.end_wait(blocked, None, true);
    assert!(asks(&mut process));
    process.0.deadlocks.clear();
    let blocked = process.blocks(1, other, true, true);
    assert!(!looks(&mut process), "it was given up, maybe");
    process.0.end_wait(blocked, None, true);
    assert!(!looks(&mut process));
    assert!(asks(&mut process));
}

#[test]
fn whoever_has_a_permit_and_waits_for_more_waits_for_the_others_who_have_one() {
    let mut process = Process::default();
    let [permits, mutex] = [("Semaphore", 8), ("Mutex", 16)].map(|(kind, address)| process.lock(kind, address));
    process.holds(1, permits, true);
    process.holds(2, permits, true);
    process.holds(3, mutex, true);
    process.blocks(2, mutex, true, true);
    process.blocks(3, permits, true, true);
    let wait = process.blocks(1, permits, true, true);
    assert!(process.is_deadlocked(wait));
    let holders: Vec<_> = process.0.deadlocks[0].waits.iter().map(|step| step.holder.0).collect();
    assert_eq!(holders, [2, 3, 1]);
}

#[test]
fn a_wait_for_a_permit_ends_while_one_of_the_holders_goes_on() {
    let mut process = Process::default();
    let [permits, mutex] = [("Semaphore", 8), ("Mutex", 16)].map(|(kind, address)| process.lock(kind, address));
    process.holds(1, permits, true);
    process.holds(2, permits, true);
    process.holds(3, mutex, true);
    process.blocks(1, mutex, true, true);
    let wait = process.blocks(3, permits, true, true);
    assert!(!process.is_deadlocked(wait));
    process.blocks(2, mutex, true, true);
    assert!(!process.is_deadlocked_among(wait, &[1, 2, 4]), "a thread that tells nothing has one");
    assert!(process.0.note_awaiting(wait, Vec::new(), &PermitHolders::default()).is_none(), "it was granted");
    assert!(process.is_deadlocked(wait));
}
