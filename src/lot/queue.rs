//! The waiters of one word, in the order in which they came.
//!
//! Blocked threads form one list; the asynchronous waiters of each event loop (a *party*) form one of their own.
//! A ticket on each waiter gives the order between the lists. Every transition is O(1) in the number of waiters;
//! some are linear in the number of parties, or of threads that are away, which is at most the number of threads.
//! Plain data: everything here happens under the bucket's lock.

use std::sync::Arc;
use std::time::Instant;

use slab::Slab;

use super::list::{Linked, Links, List};
use crate::agent::{Agent, AgentId};
use crate::parker::Parker;
use crate::shared_word::SharedWord;

pub use super::list::NodeId;

/// One waiter.
pub struct Node {
    ticket: u64,
    links: Links,
    /// When it came.
    pub since: Instant,
    /// Whether a guard will own the hold.
    pub guarded: bool,
    /// The agent that waits.
    pub agent: AgentId,
    /// How it waits.
    pub kind: Kind,
}

/// The two ways to wait.
pub enum Kind {
    /// A thread sleeps.
    Blocked {
        /// Where it sleeps.
        parker: Arc<Parker>,
        /// It was woken and is on its way.
        woken: bool,
        /// It is inside a call into JS, which may take for ever: nobody may count on it.
        away: bool,
    },
    /// A promise is pending; the token names it on its thread.
    Async {
        /// The place in the thread's table of waits.
        token: u32,
    },
}

impl Linked for Node {
    fn links(&self) -> Links {
        self.links
    }

    fn links_mut(&mut self) -> &mut Links {
        &mut self.links
    }
}

/// The asynchronous waiters of one event loop on one word.
pub struct Party {
    /// Whose they are.
    pub agent: Arc<Agent>,
    waiters: List,
    /// The ticket of the first of them.
    head_ticket: u64,
    /// An offer is in its inbox, or about to be.
    pub offered: bool,
    /// It came for the word and found it held: the next to free the word reserves it.
    pub claimed: bool,
    /// How many leases in a row it has missed.
    pub level: u32,
}

impl Party {
    /// Its first waiter; a party is never empty.
    pub fn first(&self) -> NodeId {
        self.waiters.first().expect("a party is never empty")
    }
}

/// Why the word's F bit is set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reservation {
    /// The loop that it is kept for.
    pub agent: AgentId,
    /// Tells its lease from every other.
    pub generation: u64,
}

/// The queue of one word.
pub struct Queue {
    /// The word; its memory lives as long as anybody is queued, since each waiter keeps its buffer.
    pub word: SharedWord,
    blocked: List,
    /// In the order of their first waiters.
    parties: Vec<Party>,
    next_ticket: u64,
    /// How many blocked waiters are woken and on their way.
    woken: u32,
    /// The blocked waiter that was last to look on before it sleeps; perhaps it still does.
    pub lingering: Option<NodeId>,
    /// Set exactly while the word's F bit is.
    pub reservation: Option<Reservation>,
    /// When the word was last handed straight to a blocked waiter.
    pub last_grant: Option<Instant>,
    /// The serial of the hold, new whenever the word may have changed hands.
    pub hold: u64,
    /// The dead holder whose end the next to acquire the word will report.
    pub abandoned_by: Option<AgentId>,
}

impl Queue {
    /// An empty queue.
    pub fn new(word: SharedWord) -> Self {
        Self {
            word,
            blocked: List::EMPTY,
            parties: Vec::new(),
            next_ticket: 0,
            woken: 0,
            lingering: None,
            reservation: None,
            last_grant: None,
            hold: 0,
            abandoned_by: None,
        }
    }

    /// Whether nobody waits.
    pub fn is_empty(&self) -> bool {
        self.blocked.first().is_none() && self.parties.is_empty()
    }

    /// Puts a blocked thread at the end.
    pub fn push_blocked(
        &mut self,
        nodes: &mut Slab<Node>,
        agent: AgentId,
        parker: Arc<Parker>,
        guarded: bool,
        since: Instant,
    ) -> NodeId {
        let kind = Kind::Blocked { parker, woken: false, away: false };
        let node = self.node(agent, kind, guarded, since);
        self.blocked.push(nodes, node)
    }

    /// Puts an asynchronous waiter at the end.
    pub fn push_async(
        &mut self,
        nodes: &mut Slab<Node>,
        agent: &Arc<Agent>,
        token: u32,
        guarded: bool,
        since: Instant,
    ) -> NodeId {
        let node = self.node(agent.id, Kind::Async { token }, guarded, since);
        let head_ticket = node.ticket;
        let party = match self.party_index(agent.id) {
            Some(index) => &mut self.parties[index],
            None => {
                let agent = Arc::clone(agent);
                let waiters = List::EMPTY;
                // Its first waiter is the newest of all: the order of the parties holds.
                self.parties.push(Party { agent, waiters, head_ticket, offered: false, claimed: false, level: 0 });
                self.parties.last_mut().expect("just pushed")
            }
        };
        party.waiters.push(nodes, node)
    }

    fn node(&mut self, agent: AgentId, kind: Kind, guarded: bool, since: Instant) -> Node {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        Node { ticket, links: Links::NONE, since, guarded, agent, kind }
    }

    /// Takes a waiter out, wherever it stands.
    pub fn remove(&mut self, nodes: &mut Slab<Node>, id: NodeId) -> Node {
        self.set_woken(nodes, id, false);
        self.lingering.take_if(|lingering| *lingering == id);
        if matches!(nodes[id as usize].kind, Kind::Blocked { .. }) {
            return self.blocked.remove(nodes, id);
        }
        let index = self.party_index(nodes[id as usize].agent).expect("a waiter has a party");
        let node = self.parties[index].waiters.remove(nodes, id);
        match self.parties[index].waiters.first() {
            None => drop(self.parties.remove(index)),
            Some(head) => {
                self.parties[index].head_ticket = nodes[head as usize].ticket;
                self.restore_order(index);
            }
        }
        node
    }

    /// Moves the party at `index` behind those whose first waiters came earlier than its new first.
    fn restore_order(&mut self, mut index: usize) {
        while index + 1 < self.parties.len() && self.parties[index + 1].head_ticket < self.parties[index].head_ticket {
            self.parties.swap(index, index + 1);
            index += 1;
        }
    }

    /// Marks a blocked waiter as on its way, or not; nothing for an asynchronous one.
    pub fn set_woken(&mut self, nodes: &mut Slab<Node>, id: NodeId, on: bool) {
        if let Kind::Blocked { woken, .. } = &mut nodes[id as usize].kind {
            match (*woken, on) {
                (false, true) => self.woken += 1,
                (true, false) => self.woken -= 1,
                _ => {}
            }
            *woken = on;
        }
    }

    /// Whether any blocked waiter is on its way.
    pub fn anybody_woken(&self) -> bool {
        self.woken > 0
    }

    /// The first blocked waiter that can be counted on.
    pub fn first_blocked(&self, nodes: &Slab<Node>) -> Option<NodeId> {
        let is_away = |id: &NodeId| matches!(nodes[*id as usize].kind, Kind::Blocked { away: true, .. });
        self.blocked.iter(nodes).find(|id| !is_away(id))
    }

    /// The parties whose first waiter came before `before`, in order; all of them if it is `None`.
    pub fn parties_ahead_of(&mut self, nodes: &Slab<Node>, before: Option<NodeId>) -> &mut [Party] {
        let limit = before.map_or(u64::MAX, |id| nodes[id as usize].ticket);
        let end = self.parties.partition_point(|party| party.head_ticket < limit);
        &mut self.parties[..end]
    }

    /// The party of an agent, if it waits here.
    pub fn party(&mut self, agent: AgentId) -> Option<&mut Party> {
        let index = self.party_index(agent)?;
        Some(&mut self.parties[index])
    }

    /// Its place among the parties: a smaller one means that its first waiter came earlier.
    pub fn party_index(&self, agent: AgentId) -> Option<usize> {
        self.parties.iter().position(|party| party.agent.id == agent)
    }

    /// All waiters in order.
    pub fn waiters<'n>(&self, nodes: &'n Slab<Node>) -> Vec<&'n Node> {
        let mut all = Vec::new();
        for list in self.parties.iter().map(|party| party.waiters).chain([self.blocked]) {
            all.extend(list.iter(nodes).map(|id| &nodes[id as usize]));
        }
        all.sort_unstable_by_key(|node| node.ticket);
        all
    }
}
