//! Locks that no thread keeps in mind any more.

use rustc_hash::FxHashSet;

use super::holds::HoldTable;
use super::names::LockId;
use super::state::Knowledge;
use crate::agents::ThreadId;

/// If threads that have ended have left so many, they are forgotten with the next; and so many of these become one.
const MOST_LEFT: usize = 1_000;

impl Knowledge {
    /// A thread does not keep these locks in mind any more. Those that nobody does, and of which there is nothing to report, go; the
    /// delay of those without namesakes becomes that of one class.
    pub fn forget(&mut self, thread: ThreadId, locks: &[LockId]) {
        let unused: Vec<LockId> = locks.iter().copied().filter(|lock| self.names.leave(*lock, thread)).collect();
        self.drop_unused(unused);
    }

    fn drop_unused(&mut self, unused: impl IntoIterator<Item = LockId>) {
        let used: FxHashSet<LockId> = self.used_locks();
        for lock in unused.into_iter().filter(|lock| !used.contains(lock)) {
            if self.names.is_alone(lock) {
                let others = self.names.others();
                self.contention.fold(self.names.node(lock), self.names.node(others), others);
            }
            self.names.drop_lock(lock);
        }
    }

    fn used_locks(&self) -> FxHashSet<LockId> {
        let ended = [&self.long_holds, &self.never_released, &self.leaks].into_iter().flatten().map(|hold| hold.lock);
        let waits = self.waits.values().map(|wait| wait.lock);
        let circles = self.deadlocks.iter().flat_map(|deadlock| &deadlock.waits).map(|step| step.lock);
        let holds = self.tables.values().flat_map(HoldTable::read).map(|hold| hold.lock);
        let slices = self.trace.slices.iter().map(|slice| slice.lock);
        let stuck = self.stuck.iter().map(|stuck| stuck.lock);
        // The counts of a name stay with it.
        let named = self.contention.locks().filter(|lock| !self.names.is_alone(*lock));
        let orders = self.order.locks().chain(named);
        ended.chain(waits).chain(circles).chain(holds).chain(slices).chain(stuck).chain(orders).collect()
    }

    /// A thread has ended. What it kept in mind is told of until that is much.
    pub(super) fn leave_all(&mut self, thread: ThreadId) {
        self.names.leave_memory(thread);
        if self.left.len() >= MOST_LEFT {
            let left = std::mem::take(&mut self.left).into_iter();
            let unused: FxHashSet<LockId> =
                left.filter(|(lock, thread)| self.names.leave(*lock, *thread)).map(|(lock, _)| lock).collect();
            self.order.forget(|lock| unused.contains(&lock) && self.names.is_past(lock));
            self.drop_unused(unused);
        }
        if self.ended.len() >= MOST_LEFT {
            let ended = std::mem::take(&mut self.ended);
            self.contention.fold_threads(|thread| ended.contains(&thread));
        }
        // It may have stopped before: what it kept in mind then is among this.
        self.left.retain(|(_, other)| *other != thread);
        self.left.extend(self.names.kept_by(thread).into_iter().map(|lock| (lock, thread)));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::holds::SuspectHold;
    use super::super::names::{ENDED, Lock};
    use super::super::order::Edge;
    use super::super::testing;
    use super::super::trace::Slice;
    use super::super::waits::{Deadlock, Stuck, WaitStep};
    use super::*;
    use crate::sync;

    const THREAD: ThreadId = 1;

    /// A name of the process.
    fn name(state: &mut Knowledge, name: &str) -> LockId {
        state
            .names
            .keep(Lock { name: Some(name.into()), kind: "HeldLock".into(), byte_offset: None, address: 0 }, THREAD)
    }

    #[test]
    fn threads_become_one_once_many_have_ended_and_not_one_that_has_stopped() {
        let mut state = Knowledge::default();
        state.options.counts = true;
        let lock = name(&mut state, "a");
        let many = MOST_LEFT as ThreadId;
        for thread in 0..=many {
            let number = state.begin_wait(testing::wait(thread, lock, 64, sync::now()));
            state.end_wait(number, Some((0.0, Duration::from_millis(1))), true);
            state.detach(thread, thread > 0);
        }
        let [contended] = state.contention.sorted()[..] else { panic!("it is one lock") };
        let mut counts: Vec<_> = contended.waiters.iter().map(|((thread, _), delay)| (*thread, delay.waits)).collect();
        counts.sort_by_key(|(_, waits)| *waits);
        assert_eq!(counts, [(0, 1), (ENDED, u64::from(many))]);
    }

    #[test]
    fn names_in_an_order_are_kept_at_either_end_of_it_and_others_are_forgotten() {
        let mut state = Knowledge::default();
        let [outer, inner, other] = ["outer", "inner", "other"].map(|text| name(&mut state, text));
        let [from, to] = [outer, inner].map(|lock| state.names.node(lock));
        state.order.add(from, to, Edge { from: outer, to: inner, held: 1, locked: 2, thread: 0, gates: Vec::new() });
        state.forget(THREAD, &[outer, inner, other]);
        let again = ["outer", "inner", "other"].map(|text| name(&mut state, text));
        assert_eq!([again[0] == outer, again[1] == inner, again[2] == other], [true, true, false]);
    }

    #[test]
    fn a_name_that_was_used_when_a_thread_forgot_it_is_forgotten_once_it_is_used_no_more() {
        type Use = (&'static str, fn(&mut Knowledge, LockId), fn(&mut Knowledge));
        fn suspect(lock: LockId) -> SuspectHold {
            SuspectHold { lock, place: (1, 0), held: Duration::ZERO, is_terminated: false }
        }
        let uses: [Use; 8] = [
            (
                "waited for",
                |state, lock| _ = state.begin_wait(testing::wait(1, lock, 64, sync::now())),
                |state| state.waits.clear(),
            ),
            (
                "held",
                |state, lock| {
                    let slot = [1.0, f64::from(lock), 1.0, 0.0, 1.0, 8.0];
                    state.tables.insert(1, HoldTable::with(slot));
                },
                |state| state.tables.clear(),
            ),
            ("held for long", |state, lock| state.note_long_hold(suspect(lock)), |state| state.long_holds.clear()),
            ("kept", |state, lock| state.never_released.push(suspect(lock)), |state| state.never_released.clear()),
            ("leaked", |state, lock| state.leaks.push(suspect(lock)), |state| state.leaks.clear()),
            (
                "stuck",
                |state, lock| {
                    state.stuck.push(Stuck { lock, holders: Vec::new(), outside: None, waiters: Vec::new() });
                },
                |state| state.stuck.clear(),
            ),
            (
                "in a deadlock",
                |state, lock| {
                    let step = WaitStep { number: 1, lock, waiter: (1, 0), holder: (2, 0), waited: Duration::ZERO };
                    state.deadlocks.push(Deadlock { is_certain: true, waits: vec![step], is_reported: false });
                },
                |state| state.deadlocks.clear(),
            ),
            (
                "in the trace",
                |state, lock| {
                    let (begin, end) = (sync::now(), sync::now());
                    state.trace.push(Slice { kind: "wait", lock, place: (1, 0), begin, end, freed: None });
                },
                |state| state.trace.slices.clear(),
            ),
        ];
        for (used, begin, end) in uses {
            let mut state = Knowledge::default();
            let lock = name(&mut state, "a");
            begin(&mut state, lock);
            state.forget(THREAD, &[lock]);
            assert_eq!(name(&mut state, "a"), lock, "{used}");
            end(&mut state);
            state.forget(THREAD, &[lock]);
            assert_ne!(name(&mut state, "a"), lock, "{used} no more");
        }
    }

    /// A mutex that a thread has in a buffer of its own, and has waited for once.
    fn contended(state: &mut Knowledge, thread: ThreadId, address: usize) -> LockId {
        let lock = Lock { name: None, kind: "Mutex".into(), byte_offset: Some(0), address };
        let lock = state.names.keep(lock, thread);
        let number = state.begin_wait(testing::wait(thread, lock, address, sync::now()));
        state.end_wait(number, Some((0.0, sync::since(sync::now()))), true);
        lock
    }

    #[test]
    fn locks_of_threads_that_have_ended_are_told_of_until_they_are_many() {
        let mut state = Knowledge::default();
        state.options.counts = true;
        let shared = contended(&mut state, 0, 8);
        let first = contended(&mut state, 1, 16);
        assert_eq!(contended(&mut state, 1, 8), shared);
        state.detach(1, true);
        for other in 1..MOST_LEFT {
            contended(&mut state, 2, 16 + 8 * other);
        }
        state.detach(2, true);
        assert!(state.names.get(first).is_some(), "they are not many yet");
        state.detach(3, true);
        assert!(state.names.get(first).is_none(), "they were many");
        assert!(state.names.get(shared).is_some(), "another thread still uses it");
        let counts: Vec<u64> = state.contention.sorted().into_iter().map(|counts| counts.all.waits).collect();
        assert_eq!(counts.iter().sum::<u64>(), MOST_LEFT as u64 + 2, "no wait is lost");
        assert_eq!(counts.len(), 2);
        assert_eq!(state.left, []);
    }

    #[test]
    fn a_thread_that_stops_again_and_again_leaves_what_it_keeps_in_mind_once() {
        let mut state = Knowledge::default();
        let lock = contended(&mut state, THREAD, 8);
        for _ in 0..3 {
            state.detach(THREAD, false);
        }
        assert_eq!(state.left, [(lock, THREAD)]);
        let again = contended(&mut state, THREAD, 8);
        state.detach(THREAD, false);
        assert_eq!((again, state.left.as_slice()), (lock, &[(lock, THREAD); 2][..]));
    }

    #[test]
    fn those_who_waited_for_a_lock_that_stays_are_no_more_than_the_threads_that_live_and_the_last_that_have_ended() {
        let mut state = Knowledge::default();
        state.options.counts = true;
        let (last, slot) = (3 * MOST_LEFT as ThreadId, [0.0; 6]);
        state.tables.insert(0, HoldTable::with(slot));
        contended(&mut state, 0, 8);
        for thread in 1..=last {
            state.tables.insert(thread, HoldTable::with(slot));
            contended(&mut state, thread, 8);
            state.detach(thread, true);
        }
        let [contended] = state.contention.sorted()[..] else { panic!("it is one lock") };
        assert_eq!(contended.all.waits, u64::from(last) + 1);
        assert_eq!(contended.waiters.values().map(|delay| delay.waits).sum::<u64>(), contended.all.waits);
        assert!(contended.waiters.len() <= MOST_LEFT + 2);
        assert!(contended.waiters.contains_key(&(0, 3)));
    }

    #[test]
    fn orders_of_threads_that_have_ended_are_forgotten_with_their_locks_but_for_those_that_are_told_of() {
        let mut state = Knowledge::default();
        let order = |state: &mut Knowledge, from: LockId, to: LockId| {
            for lock in [from, to] {
                state.names.keep_memory(lock, THREAD);
            }
            let (one, other) = (state.names.node(from), state.names.node(to));
            state.order.add(one, other, Edge { from, to, held: 1, locked: 2, thread: THREAD, gates: Vec::new() });
        };
        let [one, other] = [8, 16].map(|address| contended(&mut state, THREAD, address));
        for (from, to) in [(one, other), (other, one)] {
            order(&mut state, from, to);
        }
        let chain: Vec<LockId> =
            (0..MOST_LEFT).map(|index| contended(&mut state, THREAD, 1 << 20 | index << 3)).collect();
        for pair in chain.windows(2) {
            order(&mut state, pair[0], pair[1]);
        }
        state.detach(THREAD, true);
        assert_eq!(state.order.locks().count(), 4 + 2 * (MOST_LEFT - 1));
        state.detach(2, true);
        assert_eq!(state.order.locks().collect::<FxHashSet<_>>(), FxHashSet::from_iter([one, other]));
        assert_eq!(state.order.cycles().len(), 1);
        assert!(state.names.get(one).is_some());
        assert!(chain.into_iter().all(|lock| state.names.get(lock).is_none()));
    }
}
