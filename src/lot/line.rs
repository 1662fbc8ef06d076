//! The lines: who waits for a notification, for each location one FIFO list of blocked threads and pending promises.
//!
//! A notification takes waiters from the head and *tells* them. A told waiter stands in no line any more, but its node
//! stays until its own thread comes and takes it out: that is how a timeout, an abort and a death learn that they come
//! too late, and how a death passes on what its thread never learnt of. Nobody is told twice, and nobody but by a
//! notification: there are no spurious wake-ups.
//!
//! These are not the queues of locks: a notification never wakes who waits for a lock, nor an unlock who waits here.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use slab::Slab;

use super::Wakes;
use super::list::{Linked, Links, List, NodeId};
use crate::agent::{Agent, Notice, SPARE, WaitId};
use crate::parker::Parker;

/// How a waiter learns that it was told.
pub(crate) enum Call {
    /// A thread sleeps here.
    Parker(Arc<Parker>),
    /// A promise is pending in this agent's loop.
    Notice(Arc<Agent>, WaitId),
}

/// A notification that a waiter was told of; the number is that of its chain.
///
/// Had that waiter never come, the notification would have told the next in the line instead, and a later notification,
/// which told that one, the next but one, and so on: a chain, which goes on as long as each notification finds somebody
/// who stood in the line at the one before. At its end stands who is to be told when that waiter's thread dies, if he
/// came before the last notification of the chain: whoever came later has no part in any of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Told(u64);

struct Waiter {
    links: Links,
    ticket: u64,
    address: usize,
    call: Call,
    told: Option<Told>,
}

impl Linked for Waiter {
    fn links(&self) -> Links {
        self.links
    }

    fn links_mut(&mut self) -> &mut Links {
        &mut self.links
    }
}

/// Who waits for a notification at one location.
struct Line {
    list: List,
    /// The chain of the last notification: the ticket of the first waiter that it told.
    chain: u64,
    /// Whoever has a smaller ticket stood here at the last notification.
    notified_before: u64,
}

impl Line {
    const EMPTY: Self = Self { list: List::EMPTY, chain: 0, notified_before: 0 };
}

/// The lines of the locations that share a hash.
#[derive(Default)]
pub(crate) struct Lines {
    lines: FxHashMap<usize, Line>,
    /// Those in the lines, and those who were told and have not come yet.
    waiters: Slab<Waiter>,
    next_ticket: u64,
}

impl Lines {
    /// Puts a waiter at the end of the line at `address`.
    pub(crate) fn push(&mut self, address: usize, call: Call) -> NodeId {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        let waiter = Waiter { links: Links::NONE, ticket, address, call, told: None };
        self.lines.entry(address).or_insert(Line::EMPTY).list.push(&mut self.waiters, waiter)
    }

    /// Tells the first `count` waiters of the line at `address`; answers how many there were.
    pub(crate) fn notify(&mut self, address: usize, count: usize, wakes: &mut Wakes) -> usize {
        let next_ticket = self.next_ticket;
        let Some((line, first)) = self.first(address) else { return 0 };
        if count == 0 {
            return 0;
        }
        if first >= line.notified_before {
            line.chain = first;
        }
        line.notified_before = next_ticket;
        (0..count).take_while(|_| self.tell_first(address, wakes)).count()
    }

    /// The thread of one who was told at `address` has died before its code learnt of it: another is told instead.
    pub(crate) fn pass_on(&mut self, address: usize, Told(chain): Told, wakes: &mut Wakes) {
        if let Some((line, first)) = self.first(address)
            && line.chain == chain
            && first < line.notified_before
        {
            self.tell_first(address, wakes);
        }
    }

    /// The line at `address` and the ticket of its first waiter.
    fn first(&mut self, address: usize) -> Option<(&mut Line, u64)> {
        let line = self.lines.get_mut(&address)?;
        let first = line.list.first().expect("a line is never empty");
        Some((line, self.waiters[first as usize].ticket))
    }

    fn tell_first(&mut self, address: usize, wakes: &mut Wakes) -> bool {
        let Some(line) = self.lines.get(&address) else { return false };
        let told = Told(line.chain);
        let id = line.list.first().expect("a line is never empty");
        let waiter = &mut self.waiters[id as usize];
        waiter.told = Some(told);
        match &waiter.call {
            Call::Parker(parker) => {
                parker.wake();
                wakes.unpark(Arc::clone(parker));
            }
            // Posted here, under the lock, so that promises of one loop are settled in the order of their line.
            Call::Notice(agent, id) => {
                if agent.post(Notice::Told(*id)) {
                    wakes.turn(Arc::clone(agent));
                }
            }
        }
        self.unlink(address, id);
        true
    }

    fn unlink(&mut self, address: usize, id: NodeId) {
        let line = self.lines.get_mut(&address).expect("a waiter that was not told stands in a line");
        line.list.unlink(&mut self.waiters, id);
        if line.list.first().is_none() {
            self.lines.remove(&address);
        }
    }

    /// A waiter's own thread takes it out; answers what it was told.
    pub(crate) fn take(&mut self, id: NodeId) -> Option<Told> {
        let waiter = &self.waiters[id as usize];
        let (address, told) = (waiter.address, waiter.told);
        if told.is_none() {
            self.unlink(address, id);
        }
        self.waiters.remove(id as usize);
        self.give_back_memory();
        told
    }

    /// As [`Lines::take`], unless it was told: then it stays.
    pub(crate) fn take_back(&mut self, id: NodeId) -> bool {
        let is_waiting = self.waiters[id as usize].told.is_none();
        if is_waiting {
            self.take(id);
        }
        is_waiting
    }

    /// How many wait at `address`.
    pub(crate) fn len(&self, address: usize) -> usize {
        self.lines.get(&address).map_or(0, |line| line.list.iter(&self.waiters).count())
    }

    /// After a crowd has left.
    fn give_back_memory(&mut self) {
        if self.waiters.is_empty() && self.waiters.capacity() > SPARE {
            self.waiters = Slab::new();
        }
        if self.lines.is_empty() && self.lines.capacity() > SPARE {
            self.lines = FxHashMap::default();
        }
    }
}
