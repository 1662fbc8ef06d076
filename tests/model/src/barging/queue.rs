//! The waiters of the word.
//!
//! The library keeps a FIFO of blocked waiters and one FIFO for each loop group, with tickets from one counter. Tickets are
//! only ever compared, so one list in ticket order says the same, and equal states look equal.

use arrayvec::ArrayVec;

use super::agent::Id;

/// The most waiters that a scenario may have at once.
pub const MOST_WAITERS: usize = 8;

/// The way in which a waiter waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Way {
    Blocked,
    /// A pending `lockAsync`; the number tells the tasks of one loop apart.
    Async(u8),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Waiter {
    pub agent: Id,
    pub way: Way,
    /// It was woken, to come and look.
    pub woken: bool,
    /// Its thread is in JavaScript between two slices: nothing may count on it.
    pub away: bool,
    /// It has waited for more than a millisecond.
    pub aged: bool,
}

impl Waiter {
    pub fn new(agent: Id, way: Way) -> Self {
        Waiter { agent, way, woken: false, away: false, aged: false }
    }

    pub fn is(&self, agent: Id, way: Way) -> bool {
        self.agent == agent && self.way == way
    }

    pub fn is_blocked(&self) -> bool {
        self.way == Way::Blocked
    }
}

/// All waiters, in the order in which they came.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Queue(ArrayVec<Waiter, MOST_WAITERS>);

impl Queue {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Waiter> {
        self.0.iter()
    }

    pub fn push(&mut self, waiter: Waiter) {
        self.0.push(waiter);
    }

    pub fn remove(&mut self, agent: Id, way: Way) -> Option<Waiter> {
        let place = self.0.iter().position(|w| w.is(agent, way))?;
        Some(self.0.remove(place))
    }

    pub fn find(&self, agent: Id, way: Way) -> Option<&Waiter> {
        self.iter().find(|w| w.is(agent, way))
    }

    pub fn find_mut(&mut self, agent: Id, way: Way) -> Option<&mut Waiter> {
        self.0.iter_mut().find(|w| w.is(agent, way))
    }

    /// A loop group's first waiter and its place in the order of tickets.
    pub fn first_of_group(&self, agent: Id) -> Option<(usize, &Waiter)> {
        self.iter().enumerate().find(|(_, w)| w.agent == agent && !w.is_blocked())
    }

    pub fn group_size(&self, agent: Id) -> usize {
        self.iter().filter(|w| w.agent == agent && !w.is_blocked()).count()
    }

    pub fn any_of(&self, agent: Id) -> Option<&Waiter> {
        self.iter().find(|w| w.agent == agent)
    }

    /// The groups whose first waiter is before `end`, in the order of those.
    pub fn groups_before(&self, end: usize) -> ArrayVec<Id, MOST_WAITERS> {
        let mut groups = ArrayVec::new();
        for waiter in self.iter().take(end).filter(|w| !w.is_blocked()) {
            if !groups.contains(&waiter.agent) {
                groups.push(waiter.agent);
            }
        }
        groups
    }

    pub fn any_woken(&self) -> bool {
        self.iter().any(|w| w.woken)
    }

    /// Whether the age of any is still to be noted; that of asynchronous waiters, only if it matters.
    pub fn any_to_age(&self, of_all: bool) -> bool {
        self.iter().any(|w| (of_all || w.is_blocked()) && !w.aged)
    }

    /// The waiter that ages next. They came in this order, so they age in it.
    pub fn next_to_age(&mut self, of_all: bool) -> Option<&mut Waiter> {
        self.0.iter_mut().find(|w| (of_all || w.is_blocked()) && !w.aged)
    }

    /// Whether those who are in both queues are in the same order in both.
    pub fn agrees_with(&self, other: &Queue) -> bool {
        let common = |a: &Queue, b: &Queue| -> ArrayVec<(Id, Way), MOST_WAITERS> {
            a.iter().filter(|w| b.find(w.agent, w.way).is_some()).map(|w| (w.agent, w.way)).collect()
        };
        common(self, other) == common(other, self)
    }
}
