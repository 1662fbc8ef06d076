//! The line: who waits for a notification, first in, first notified.
//!
//! Had a waiter whose thread ended never come, the notification it had would have gone to the next, a later one, which
//! went to that one, to the next but one, and so on. So each ticket has a number of *spare* notifications: those given
//! while it stood in the line, to none before it nor to it. A notification can be passed on from one to another if every
//! ticket in between, and that of the other, has one to spare; and then it has one less.

use arrayvec::ArrayVec;

use super::fault::Fault;
use crate::primitives::Id;

pub type Ticket = u8;

/// A notification as its waiter has it: only faults need to know more than that it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Notification {
    chain: Ticket,
    /// The next ticket when it was given.
    before: Ticket,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Waiter {
    pub agent: Id,
    pub ticket: Ticket,
    /// It stands in the line no more, and its own thread has not come for it.
    pub notified: Option<Notification>,
}

/// The most waits of a scenario.
const MOST_TICKETS: usize = 8;

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Line {
    /// The waiters, and those that were notified, in the order in which they came.
    pub waiters: ArrayVec<Waiter, 6>,
    /// By ticket. (The library need only keep runs of equal numbers, from the first that has not learned yet.)
    spare: ArrayVec<u8, MOST_TICKETS>,
    /// Only for a fault. The chain of the last notification: the ticket of the first that it notified.
    chain: Ticket,
    /// Only for a fault: whoever has a smaller ticket stood here at the last notification.
    notified_before: Ticket,
    pub next_ticket: Ticket,
}

impl Line {
    pub fn push(&mut self, agent: Id) {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.spare.push(0);
        self.waiters.push(Waiter { agent, ticket, notified: None });
    }

    pub fn waiting(&self) -> impl Iterator<Item = &Waiter> {
        self.waiters.iter().filter(|waiter| waiter.notified.is_none())
    }

    pub fn find(&self, agent: Id) -> Option<&Waiter> {
        self.waiters.iter().find(|waiter| waiter.agent == agent)
    }

    /// Returns how many there were.
    pub fn notify(&mut self, count: usize, fault: Option<Fault>) -> u8 {
        let Some(first) = self.waiting().next().map(|waiter| waiter.ticket) else { return 0 };
        if first >= self.notified_before {
            self.chain = first;
        }
        self.notified_before = self.next_ticket;
        let given = Notification { chain: self.chain, before: self.next_ticket };
        let mut notified = 0;
        while usize::from(notified) < count
            && let Some(ticket) = self.notify_first(given, fault)
        {
            self.spare[usize::from(ticket) + 1..].iter_mut().for_each(|spare| *spare += 1);
            notified += 1;
        }
        notified
    }

    /// The thread that was notified has ended before its code learned of it: another is notified instead.
    pub fn pass_on(&mut self, from: Ticket, notification: Notification, fault: Option<Fault>) {
        let Some(first) = self.waiting().next().map(|waiter| waiter.ticket) else { return };
        let between = usize::from(from) + 1..=usize::from(first);
        let has_to_spare = first > from && self.spare[between.clone()].iter().all(|spare| *spare > 0);
        let goes_on = match fault {
            Some(Fault::EndKeepsNotification) => false,
            Some(Fault::PassesOnToLatecomers) => true,
            Some(Fault::PassesOnWithoutChain) => has_to_spare && first < notification.before,
            Some(Fault::PassesOnByChainAlone) => self.chain == notification.chain && first < self.notified_before,
            _ => has_to_spare,
        };
        if goes_on {
            if first > from {
                self.spare[between].iter_mut().for_each(|spare| *spare = spare.saturating_sub(1));
            }
            let given = Notification { chain: self.chain, before: self.notified_before };
            self.notify_first(given, fault);
        }
    }

    fn notify_first(&mut self, given: Notification, fault: Option<Fault>) -> Option<Ticket> {
        let mut waiting = self.waiters.iter_mut().filter(|waiter| waiter.notified.is_none());
        let next = if fault == Some(Fault::LastFirst) { waiting.next_back() } else { waiting.next() };
        let waiter = next?;
        waiter.notified = Some(given);
        let ticket = waiter.ticket;
        self.forget_if_empty();
        Some(ticket)
    }

    /// The waiter's own thread takes it out.
    pub fn take(&mut self, agent: Id) -> Option<Waiter> {
        let place = self.waiters.iter().position(|waiter| waiter.agent == agent)?;
        let waiter = self.waiters.remove(place);
        self.forget_if_empty();
        Some(waiter)
    }

    /// A line in which nobody waits is no more, and remembers nothing.
    fn forget_if_empty(&mut self) {
        if self.waiting().next().is_none() {
            self.chain = 0;
            self.notified_before = 0;
            self.spare.iter_mut().for_each(|spare| *spare = 0);
        }
    }
}
