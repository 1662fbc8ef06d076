//! Counts of the waits to hold something: kept in each bucket under its lock, summed when `stats()` is called.

use std::time::Duration;

use super::primitive::Hold;
use super::queue::Waiter;
use crate::sync;

/// The counts of one bucket, or of all. All but the last two only grow.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Stats {
    /// Acquisitions after a wait in the queue.
    pub contended: u64,
    /// The number of them that were handed straight to a blocked thread.
    pub handovers: u64,
    /// Leases that ended before their loop came.
    pub passed_by: u64,
    /// Waits whose time was over.
    pub timeouts: u64,
    /// Waits that were taken back.
    pub aborts: u64,
    /// Waits that could never have ended.
    pub deadlocks: u64,
    /// Acquisitions that had to report that a holder's thread ended inside.
    pub abandoned: u64,
    /// Threads that ended with holds in their registers, which went back; each is counted once for each primitive.
    pub ended: u64,
    /// The longest of the waits that ended with an acquisition, since the counts were first asked for.
    pub longest_wait: Duration,
    /// Threads that are blocked now.
    pub blocked: u64,
    /// Promises that are pending now.
    pub pending: u64,
    /// The reports of ended holders that went back, and that nobody has taken since.
    reports_back: u64,
    /// Whether anybody has asked: a clock is read for it, which costs as much as the rest of a promise's way through the queue.
    is_timed: bool,
}

/// Why a wait ended without what it was for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Leaving {
    TimedOut,
    TakenBack,
    Deadlocked,
    /// The thread ends, or the words were overwritten.
    Ending,
}

impl Stats {
    /// A waiter is queued.
    pub(super) fn queued(&mut self, hold: Option<Hold>, is_blocking: bool) {
        if is_counted(hold) {
            *self.waiting(is_blocking) += 1;
        }
    }

    /// A waiter leaves the queue with what it asked for.
    pub(super) fn served(&mut self, waiter: &Waiter) {
        if !is_counted(waiter.hold) {
            return;
        }
        *self.waiting(waiter.is_blocking()) -= 1;
        self.contended += 1;
        if self.is_timed {
            self.longest_wait = self.longest_wait.max(sync::now().saturating_duration_since(waiter.since));
        }
    }

    /// A waiter leaves the queue without it.
    pub(super) fn left(&mut self, waiter: &Waiter, why: Leaving) {
        if !is_counted(waiter.hold) {
            return;
        }
        *self.waiting(waiter.is_blocking()) -= 1;
        self.ended_without(waiter.hold, why);
    }

    /// A wait has ended without what it was for, though a waiter that was served may have been counted as such: its thread had not come
    /// for it.
    pub(super) fn ended_without(&mut self, hold: Option<Hold>, why: Leaving) {
        if !is_counted(hold) {
            return;
        }
        match why {
            Leaving::TimedOut => self.timeouts += 1,
            Leaving::TakenBack => self.aborts += 1,
            Leaving::Deadlocked => self.deadlocks += 1,
            Leaving::Ending => {}
        }
    }

    /// A waiter was handed what it asked for.
    pub(super) fn handed_over(&mut self, waiter: &Waiter) {
        self.handovers += u64::from(waiter.is_blocking() && is_counted(waiter.hold));
    }

    /// An acquisition has to report an ended holder. One that comes in the place of another, which gave its report back, is not counted.
    pub(super) fn took_report(&mut self) {
        if self.reports_back == 0 {
            self.abandoned += 1;
        } else {
            self.reports_back -= 1;
        }
    }

    /// An acquisition that was counted goes back with its report.
    pub(super) fn gave_report_back(&mut self) {
        self.reports_back += 1;
    }

    /// The bucket's share of a sum; from now on it reads the clock.
    pub(super) fn read(&mut self) -> Self {
        self.is_timed = true;
        *self
    }

    pub(super) fn add(&mut self, other: Self) {
        self.contended += other.contended;
        self.handovers += other.handovers;
        self.passed_by += other.passed_by;
        self.timeouts += other.timeouts;
        self.aborts += other.aborts;
        self.deadlocks += other.deadlocks;
        self.abandoned += other.abandoned;
        self.ended += other.ended;
        self.longest_wait = self.longest_wait.max(other.longest_wait);
        self.blocked += other.blocked;
        self.pending += other.pending;
    }

    fn waiting(&mut self, is_blocking: bool) -> &mut u64 {
        if is_blocking { &mut self.blocked } else { &mut self.pending }
    }
}

/// Only who waits to hold something is counted: not who waits for a notification, or to pass.
fn is_counted(hold: Option<Hold>) -> bool {
    hold.is_some_and(|hold| !hold.is_passage())
}
