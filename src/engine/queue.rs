//! The waiters for one primitive, in the order in which they came.
//!
//! Blocked threads form one list; the asynchronous waiters of each event loop (a *loop group*) form one of their own.
//! A ticket on each waiter gives the order between the lists. Every transition is O(1) in the number of waiters;
//! some are linear in the number of loop groups, or of threads that are away, which is at most the number of threads.
//!
//! A waiter may be *settled* by another thread: then it is in no list any more, but stays in the arena until its own
//! thread collects it. That is how a timeout, an abort and a thread's end find out that they come too late.
//! Plain data: everything here happens under the bucket's lock.

use std::sync::Arc;
use std::time::Instant;

use smallvec::SmallVec;

use super::limit::Limit;
use super::list::List;
use super::parker::Parker;
use super::passes::Passes;
use super::primitive::{Hold, Primitive};
use crate::agents::{Agent, AgentId};
use crate::memory::Place;

pub use super::group::{LoopGroup, Turn};
pub use super::list::WaiterId;
pub use super::passes::Ticket;
pub use super::waiter::{Arrival, Kind, Settlement, Waiter, Waiters};

/// Why a primitive is kept for an event loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reservation {
    /// The loop that it is kept for.
    pub agent: AgentId,
    /// For what.
    pub hold: Hold,
    /// Tells its lease from every other.
    pub generation: u64,
    /// When its lease is over.
    pub until: Instant,
}

/// The queue of one primitive.
pub struct Queue {
    /// The place of the primitive; its memory lives as long as anybody is queued, since each waiter keeps its buffer.
    pub place: Place,
    /// The primitive.
    pub primitive: &'static dyn Primitive,
    /// Whether several waiters may each get a part of what is free: see [`Primitive`].
    pub(super) is_divided: bool,
    blocked: List,
    /// In the order of their first waiters.
    groups: SmallVec<[LoopGroup; 1]>,
    /// The number of blocked waiters that are woken and will come.
    woken: u32,
    /// The last to come that waits for an exclusive hold for ever; it may be gone.
    last_exclusive: Option<(Ticket, WaiterId)>,
    /// The blocked waiter that was last to spin before it parks; perhaps it still does.
    pub spinning: Option<WaiterId>,
    /// Set exactly while the primitive's state says so too.
    pub reservation: Option<Reservation>,
    /// Since when it has been free and kept for event loops, one after the other.
    pub kept_since: Option<Instant>,
    /// When it was last handed over to a blocked waiter because that had aged.
    pub last_aged_grant: Option<Instant>,
    /// The serial of the hold, new whenever the owner may have changed.
    pub hold_serial: u64,
    /// The agent whose thread ended inside, which the next to get in will report.
    pub abandoned_by: Option<AgentId>,
    /// The number of waiters.
    len: usize,
    /// The notifications that go on to others when threads end that were notified.
    passes: Passes,
}

impl Queue {
    /// An empty queue.
    pub fn new(place: Place, primitive: &'static dyn Primitive) -> Self {
        Self {
            place,
            primitive,
            is_divided: primitive.is_divided(),
            blocked: List::EMPTY,
            groups: SmallVec::new(),
            woken: 0,
            last_exclusive: None,
            spinning: None,
            reservation: None,
            kept_since: None,
            last_aged_grant: None,
            hold_serial: 0,
            abandoned_by: None,
            len: 0,
            passes: Passes::default(),
        }
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Puts a blocked thread at the end.
    pub fn push_blocked(
        &mut self,
        waiters: &mut Waiters,
        arrival: Arrival,
        agent: AgentId,
        parker: Arc<Parker>,
    ) -> WaiterId {
        let behind = self.last_exclusive;
        let kind = Kind::Blocked { parker, woken: false, away: false, behind };
        self.len += 1;
        let id = self.blocked.push(waiters, arrival.waiter(agent, kind));
        self.note_exclusive(waiters, id);
        id
    }

    /// A waiter was put at the end.
    fn note_exclusive(&mut self, waiters: &Waiters, id: WaiterId) {
        let waiter = &waiters[id];
        if waiter.is_exclusive() && waiter.limit == Limit::Endless {
            self.last_exclusive = Some((waiter.ticket(), id));
        }
    }

    /// Puts an asynchronous waiter at the end.
    pub fn push_async(&mut self, waiters: &mut Waiters, arrival: Arrival, agent: &Arc<Agent>, token: u32) -> WaiterId {
        let waiter = arrival.waiter(agent.id, Kind::Async { token, beside: None });
        self.len += 1;
        let index = match self.group_index(agent.id) {
            Some(index) => index,
            None => {
                // Its first waiter is the newest of all: the order of the groups holds.
                self.groups.push(LoopGroup::new(Arc::clone(agent), waiter.ticket()));
                self.groups.len() - 1
            }
        };
        self.groups[index].count(waiter.limit, |count| count + 1);
        let id = self.groups[index].waiters.push(waiters, waiter);
        self.note_exclusive(waiters, id);
        id
    }

    /// Takes a waiter out of its list; it stays in the arena.
    pub fn unlink(&mut self, waiters: &mut Waiters, id: WaiterId) {
        self.len -= 1;
        self.set_woken(waiters, id, false);
        self.spinning.take_if(|spinning| *spinning == id && !fault!(SpinnerStaysNoted));
        if waiters[id].is_blocking() {
            self.blocked.unlink(waiters, id);
            return;
        }
        let index = self.group_index(waiters[id].agent).expect("an asynchronous waiter has a group");
        self.groups[index].count(waiters[id].limit, |count| count - 1);
        self.groups[index].waiters.unlink(waiters, id);
        match self.groups[index].waiters.first() {
            None => drop(self.groups.remove(index)),
            Some(head) => {
                self.groups[index].head_ticket = waiters[head].ticket();
                self.restore_order(index);
            }
        }
    }

    /// Moves the group at `index` behind those whose first waiters came earlier than its new first.
    fn restore_order(&mut self, mut index: usize) {
        while index + 1 < self.groups.len() && self.groups[index + 1].head_ticket < self.groups[index].head_ticket {
            self.groups.swap(index, index + 1);
            index += 1;
        }
    }

    /// A blocked waiter came and could not get in: it keeps its place, and spins before it parks.
    pub fn lost(&mut self, waiters: &mut Waiters, id: WaiterId) {
        self.set_woken(waiters, id, false);
        self.spinning = Some(id);
        if fault!(LoserGoesToTheEnd) {
            self.blocked.unlink(waiters, id);
            self.blocked.link(waiters, id);
        }
    }

    /// Marks a blocked waiter as woken, or not; nothing for an asynchronous one.
    pub fn set_woken(&mut self, waiters: &mut Waiters, id: WaiterId, on: bool) {
        if let Kind::Blocked { woken, .. } = &mut waiters[id].kind {
            match (*woken, on) {
                (false, true) => self.woken += 1,
                (true, false) => self.woken -= 1,
                _ => {}
            }
            *woken = on;
        }
    }

    /// Whether any blocked waiter is woken and will come.
    pub fn anybody_woken(&self) -> bool {
        self.woken > 0
    }

    /// The first of all waiters.
    pub fn first(&self, waiters: &Waiters) -> Option<WaiterId> {
        let group = self.groups.first();
        match (self.blocked.first(), group) {
            (Some(blocked), Some(group)) if waiters[blocked].ticket() < group.head_ticket => Some(blocked),
            (blocked, None) => blocked,
            (_, Some(group)) => Some(group.first()),
        }
    }

    /// The first blocked waiter that can be counted on.
    pub fn first_blocked(&self, waiters: &Waiters) -> Option<WaiterId> {
        self.counted_on(waiters).next()
    }

    /// The blocked waiters that can be counted on, in order.
    pub fn counted_on<'w>(&self, waiters: &'w Waiters) -> impl Iterator<Item = WaiterId> + use<'w> {
        let is_away = |id: &WaiterId| matches!(waiters[*id].kind, Kind::Blocked { away: true, .. });
        self.blocked.iter(waiters).filter(move |id| !is_away(id) || fault!(AwayThreadIsCountedOn))
    }

    /// The groups whose first waiter came before `before`, in order; all of them if it is `None`.
    pub fn groups_ahead_of(&mut self, waiters: &Waiters, before: Option<WaiterId>) -> &mut [LoopGroup] {
        let end = self.count_ahead_of(waiters, before);
        &mut self.groups[..end]
    }

    fn count_ahead_of(&self, waiters: &Waiters, before: Option<WaiterId>) -> usize {
        let limit = before.map_or(u64::MAX, |id| waiters[id].ticket());
        self.groups.partition_point(|group| group.head_ticket < limit)
    }

    /// Returns the waiters that are first in line: the first blocked one that can be counted on, and the loops ahead of it.
    fn first_in_line(&self, waiters: &Waiters) -> (&[LoopGroup], Option<WaiterId>) {
        let blocked = self.first_blocked(waiters);
        (&self.groups[..self.count_ahead_of(waiters, blocked)], blocked)
    }

    /// Whether fast paths have to fail: of what is divided they go on working while all who are first in line know that they may
    /// come.
    pub fn must_be_looked_at(&self, waiters: &Waiters) -> bool {
        if !self.is_divided {
            return true;
        }
        let (groups, blocked) = self.first_in_line(waiters);
        let is_woken = |id: WaiterId| matches!(waiters[id].kind, Kind::Blocked { woken: true, .. });
        if fault!(WaiterOfPermitsIsNotLookedAt) {
            return false;
        }
        groups.iter().any(|group| !group.has_not_come()) || blocked.is_some_and(|id| !is_woken(id))
    }

    /// Whether one of those who are first in line, and ahead of `id`, is to have what comes back bit by bit: it asks for several, has
    /// waited long enough, and is there, or its loop has come and could not be let in. `None`: whoever comes now.
    pub fn gathers_ahead(&self, waiters: &Waiters, id: Option<WaiterId>, has_aged: impl Fn(&Waiter) -> bool) -> bool {
        let limit = id.map_or(u64::MAX, |id| waiters[id].ticket());
        let gathers = |other: WaiterId| {
            let waiter = &waiters[other];
            waiter.ticket() < limit && waiter.hold.is_some_and(Hold::gathers) && has_aged(waiter)
        };
        let (groups, blocked) = self.first_in_line(waiters);
        groups.iter().any(|group| group.has_come_in_vain() && gathers(group.first())) || blocked.is_some_and(gathers)
    }

    /// Whether somebody waits ahead of this waiter who asks for an exclusive hold and will come for it: no thread that is away,
    /// and no loop that was offered what was free and has not come.
    pub fn is_behind_an_exclusive(&self, waiters: &Waiters, id: WaiterId) -> bool {
        let is_ahead = |other: &WaiterId| waiters[*other].ticket() < waiters[id].ticket();
        let will_come = |other: WaiterId| !matches!(waiters[other].kind, Kind::Blocked { away: true, .. });
        let groups = self.groups.iter().take_while(|group| is_ahead(&group.first()));
        let mut blocked = self.blocked.iter(waiters).take_while(is_ahead);
        groups.filter(|group| !group.has_not_come()).any(|group| waiters[group.first()].is_exclusive())
            || blocked.any(|other| waiters[other].is_exclusive() && will_come(other))
    }

    /// Returns the number of blocked waiters that are woken and will come.
    #[cfg(feature = "audit")]
    pub(super) fn woken(&self) -> u32 {
        self.woken
    }

    /// The blocked threads, in order.
    pub fn blocked<'w>(&self, waiters: &'w Waiters) -> impl Iterator<Item = WaiterId> + use<'w> {
        self.blocked.iter(waiters)
    }

    /// The loop groups, in the order of their first waiters.
    pub fn groups(&self) -> &[LoopGroup] {
        &self.groups
    }

    /// The group of an agent, if it waits here.
    pub fn group(&mut self, agent: AgentId) -> Option<&mut LoopGroup> {
        let index = self.group_index(agent)?;
        Some(&mut self.groups[index])
    }

    /// Its place among the groups: a smaller one means that its first waiter came earlier.
    pub fn group_index(&self, agent: AgentId) -> Option<usize> {
        self.groups.iter().position(|group| group.agent.id == agent)
    }

    /// All waiters with their tickets, which give their order; list by list.
    pub fn tickets<'q>(&'q self, waiters: &'q Waiters) -> impl Iterator<Item = (Ticket, WaiterId)> + 'q {
        let lists = self.groups.iter().map(|group| group.waiters).chain([self.blocked]);
        lists.flat_map(|list| list.iter(waiters)).map(|id| (waiters[id].ticket(), id))
    }

    /// Returns the number of waiters.
    pub fn len(&self) -> usize {
        self.len
    }

    /// The waiter with this ticket was notified, and others stay, all of whom have tickets below `next_ticket`.
    pub fn notified(&mut self, ticket: Ticket, next_ticket: Ticket) {
        self.passes.notified(ticket, next_ticket);
    }

    /// The code of the one with this ticket knows that it was notified.
    pub fn learned(&mut self, waiters: &Waiters, ticket: Ticket) {
        if let Some(first) = self.first(waiters) {
            self.passes.learned(ticket, waiters[first].ticket());
        }
    }

    /// The number of those who were notified and whose code does not know yet.
    #[cfg(all(test, not(any(loom, shuttle))))]
    pub fn unlearned(&self) -> usize {
        self.passes.unlearned()
    }

    /// Returns the waiter that is notified in place of the one with this ticket, whose thread has ended before its code knew.
    pub fn next_of(&mut self, waiters: &Waiters, ticket: Ticket) -> Option<WaiterId> {
        let first = self.first(waiters)?;
        self.passes.pass_on(ticket, waiters[first].ticket()).then_some(first)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::ptr::NonNull;

    use super::*;
    use crate::engine::HoldOwner;
    use crate::primitives::mutex::MUTEX;
    use crate::sync::AtomicU32;

    #[test]
    fn a_blocked_waiter_that_lost_keeps_its_place() {
        let word = AtomicU32::new(0);
        // SAFETY: an aligned atomic that outlives the queue.
        let mut queue = Queue::new(unsafe { Place::new(NonNull::from(&word), 0) }, &MUTEX);
        let mut waiters = Waiters::default();
        let ids = [0, 1, 2].map(|ticket| {
            let arrival = Arrival { ticket, since: Instant::now(), hold: None, limit: Limit::Endless };
            queue.push_blocked(&mut waiters, arrival, 70_000, Arc::new(Parker::current()))
        });
        queue.set_woken(&mut waiters, ids[0], true);
        queue.lost(&mut waiters, ids[0]);
        assert!(!queue.anybody_woken());
        assert_eq!(queue.first_blocked(&waiters), Some(ids[0]));
    }

    #[test]
    fn a_waiter_is_behind_those_who_wait_to_hold_it_alone_and_will_come() {
        let word = AtomicU32::new(0);
        // SAFETY: an aligned atomic that outlives the queue.
        let mut queue = Queue::new(unsafe { Place::new(NonNull::from(&word), 0) }, &MUTEX);
        let mut waiters = Waiters::default();
        let [read, write] = [Hold::shared(HoldOwner::Thread), Hold::exclusive(HoldOwner::Thread)];
        let ids = [read, read, write, read].map(|hold| {
            let (ticket, since) = (waiters.len() as u64, Instant::now());
            let arrival = Arrival { ticket, since, hold: Some(hold), limit: Limit::Endless };
            queue.push_blocked(&mut waiters, arrival, 70_000, Arc::new(Parker::current()))
        });
        let is_behind = |queue: &Queue, waiters: &Waiters| ids.map(|id| queue.is_behind_an_exclusive(waiters, id));
        assert_eq!(is_behind(&queue, &waiters), [false, false, false, true]);
        let Kind::Blocked { away, .. } = &mut waiters[ids[2]].kind else { panic!() };
        *away = true;
        assert_eq!(is_behind(&queue, &waiters), [false; 4], "it may not come");
    }
}
