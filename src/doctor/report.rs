//! The report: what is known at one instant, with names and places instead of numbers.

use std::time::Duration;

use super::deadlock::Deadlock;
use super::names::{LockId, SiteId};
use super::stuck::Stuck;
use super::{EndedHold, State};
use crate::agents::ThreadId;
use crate::sync;

/// Where something was done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// By which thread.
    pub thread: ThreadId,
    /// The innermost frame first; empty if it is not known.
    pub stack: Vec<String>,
}

/// A lock as people know it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LockName {
    /// Its name.
    pub name: Option<String>,
    /// The class in JS.
    pub kind: String,
    /// Its place in the buffer.
    pub byte_offset: Option<u64>,
    /// Whether it is a lock of the machine.
    pub is_outside: bool,
}

/// One lock was held while another was locked.
#[derive(Clone, Debug)]
pub struct EdgeReport {
    /// What was held.
    pub from: LockName,
    /// What was locked.
    pub to: LockName,
    /// Where the one was locked.
    pub held: Place,
    /// Where the other was.
    pub locked: Place,
}

/// One wait of a deadlock.
#[derive(Clone, Debug)]
pub struct WaitReport {
    /// For what.
    pub lock: LockName,
    /// Who holds that.
    pub holder: Place,
    /// Who waits.
    pub waiter: Place,
    /// For how long.
    pub waited: Duration,
}

/// A wait that has not ended.
#[derive(Clone, Debug)]
pub struct PendingReport {
    /// For what.
    pub lock: LockName,
    /// Who waits.
    pub waiter: Place,
    /// For how long.
    pub waited: Duration,
    /// Who holds it, as far as that is known.
    pub holders: Vec<Place>,
    /// The process that holds it, and for how long.
    pub outside: Option<(u32, Duration)>,
}

/// Waits for each other.
#[derive(Clone, Debug)]
pub struct DeadlockReport {
    /// Whether none of them can end.
    pub is_certain: bool,
    /// The waits.
    pub waits: Vec<WaitReport>,
}

/// Waits at one place, or ended by one.
#[derive(Clone, Debug)]
pub struct DelayReport {
    /// Where.
    pub place: Place,
    /// How many.
    pub waits: u64,
    /// In all.
    pub total: Duration,
}

/// What was waited for.
#[derive(Clone, Debug)]
pub struct ContentionReport {
    /// What.
    pub lock: LockName,
    /// How many waits.
    pub waits: u64,
    /// In all.
    pub total: Duration,
    /// The longest.
    pub longest: Duration,
    /// Who waited.
    pub waiters: Vec<DelayReport>,
    /// Whose unlocks ended it.
    pub unlockers: Vec<DelayReport>,
}

/// A hold.
#[derive(Clone, Debug)]
pub struct HoldReport {
    /// Of what.
    pub lock: LockName,
    /// Whose.
    pub holder: Place,
    /// For how long.
    pub held: Duration,
    /// Whether others have ended its thread.
    pub is_terminated: bool,
}

/// All of it.
#[derive(Clone, Debug)]
pub struct Report {
    /// Orders that can deadlock.
    pub lock_order: Vec<Vec<EdgeReport>>,
    /// Locks of one class that were locked inside of each other.
    pub same_class: Vec<EdgeReport>,
    /// Waits for each other.
    pub deadlocks: Vec<DeadlockReport>,
    /// What was waited for, the longest first.
    pub contention: Vec<ContentionReport>,
    /// Holds beyond the limit, the longest first.
    pub long_holds: Vec<HoldReport>,
    /// Holds whose thread has ended.
    pub never_released: Vec<HoldReport>,
    /// Holds whose guard was collected.
    pub leaks: Vec<HoldReport>,
    /// Locks that were stuck.
    pub stuck: Vec<Stuck>,
    /// How many waits there are.
    pub pending: usize,
    /// What is waited for now, the longest first.
    pub waiting: Vec<PendingReport>,
    /// Threads with locks but without the doctor.
    pub threads_without: Vec<ThreadId>,
}

impl Report {
    /// How many things were found that somebody should look at: figures are none, nor what threads held that others have ended.
    pub fn problems(&self) -> usize {
        self.lock_order.len()
            + self.deadlocks.len()
            + self.long_holds.len()
            + self.never_released.iter().filter(|hold| !hold.is_terminated).count()
            + self.leaks.len()
            + self.stuck.len()
    }
}

impl State {
    pub(super) fn lock_name(&self, lock: LockId) -> LockName {
        match self.names.get(lock) {
            Some(lock) => LockName {
                name: lock.name.clone(),
                kind: lock.kind.clone(),
                byte_offset: lock.byte_offset,
                is_outside: lock.byte_offset.is_none() && lock.address != 0,
            },
            None => LockName { name: None, kind: String::new(), byte_offset: None, is_outside: false },
        }
    }

    pub(super) fn place(&self, (thread, site): (ThreadId, SiteId)) -> Place {
        Place { thread, stack: self.names.stack(site).to_vec() }
    }

    fn hold_report(&self, hold: &EndedHold) -> HoldReport {
        HoldReport {
            lock: self.lock_name(hold.lock),
            holder: self.place((hold.thread, hold.site)),
            held: hold.held,
            is_terminated: hold.is_terminated,
        }
    }

    fn deadlock_report(&self, deadlock: &Deadlock) -> DeadlockReport {
        let wait = |step: &super::WaitStep| WaitReport {
            lock: self.lock_name(step.lock),
            holder: self.place(step.holder),
            waiter: self.place(step.waiter),
            waited: step.waited,
        };
        DeadlockReport { is_certain: deadlock.is_certain, waits: deadlock.waits.iter().map(wait).collect() }
    }

    /// A deadlock that was just found, as text for JS.
    pub fn deadlock_json(&self, deadlock: &Deadlock, is_told: bool, is_newest: bool) -> String {
        let json = self.deadlock_report(deadlock).json();
        format!(r#"{},"isTold":{is_told},"isNewest":{is_newest}}}"#, &json[..json.len() - 1])
    }

    /// What is known now. `living` are the threads with locks.
    pub fn report(&self, living: &[ThreadId]) -> Report {
        let edge = |edge: &super::Edge| EdgeReport {
            from: self.lock_name(edge.from),
            to: self.lock_name(edge.to),
            held: self.place((edge.thread, edge.held)),
            locked: self.place((edge.thread, edge.locked)),
        };
        let mut threads_without: Vec<_> =
            living.iter().copied().filter(|thread| !self.attached.contains_key(thread)).collect();
        threads_without.sort_unstable();
        threads_without.dedup();
        let mut deadlocks: Vec<_> = self.deadlocks.iter().map(|deadlock| self.deadlock_report(deadlock)).collect();
        deadlocks.sort_by_key(|deadlock| !deadlock.is_certain);
        Report {
            lock_order: self.order.cycles().iter().map(|cycle| cycle.iter().map(edge).collect()).collect(),
            same_class: self.order.same_class().iter().map(edge).collect(),
            deadlocks,
            contention: self.contention_report(),
            long_holds: self.long_hold_report(),
            never_released: self.never_released.iter().map(|hold| self.hold_report(hold)).collect(),
            leaks: self.leaks.iter().map(|hold| self.hold_report(hold)).collect(),
            stuck: self.stuck.clone(),
            pending: self.waits.len(),
            waiting: self.waiting_report(),
            threads_without,
        }
    }

    fn waiting_report(&self) -> Vec<PendingReport> {
        let report = |wait: &super::Wait| PendingReport {
            lock: self.lock_name(wait.lock),
            waiter: self.place((wait.thread, wait.site)),
            waited: sync::since(wait.since),
            holders: self
                .holds_at(wait.address)
                .into_iter()
                .filter(|(_, hold)| wait.is_exclusive || hold.is_exclusive)
                .map(|(thread, hold)| self.place((thread, hold.site)))
                .collect(),
            outside: wait.outside.map(|(pid, since)| (pid, sync::since(since))),
        };
        let mut all: Vec<_> = self.waits.values().map(report).collect();
        all.sort_by_key(|wait| std::cmp::Reverse(wait.waited));
        all
    }

    fn contention_report(&self) -> Vec<ContentionReport> {
        let delays = |delays: &rustc_hash::FxHashMap<(ThreadId, SiteId), super::contention::Delay>| {
            let mut all: Vec<_> = delays.iter().collect();
            all.sort_by_key(|(place, delay)| (std::cmp::Reverse(delay.total), **place));
            let report = |(place, delay): (&(ThreadId, SiteId), &super::contention::Delay)| DelayReport {
                place: self.place(*place),
                waits: delay.waits,
                total: delay.total,
            };
            all.into_iter().map(report).collect()
        };
        let report = |contended: &super::contention::Contended| ContentionReport {
            lock: self.lock_name(contended.lock),
            waits: contended.all.waits,
            total: contended.all.total,
            longest: contended.longest,
            waiters: delays(&contended.waiters),
            unlockers: delays(&contended.unlockers),
        };
        self.contention.sorted().into_iter().map(report).collect()
    }

    /// Those that have ended, and those that last.
    fn long_hold_report(&self) -> Vec<HoldReport> {
        let mut all = self.long_holds.clone();
        for (thread, table) in self.tables.iter().filter(|(_, table)| !table.has_ended) {
            for hold in table.read() {
                if self.is_permit(hold.lock) {
                    continue;
                }
                let held = self.first_seen.get(&hold.serial).map_or(Duration::ZERO, |since| sync::since(*since));
                if held >= self.options.long_hold {
                    all.push(EndedHold {
                        lock: hold.lock,
                        thread: *thread,
                        site: hold.site,
                        held,
                        is_terminated: false,
                    });
                }
            }
        }
        all.sort_by_key(|hold| (std::cmp::Reverse(hold.held), hold.lock));
        all.iter().map(|hold| self.hold_report(hold)).collect()
    }
}
