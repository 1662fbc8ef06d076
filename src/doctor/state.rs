//! All that the doctor knows, and how it gets to know it.

use std::time::{Duration, Instant};

use rustc_hash::{FxHashMap, FxHashSet};

use super::contention::{Contention, Unlock};
use super::holds::{HeldBy, HoldSerial, HoldTable, SuspectHold, TrackedHold};
use super::names::{Interned, LockId, MAIN, NodeId, SiteId, ThreadSite};
use super::order::LockOrder;
use super::signals;
use super::trace::{Slice, Trace};
use super::waits::{Deadlock, Outside, Stuck, TrackedWait, WaitNumber, Watched};
use crate::agents::ThreadId;
use crate::sync::{self, Mutex};

/// The number of findings of one kind that are kept, the last ones: a program may have the same fault again and again.
const MOST_FINDINGS: usize = 1_000;

/// Notes a finding.
pub(super) fn note<T>(findings: &mut Vec<T>, finding: T) {
    if findings.len() >= MOST_FINDINGS {
        findings.remove(0);
    }
    findings.push(finding);
}

/// The options of the first thread that starts the doctor; the rest of the process follows.
#[derive(Clone, Copy, Default, Debug)]
pub struct Options {
    /// A hold of this length is a long one.
    pub long_hold: Duration,
    /// For how long a holder does not change until its waiters are stuck; `None`: nobody looks.
    pub stuck: Option<Duration>,
    /// For how long a wait lasts until it is likely that it never ends; `None`: nobody looks.
    pub likely: Option<Duration>,
    /// Whether the report tells of contention.
    pub counts: bool,
    /// Whether slices for a trace are kept.
    pub traces: bool,
    /// Whether a signal that does nothing else asks for the report.
    pub may_ask: bool,
    /// The process that forwards its signals to this one; 0: none.
    pub forwarder: u32,
}

/// All that the doctor knows.
#[derive(Default)]
pub struct Knowledge {
    pub(crate) names: Interned,
    pub(crate) order: LockOrder,
    pub(crate) contention: Contention,
    /// The holds of each thread that has it.
    pub(crate) tables: FxHashMap<ThreadId, HoldTable>,
    pub(crate) waits: FxHashMap<WaitNumber, TrackedWait>,
    pub(crate) deadlocks: Vec<Deadlock>,
    /// When the watchdog saw each tracked hold for the first time.
    pub(crate) first_seen: FxHashMap<HoldSerial, Instant>,
    pub(crate) long_holds: Vec<SuspectHold>,
    pub(crate) never_released: Vec<SuspectHold>,
    pub(crate) leaks: Vec<SuspectHold>,
    /// The threads and hold numbers of each contended lock.
    pub(crate) watched: FxHashMap<usize, Watched<Vec<(ThreadId, u64)>>>,
    pub(crate) stuck: Vec<Stuck>,
    /// The names that are stuck now.
    pub(crate) stuck_names: FxHashSet<(u32, Box<[u16]>)>,
    /// The names that threads of this process hold, as they were seen last.
    pub(super) names_held_here: FxHashSet<(u32, String)>,
    pub(super) watched_outside: FxHashMap<LockId, Watched<Option<Outside>>>,
    /// The locks that threads kept in mind when they ended.
    pub(super) left: Vec<(LockId, ThreadId)>,
    /// The threads that have ended, and whose waits are told of one by one.
    pub(super) ended: FxHashSet<ThreadId>,
    pub(crate) trace: Trace,
    pub(crate) options: Options,
    pub(super) last_wait: WaitNumber,
    /// The wait that has blocked each thread last.
    pub(super) last_blocked: FxHashMap<ThreadId, WaitNumber>,
    /// Whether the report is still to be printed at the end of the process.
    prints_at_end: bool,
    /// Which watchdog may run: it ends when this changes.
    pub(crate) generation: u64,
    /// The number of problems when the report was printed last.
    pub(crate) printed: usize,
    /// The long holds that were printed, by their class and place.
    pub(crate) printed_holds: FxHashSet<(NodeId, ThreadSite)>,
    /// Whether it was printed because something is stuck.
    pub(crate) has_spoken: bool,
    /// Taken off places in what is printed.
    pub(crate) folder: String,
    /// Files of bundles that the package is part of.
    pub(crate) bundles: Vec<String>,
}

/// The doctor of the process.
#[derive(Default)]
pub struct Doctor(pub(crate) Mutex<Knowledge>);

impl Doctor {
    /// Runs `act` on what it knows.
    pub fn with<T>(&self, act: impl FnOnce(&mut Knowledge) -> T) -> T {
        act(&mut self.0.lock())
    }
}

impl Knowledge {
    /// A thread has started the doctor. The first one's options count, and nothing of what was known before. Returns whether it is
    /// the first.
    pub fn attach(&mut self, thread: ThreadId, table: HoldTable, options: Options, folder: String) -> bool {
        let is_first = self.tables.is_empty();
        if is_first {
            *self = Self { generation: self.generation + 1, options, folder, ..Self::default() };
        }
        self.tables.insert(thread, table);
        self.prints_at_end |= thread == MAIN;
        if is_first {
            self.arm();
        }
        is_first
    }

    /// Sees to it that the doctor learns of signals first, for as long as it is on.
    pub fn arm(&self) {
        if !self.tables.is_empty() {
            signals::arm(self.options.may_ask, self.options.forwarder);
        }
    }

    /// A thread has stopped the doctor, or ended: what it holds now is not given back if it has ended.
    pub fn detach(&mut self, thread: ThreadId, has_ended: bool) {
        if has_ended {
            // No other thread ends the main one.
            self.note_never_released(thread, thread != MAIN);
            self.ended.insert(thread);
        } else {
            self.prints_at_end &= thread != MAIN;
        }
        self.waits.retain(|_, wait| wait.thread != thread);
        self.last_blocked.remove(&thread);
        if self.tables.remove(&thread).is_some() && self.tables.is_empty() {
            self.generation += 1;
            signals::disarm();
        }
        self.leave_all(thread);
    }

    /// The code of this thread has ended, as that knows.
    pub fn note_end(&mut self, thread: ThreadId) {
        self.note_never_released(thread, false);
        self.prints_at_end &= thread != MAIN;
    }

    /// The process ends. Returns whether the end of its main thread is not noted yet, as when a listener threw there.
    pub(super) fn take_end(&mut self) -> bool {
        let is_left = self.prints_at_end;
        if is_left {
            self.note_end(MAIN);
        }
        is_left
    }

    /// The thread is about to end, or has been terminated. Whoever runs a once releases nothing.
    fn note_never_released(&mut self, thread: ThreadId, is_terminated: bool) {
        let Some(table) = self.tables.get_mut(&thread) else { return };
        if std::mem::replace(&mut table.has_ended, true) {
            return;
        }
        for hold in table.read() {
            if self.names.get(hold.lock).is_some_and(|lock| lock.kind == "Once") {
                continue;
            }
            let held = sync::since(hold.since);
            note(&mut self.never_released, SuspectHold { is_terminated, ..hold.ended(thread, held) });
        }
    }

    /// A hold has ended that seemed long by the clock that the watchdog keeps. If it has stalled, the clock was wrong: so only what
    /// it has seen counts.
    pub fn end_long_hold(&mut self, serial: HoldSerial, thread: ThreadId) {
        let Some(table) = self.tables.get(&thread) else { return };
        let Some(hold) = table.read().into_iter().find(|hold| hold.serial == serial) else { return };
        let held = self.seen_for(&hold);
        if held >= self.options.long_hold / 8 * 7 && !self.is_permit(hold.lock) {
            self.note_long_hold(hold.ended(thread, held));
        }
    }

    /// For how long the watchdog has seen it. A hold that was away in between, during the wait of a condition, began when it came
    /// back: the watchdog need not have looked meanwhile.
    pub(crate) fn seen_for(&self, hold: &TrackedHold) -> Duration {
        let first_seen = self.first_seen.get(&hold.serial);
        first_seen.map_or(Duration::ZERO, |seen| {
            sync::since(if fault!(AwayCountsAsHeld) { *seen } else { hold.since.max(*seen) })
        })
    }

    /// All holds, as far as they are tracked.
    pub(crate) fn holds(&self) -> impl Iterator<Item = HeldBy> {
        let living = self.tables.iter().filter(|(_, table)| !table.has_ended);
        living.flat_map(|(thread, table)| table.read().into_iter().map(|hold| (*thread, hold)))
    }

    /// The holds of the lock at an address.
    pub(crate) fn holds_at(&self, address: usize) -> Vec<HeldBy> {
        self.holds().filter(|(_, hold)| hold.address == address).collect()
    }

    /// Whether there may be room for several: all who are in are in the way of the next together, and to be in for long is no fault.
    pub(crate) fn is_permit(&self, lock: LockId) -> bool {
        self.names.get(lock).is_some_and(|lock| lock.kind == "Semaphore")
    }

    /// Whether anybody waits for permits.
    pub fn awaits_permits(&self) -> bool {
        self.waits.values().any(|wait| self.is_permit(wait.lock))
    }

    /// The watchdog looks at what is held.
    pub(crate) fn tick(&mut self) {
        let now = sync::now();
        let mut seen = FxHashMap::default();
        for table in self.tables.values() {
            table.tick();
            for hold in table.read() {
                seen.insert(hold.serial, self.first_seen.get(&hold.serial).copied().unwrap_or(now));
            }
        }
        self.first_seen = seen;
    }

    /// A hold was longer than it should be.
    pub fn note_long_hold(&mut self, hold: SuspectHold) {
        let kind = self.kind_of(&hold);
        match self.long_holds.iter().position(|other| self.kind_of(other) == kind) {
            Some(at) if self.long_holds[at].held < hold.held => self.long_holds[at] = hold,
            Some(_) => {}
            None => note(&mut self.long_holds, hold),
        }
    }

    /// Long holds of one kind are one.
    pub(crate) fn kind_of(&self, hold: &SuspectHold) -> (NodeId, ThreadSite) {
        (self.names.node(hold.lock), hold.place)
    }

    /// A guard was collected while it held.
    pub fn note_leak(&mut self, lock: LockId, thread: ThreadId, site: SiteId) {
        let hold = SuspectHold { lock, place: (thread, site), held: Duration::ZERO, is_terminated: false };
        note(&mut self.leaks, hold);
    }

    /// A wait begins; returns its number.
    pub fn begin_wait(&mut self, wait: TrackedWait) -> WaitNumber {
        self.last_wait += 1;
        if wait.is_blocking {
            self.last_blocked.insert(wait.thread, self.last_wait);
        }
        self.waits.insert(self.last_wait, wait);
        self.last_wait
    }

    /// A wait is over, which began then, in the milliseconds of its thread's clock, and took so long; `None`: it did not come to
    /// waiting.
    pub fn end_wait(&mut self, number: WaitNumber, waited: Option<(f64, Duration)>, is_granted: bool) {
        let Some(wait) = self.waits.remove(&number) else { return };
        if is_granted && let Some(watched) = self.watched.get_mut(&wait.address) {
            // Somebody got in: it moves.
            (watched.since, watched.is_reported) = (sync::now(), false);
        }
        let Some((since, waited)) = waited.filter(|_| wait.is_counted) else { return };
        let node = self.names.node(wait.lock);
        let freed = self.contention.ended_by(&wait, is_granted);
        if self.options.counts {
            self.contention.count(&wait, node, waited, freed);
        }
        if self.options.traces {
            // Not from now on backwards: the thread may have been kept from going on since it measured that.
            let begin = self.tables.get(&wait.thread).map_or(wait.since, |table| table.instant(since));
            let end = (begin + waited).max(freed.map_or(begin, |unlock| unlock.at));
            self.trace.push(Slice {
                kind: "wait",
                lock: wait.lock,
                place: (wait.thread, wait.site),
                begin,
                end,
                freed,
            });
        }
    }

    /// Whether there are waiters at an address.
    pub fn is_waited_for(&self, address: usize) -> bool {
        self.waits.values().any(|wait| wait.address == address)
    }

    /// A thread is about to free a lock that others wait for.
    pub fn note_unlock(&mut self, thread: ThreadId, address: usize, lock: LockId, site: SiteId, since: Option<f64>) {
        let (place, end) = ((thread, site), sync::now());
        if self.options.traces
            && let (Some(table), Some(since)) = (self.tables.get(&thread), since)
        {
            self.trace.push(Slice { kind: "hold", lock, place, begin: table.instant(since), end, freed: None });
        }
        self.contention.unlocking(address, Unlock { place, at: end });
    }
}

#[cfg(test)]
mod tests;
