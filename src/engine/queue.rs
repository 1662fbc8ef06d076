//! Who waits for one primitive, in the order in which they came.
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

use super::arena::Arena;
use super::list::{Linked, Links, List};
use super::parker::Parker;
use super::passes::Passes;
use super::primitive::{Hold, Primitive};
use crate::agents::{Agent, AgentId};
use crate::memory::Place;

pub use super::list::WaiterId;
pub use super::passes::Ticket;

/// All waiters of a bucket.
pub type Waiters = Arena<Waiter>;

/// One waiter.
pub struct Waiter {
    ticket: Ticket,
    links: Links,
    /// When it came.
    pub since: Instant,
    /// What it waits to hold; `None`: it waits for a notification.
    pub hold: Option<Hold>,
    /// The agent that waits.
    pub agent: AgentId,
    /// Whether it has neither a timeout nor a signal, as far as the core knows.
    pub is_endless: bool,
    /// How it waits.
    pub kind: Kind,
    /// How another thread ended its wait.
    pub settlement: Option<Settlement>,
}

/// The two ways to wait.
pub enum Kind {
    /// A thread sleeps.
    Blocked {
        /// Where it sleeps.
        parker: Arc<Parker>,
        /// It was woken and will come.
        woken: bool,
        /// It is inside a call into JS, which may take for ever: nobody may count on it.
        away: bool,
    },
    /// A promise is pending.
    Async {
        /// Its number in its agent's table of waits.
        token: u32,
    },
}

/// How another thread ended a wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Settlement {
    /// What it asked for is its own.
    Granted {
        /// The agent whose thread ended inside, which it has to report.
        abandoned_by: Option<AgentId>,
    },
    /// There is nothing to wait for any more.
    Refused,
    /// It was notified, under this ticket.
    Notified(Ticket),
    /// The words of its primitive were overwritten.
    Corrupt,
}

impl Linked for Waiter {
    fn links(&self) -> Links {
        self.links
    }

    fn links_mut(&mut self) -> &mut Links {
        &mut self.links
    }
}

impl Waiter {
    /// Its place in the order in which waiters came.
    pub fn ticket(&self) -> Ticket {
        self.ticket
    }

    /// Whether a thread sleeps; else a promise is pending.
    pub fn is_blocking(&self) -> bool {
        matches!(self.kind, Kind::Blocked { .. })
    }
}

/// The asynchronous waiters of one event loop.
pub struct LoopGroup {
    /// Whose they are.
    pub agent: Arc<Agent>,
    waiters: List,
    /// The ticket of the first of them.
    head_ticket: Ticket,
    /// What the loop is about.
    pub turn: Turn,
}

/// What an event loop that waits is about.
pub enum Turn {
    /// It knows of nothing.
    Idle,
    /// An offer is in its inbox, or about to be.
    Offered,
    /// It came and could not be let in: whoever releases next reserves for it.
    Claimed,
    /// It came, could not be let in, and sleeps for a moment, to be handed over to directly.
    Parked(Arc<Parker>),
}

impl LoopGroup {
    /// Its first waiter; a group is never empty.
    pub fn first(&self) -> WaiterId {
        self.waiters.first().expect("a loop group is never empty")
    }

    /// All of them, in order.
    pub fn waiters<'w>(&self, waiters: &'w Waiters) -> impl Iterator<Item = WaiterId> + use<'w> {
        self.waiters.iter(waiters)
    }
}

/// Why a primitive is kept for an event loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reservation {
    /// The loop that it is kept for.
    pub agent: AgentId,
    /// Tells its lease from every other.
    pub generation: u64,
}

/// The queue of one primitive.
pub struct Queue {
    /// Where the primitive is; its memory lives as long as anybody is queued, since each waiter keeps its buffer.
    pub place: Place,
    /// What it is.
    pub primitive: &'static dyn Primitive,
    blocked: List,
    /// In the order of their first waiters.
    groups: SmallVec<[LoopGroup; 1]>,
    /// How many blocked waiters are woken and will come.
    woken: u32,
    /// The blocked waiter that was last to spin before it parks; perhaps it still does.
    pub spinning: Option<WaiterId>,
    /// Set exactly while the primitive's state says so too.
    pub reservation: Option<Reservation>,
    /// When it was last handed over to a blocked waiter because that had aged.
    pub last_aged_grant: Option<Instant>,
    /// The serial of the hold, new whenever the owner may have changed.
    pub hold_serial: u64,
    /// The agent whose thread ended inside, which the next to get in will report.
    pub abandoned_by: Option<AgentId>,
    /// How many wait.
    len: usize,
    /// What goes on to others when threads end that were notified.
    passes: Passes,
}

/// A waiter that is about to be queued.
pub struct Arrival {
    /// Its ticket: greater than that of everybody in the bucket.
    pub ticket: Ticket,
    /// When it came.
    pub since: Instant,
    /// What it waits to hold.
    pub hold: Option<Hold>,
    /// Whether it has neither a timeout nor a signal.
    pub is_endless: bool,
}

impl Arrival {
    fn waiter(self, agent: AgentId, kind: Kind) -> Waiter {
        let Self { ticket, since, hold, is_endless } = self;
        Waiter { ticket, links: Links::NONE, since, hold, agent, is_endless, kind, settlement: None }
    }
}

impl Queue {
    /// An empty queue.
    pub fn new(place: Place, primitive: &'static dyn Primitive) -> Self {
        Self {
            place,
            primitive,
            blocked: List::EMPTY,
            groups: SmallVec::new(),
            woken: 0,
            spinning: None,
            reservation: None,
            last_aged_grant: None,
            hold_serial: 0,
            abandoned_by: None,
            len: 0,
            passes: Passes::default(),
        }
    }

    /// Whether nobody waits.
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
        let kind = Kind::Blocked { parker, woken: false, away: false };
        self.len += 1;
        self.blocked.push(waiters, arrival.waiter(agent, kind))
    }

    /// Puts an asynchronous waiter at the end.
    pub fn push_async(&mut self, waiters: &mut Waiters, arrival: Arrival, agent: &Arc<Agent>, token: u32) -> WaiterId {
        let waiter = arrival.waiter(agent.id, Kind::Async { token });
        self.len += 1;
        let index = match self.group_index(agent.id) {
            Some(index) => index,
            None => {
                let (agent, head_ticket) = (Arc::clone(agent), waiter.ticket);
                // Its first waiter is the newest of all: the order of the groups holds.
                self.groups.push(LoopGroup { agent, waiters: List::EMPTY, head_ticket, turn: Turn::Idle });
                self.groups.len() - 1
            }
        };
        self.groups[index].waiters.push(waiters, waiter)
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
        self.groups[index].waiters.unlink(waiters, id);
        match self.groups[index].waiters.first() {
            None => drop(self.groups.remove(index)),
            Some(head) => {
                self.groups[index].head_ticket = waiters[head].ticket;
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
            (Some(blocked), Some(group)) if waiters[blocked].ticket < group.head_ticket => Some(blocked),
            (blocked, None) => blocked,
            (_, Some(group)) => Some(group.first()),
        }
    }

    /// The first blocked waiter that can be counted on.
    pub fn first_blocked(&self, waiters: &Waiters) -> Option<WaiterId> {
        let is_away = |id: &WaiterId| matches!(waiters[*id].kind, Kind::Blocked { away: true, .. });
        self.blocked.iter(waiters).find(|id| !is_away(id) || fault!(AwayThreadIsCountedOn))
    }

    /// The groups whose first waiter came before `before`, in order; all of them if it is `None`.
    pub fn groups_ahead_of(&mut self, waiters: &Waiters, before: Option<WaiterId>) -> &mut [LoopGroup] {
        let limit = before.map_or(u64::MAX, |id| waiters[id].ticket);
        let end = self.groups.partition_point(|group| group.head_ticket < limit);
        &mut self.groups[..end]
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
        lists.flat_map(|list| list.iter(waiters)).map(|id| (waiters[id].ticket, id))
    }

    /// How many wait.
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
            self.passes.learned(ticket, waiters[first].ticket);
        }
    }

    /// Who is notified in place of the one with this ticket, whose thread has ended before its code knew.
    pub fn next_of(&mut self, waiters: &Waiters, ticket: Ticket) -> Option<WaiterId> {
        let first = self.first(waiters)?;
        self.passes.pass_on(ticket, waiters[first].ticket).then_some(first)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::ptr::NonNull;

    use super::*;
    use crate::primitives::mutex::MUTEX;
    use crate::sync::AtomicU32;

    #[test]
    fn a_blocked_waiter_that_lost_keeps_its_place() {
        let word = AtomicU32::new(0);
        // SAFETY: an aligned atomic that outlives the queue.
        let mut queue = Queue::new(unsafe { Place::new(NonNull::from(&word), 0) }, &MUTEX);
        let mut waiters = Waiters::default();
        let ids = [0, 1, 2].map(|ticket| {
            let arrival = Arrival { ticket, since: Instant::now(), hold: None, is_endless: true };
            queue.push_blocked(&mut waiters, arrival, 70_000, Arc::new(Parker::current()))
        });
        queue.set_woken(&mut waiters, ids[0], true);
        queue.lost(&mut waiters, ids[0]);
        assert!(!queue.anybody_woken());
        assert_eq!(queue.first_blocked(&waiters), Some(ids[0]));
    }
}
