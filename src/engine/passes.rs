//! Passes a notification on when a thread ends that was notified before its code knew: to whom it would have gone had that thread
//! never waited, and no notification beyond those that were given.
//!
//! For each ticket there is a number of *spare* notifications: those that were given while it stood in the queue, and went
//! neither to it nor to anybody before it. Had one before it never waited, one of them would have come one further. So a
//! notification passes on from one who ended to the first who waits if everybody between, and that one, has one to spare;
//! it uses these up. (The model in `tests/model/` checks this rule against a matching of all notifications and all waiters.)

use std::collections::{BTreeMap, BTreeSet};

/// The order in which waiters came to a bucket.
pub type Ticket = u64;

/// The spare notifications of a queue.
#[derive(Default)]
pub struct Passes {
    /// From each of these tickets on, to the next of them, this many; before the first, none.
    spare: BTreeMap<Ticket, u32>,
    /// The waiters that were notified, with others staying, and whose code does not know yet.
    unlearned: BTreeSet<Ticket>,
}

impl Passes {
    /// The one with `ticket` was notified, and others stay; the next to come will get `next_ticket`.
    pub fn notified(&mut self, ticket: Ticket, next_ticket: Ticket) {
        self.unlearned.insert(ticket);
        self.change(ticket + 1, next_ticket, |spare| spare + 1);
    }

    /// The code of the one with `ticket` knows that it was notified; `first` is the first ticket of those who wait.
    pub fn learned(&mut self, ticket: Ticket, first: Ticket) {
        if self.unlearned.remove(&ticket) {
            self.forget(first);
        }
    }

    /// Forgets what stands before everybody who may yet pass a notification on.
    fn forget(&mut self, first: Ticket) {
        let first = self.unlearned.first().map_or(first, |oldest| first.min(oldest + 1));
        if self.spare.first_key_value().is_some_and(|(from, _)| *from < first) {
            self.split(first);
            self.spare = self.spare.split_off(&first);
        }
    }

    /// Whether a notification of `from`, who ended, goes on to `to`, the first who waits.
    pub fn pass_on(&mut self, from: Ticket, to: Ticket) -> bool {
        if !self.unlearned.remove(&from) {
            return false;
        }
        let (from, end) = (from + 1, to + 1);
        let has_spare = from < end && self.at(from) > 0 && self.spare.range(from..end).all(|(_, spare)| *spare > 0)
            || fault!(EndNotifiesLatecomers);
        if has_spare && !fault!(PassesUseNothingUp) {
            self.change(from, end, |spare| spare.saturating_sub(1));
            self.unlearned.insert(to);
        }
        self.forget(to);
        has_spare
    }

    /// The number of those whose code does not know yet.
    #[cfg(all(test, not(any(loom, shuttle))))]
    pub fn unlearned(&self) -> usize {
        self.unlearned.len()
    }

    fn at(&self, ticket: Ticket) -> u32 {
        self.spare.range(..=ticket).next_back().map_or(0, |(_, spare)| *spare)
    }

    /// Makes a run begin at `ticket`.
    fn split(&mut self, ticket: Ticket) {
        let spare = self.at(ticket);
        self.spare.insert(ticket, spare);
    }

    fn change(&mut self, from: Ticket, end: Ticket, change: impl Fn(u32) -> u32) {
        if from >= end {
            return;
        }
        self.split(from);
        self.split(end);
        for (_, spare) in self.spare.range_mut(from..end) {
            *spare = change(*spare);
        }
        for edge in [from, end] {
            let before = self.spare.range(..edge).next_back().map_or(0, |(_, spare)| *spare);
            if self.spare.get(&edge) == Some(&before) {
                self.spare.remove(&edge);
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_notification_goes_on_to_the_next_who_stood_in_line() {
        // 0 and 1 stand; 0 is notified, and its thread ends.
        let mut passes = Passes::default();
        passes.notified(0, 2);
        assert!(passes.pass_on(0, 1));
        assert!(!passes.pass_on(0, 1), "used up");
    }

    #[test]
    fn nobody_is_notified_by_what_was_given_before_it_came() {
        let mut passes = Passes::default();
        passes.notified(0, 1);
        assert!(!passes.pass_on(0, 1));
        // 0 and 1 stand; 0 is notified; 1 leaves, and 2 comes.
        let mut passes = Passes::default();
        passes.notified(0, 2);
        assert!(!passes.pass_on(0, 2));
    }

    #[test]
    fn what_its_code_knows_of_goes_to_nobody_else() {
        let mut passes = Passes::default();
        passes.notified(0, 2);
        passes.learned(0, 1);
        assert!(!passes.pass_on(0, 1));
    }

    #[test]
    fn a_chain_goes_on_over_those_who_were_notified_and_no_further() {
        // 0 and 1 stand; 0 is notified; 2 and 3 come; 1 is notified. Both threads end.
        let mut passes = Passes::default();
        passes.notified(0, 2);
        passes.notified(1, 4);
        assert!(passes.pass_on(0, 2), "1 could have had the first notification, and 2 the second");
        assert!(!passes.pass_on(1, 3), "two notifications, of which one went to 2, and 0 and 1 never waited");
    }

    #[test]
    fn what_nobody_needs_is_forgotten() {
        let mut passes = Passes::default();
        for ticket in 0..1_000 {
            passes.notified(ticket, ticket + 10);
            passes.learned(ticket, ticket + 1);
        }
        assert!(passes.spare.len() <= 11, "{} runs", passes.spare.len());
    }
}
