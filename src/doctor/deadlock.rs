//! Waits of threads and of tasks, and the cycles among them. A wait keeps holds from ending: a blocked thread all that it has,
//! a task those whose functions are known to await it.

use std::time::Duration;

use rustc_hash::{FxHashMap, FxHashSet};

use super::holds::{HeldBy, HoldSerial};
use super::state::{Knowledge, note};
use super::waits::{Deadlock, TrackedWait, WaitNumber, WaitStep, Watched};
use crate::agents::ThreadId;
use crate::sync;

/// The threads that have permits of each semaphore that somebody waits for.
pub type PermitHolders = FxHashMap<usize, Vec<ThreadId>>;

impl Knowledge {
    /// The functions of these holds await a wait. Returns the deadlock that it is in as JSON, if one is known.
    pub fn note_awaiting(
        &mut self,
        number: WaitNumber,
        awaiting: Vec<HoldSerial>,
        permits: &PermitHolders,
    ) -> Option<String> {
        let likely = self.options.likely;
        let wait = self.waits.get_mut(&number)?;
        wait.awaiting = awaiting;
        let index = if wait.is_blocking {
            self.note_deadlock(number, permits, None)?
        } else {
            let age = likely.filter(|age| sync::since(wait.since) >= *age)?;
            wait.is_asked = true;
            self.note_deadlock(number, permits, Some(age))?
        };
        let was_reported = std::mem::replace(&mut self.deadlocks[index].is_reported, true);
        let deadlock = &self.deadlocks[index];
        let is_newest = deadlock.newest_awaited(&self.waits) == Some(number);
        Some(self.deadlock_json(deadlock, was_reported, is_newest))
    }

    /// Notes the deadlock that a wait is in: a likely one of waits of this age, or a certain one of blocked threads. Returns its place
    /// in the list.
    fn note_deadlock(&mut self, number: WaitNumber, permits: &PermitHolders, age: Option<Duration>) -> Option<usize> {
        let scene = Scene::new(self, permits, age);
        let circle = scene.circle(number, &scene.never_ending())?;
        Some(self.note_circle(circle, age.is_none()).0)
    }

    /// Notes a deadlock. Returns its place in the list, and whether it is a new one.
    fn note_circle(&mut self, waits: Vec<WaitStep>, is_certain: bool) -> (usize, bool) {
        let deadlock = Deadlock { is_certain, waits, is_reported: false };
        let key = deadlock.key();
        if let Some(index) = self.deadlocks.iter().position(|other| other.key() == key) {
            self.deadlocks[index].is_certain |= is_certain;
            return (index, false);
        }
        note(&mut self.deadlocks, deadlock);
        (self.deadlocks.len() - 1, true)
    }

    /// Looks for deadlocks among waits that have lasted for long. Returns whether there was a new one.
    pub(super) fn find_old_deadlocks(&mut self, permits: &PermitHolders) -> bool {
        let Some(age) = self.options.likely else { return false };
        if !self.waits.values().any(|wait| wait.is_endless && sync::since(wait.since) >= age) {
            return false;
        }
        let scene = Scene::new(self, permits, Some(age));
        let stuck = scene.never_ending();
        let circles: Vec<_> = stuck.iter().filter_map(|number| scene.circle(*number, &stuck)).collect();
        let mut is_news = false;
        for circle in circles {
            is_news |= self.note_circle(circle, false).1;
        }
        is_news
    }
}

/// All waits and holds, at one instant.
struct Scene<'a> {
    state: &'a Knowledge,
    permits: &'a PermitHolders,
    /// For how long all must have lasted; `None`: only threads that are blocked count, which need no time.
    age: Option<Duration>,
    holds: FxHashMap<usize, Vec<HeldBy>>,
    /// The waits that block each thread, and those that the function of each hold awaits.
    blocked: FxHashMap<ThreadId, Vec<WaitNumber>>,
    awaited: FxHashMap<HoldSerial, Vec<WaitNumber>>,
}

impl<'a> Scene<'a> {
    fn new(state: &'a Knowledge, permits: &'a PermitHolders, age: Option<Duration>) -> Self {
        let mut scene = Self {
            state,
            permits,
            age,
            holds: FxHashMap::default(),
            blocked: FxHashMap::default(),
            awaited: FxHashMap::default(),
        };
        for held in state.holds() {
            scene.holds.entry(held.1.address).or_default().push(held);
        }
        for (number, wait) in &state.waits {
            if wait.is_blocking {
                scene.blocked.entry(wait.thread).or_default().push(*number);
            }
            for serial in &wait.awaiting {
                scene.awaited.entry(*serial).or_default().push(*number);
            }
        }
        scene
    }

    /// Whether it blocks a thread, or has lasted for long and is still awaited by whom it was said to be. While a thread is blocked,
    /// that keeps all its holds: no other wait has to count.
    fn counts(&self, wait: &TrackedWait) -> bool {
        let Some(age) = self.age else { return wait.is_blocking };
        (wait.is_blocking || wait.is_asked) && sync::since(wait.since) >= age
    }

    /// The holds that keep a wait from ending: a reader waits behind a writer that came before it, for what that waits for.
    fn in_the_way(&self, wait: &TrackedWait) -> impl Iterator<Item = &HeldBy> {
        let is_exclusive = wait.is_exclusive || self.is_behind_writer(wait);
        let holds = self.holds.get(&wait.address).into_iter().flatten();
        holds.filter(move |(_, hold)| is_exclusive || hold.is_exclusive || fault!(SharedHoldIsInTheWay))
    }

    fn is_behind_writer(&self, wait: &TrackedWait) -> bool {
        let mut others = self.state.waits.values().filter(|other| other.address == wait.address);
        others.any(|other| other.is_exclusive && other.is_endless && other.since <= wait.since)
            && !fault!(NoReaderIsBehindAWriter)
    }

    /// Whether nobody has permits but those who tell of it, nor had any lately: one that was given back may be on its way to the
    /// wait.
    fn are_permits_known(&self, address: usize) -> bool {
        let Some(threads) = self.permits.get(&address) else { return false };
        let known = self.holds.get(&address).map_or(&[][..], Vec::as_slice);
        let is_known = |thread| known.iter().any(|(holder, _)| holder == thread);
        let is_old = |age| {
            let watched = self.state.watched.get(&address);
            watched.is_some_and(|Watched { holder, since, .. }| {
                2 * sync::since(*since) >= age && holder.iter().all(|(thread, _)| threads.contains(thread))
            })
        };
        threads.iter().all(is_known) && self.age.is_none_or(is_old)
    }

    /// The waits before whose end a hold cannot end: its thread is blocked, or its function awaits them.
    fn keepers(&self, (thread, hold): &HeldBy) -> impl Iterator<Item = &WaitNumber> {
        let blocked = self.blocked.get(thread).into_iter().flatten();
        blocked.chain(self.awaited.get(&hold.serial).into_iter().flatten())
    }

    /// The waits of which none can end unless another one does first.
    fn never_ending(&self) -> FxHashSet<WaitNumber> {
        let waits = &self.state.waits;
        let endless =
            waits.iter().filter(|(_, wait)| (wait.is_endless || fault!(TimedWaitCountsAsEndless)) && self.counts(wait));
        let mut left: FxHashSet<WaitNumber> = endless.map(|(number, _)| *number).collect();
        loop {
            let is_kept = |held: &HeldBy| self.keepers(held).any(|keeper| left.contains(keeper));
            let is_stuck = |number: &WaitNumber| {
                let wait = &waits[number];
                let mut holds = self.in_the_way(wait).peekable();
                if self.state.is_permit(wait.lock) && !fault!(OnePermitInTheWayIsEnough) {
                    self.are_permits_known(wait.address) && holds.peek().is_some() && holds.all(is_kept)
                } else {
                    holds.any(is_kept)
                }
            };
            let next: FxHashSet<_> = left.iter().copied().filter(is_stuck).collect();
            if next.len() == left.len() {
                return left;
            }
            left = next;
        }
    }

    /// The circle that a wait is in.
    fn circle(&self, number: WaitNumber, stuck: &FxHashSet<WaitNumber>) -> Option<Vec<WaitStep>> {
        let mut steps = Vec::new();
        let is_found =
            stuck.contains(&number) && self.walk(number, number, stuck, &mut steps, &mut FxHashSet::default());
        is_found.then_some(steps)
    }

    /// Depth first along who keeps what from whom, until it comes back to `first`.
    fn walk(
        &self,
        first: WaitNumber,
        number: WaitNumber,
        stuck: &FxHashSet<WaitNumber>,
        steps: &mut Vec<WaitStep>,
        seen: &mut FxHashSet<WaitNumber>,
    ) -> bool {
        if !seen.insert(number) {
            return false;
        }
        let wait = &self.state.waits[&number];
        let mut in_the_way: Vec<_> = self.in_the_way(wait).collect();
        // Others first: of permits its own may be one of several in the way.
        in_the_way.sort_by_key(|held| self.keepers(held).any(|keeper| *keeper == number));
        for held in in_the_way {
            steps.push(WaitStep {
                number,
                lock: wait.lock,
                waiter: (wait.thread, wait.site),
                holder: (held.0, held.1.site),
                waited: sync::since(wait.since),
            });
            let mut keepers: Vec<_> = self.keepers(held).copied().filter(|keeper| stuck.contains(keeper)).collect();
            keepers.sort_unstable();
            for keeper in keepers {
                if keeper == first || self.walk(first, keeper, stuck, steps, seen) {
                    return true;
                }
            }
            steps.pop();
        }
        false
    }
}

#[cfg(test)]
mod tests {
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
}
