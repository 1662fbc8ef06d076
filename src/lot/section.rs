//! A section: one decision on a frozen word and its queue, and the transitions that it may make.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::queue::{Kind, Node, NodeId, Party, Queue, Reservation};
use super::{Contents, Corrupt, Leaving, Lot, Wakes};
use crate::agent::{Agent, AgentId, Standing};
use crate::mutex::Attempt;
use crate::parker::Parker;
use crate::shared_word::SharedWord;
use crate::sync::{self, MutexGuard, Ordering};
use crate::word::{WAITING, Word};

/// What came of a loop's coming for a word.
pub(crate) enum Claim {
    /// Its first waiter has it.
    Acquired {
        /// The waiter's.
        token: u32,
        /// The dead holder whose end it has to report.
        abandoned_by: Option<AgentId>,
    },
    /// Another has it: the next to free it will keep it for this loop.
    Remembered(SharedWord),
    /// Nobody of this loop waits for it, or this very thread holds it.
    InVain,
}

/// A word, frozen, and its queue, locked. Must be closed.
pub(crate) struct Section<'l> {
    lot: &'l Lot,
    contents: MutexGuard<'l, Contents>,
    shared: SharedWord,
    /// The value that it was frozen at.
    frozen: Word,
    /// The value to be stored at the end, W aside.
    word: Word,
    /// The dead holder that the next to acquire the word will report.
    abandoned_by: Option<AgentId>,
    /// The blocked waiter that the word is handed to, and what it has to report.
    granted: Option<(Arc<Parker>, Option<AgentId>)>,
    wakes: Wakes,
}

impl<'l> Section<'l> {
    pub(super) fn begin(
        lot: &'l Lot,
        mut contents: MutexGuard<'l, Contents>,
        shared: SharedWord,
    ) -> Result<Self, Corrupt> {
        let queue = contents.queues.get_mut(&shared.address());
        let queued = queue.is_some();
        let reservation = queue.as_ref().is_some_and(|queue| queue.reservation.is_some());
        let is_plausible =
            |word: Word| word.is_plausible(queued, reservation, |id| lot.agents.standing(id) != Standing::NeverIssued);

        // Looked at before it is changed: foreign content stays as it is.
        // Relaxed: the read-modify-write below decides.
        if !is_plausible(Word(shared.atomic().load(Ordering::Relaxed))) {
            return Err(Corrupt);
        }
        // Acquire: pairs with the release of the unlock (JS compare-exchange, or the store in `close`) that wrote this value.
        // Nothing is published here: that is for the store at the end.
        let word = Word(shared.atomic().fetch_or(WAITING, Ordering::Acquire));
        if !is_plausible(word) {
            shared.atomic().store(word.0, Ordering::Release);
            return Err(Corrupt);
        }
        let abandoned_by = queue.and_then(|queue| queue.abandoned_by.take());
        Ok(Self { lot, contents, shared, frozen: word, word, abandoned_by, granted: None, wakes: Wakes::default() })
    }

    /// Ends the section: the word thaws, then the bucket's lock is released.
    pub(crate) fn close(self) -> Wakes {
        let Self { mut contents, shared, frozen, mut word, abandoned_by, granted, mut wakes, .. } = self;
        let address = shared.address();
        let mut anybody_queued = false;
        let Contents { queues, holds, .. } = &mut *contents;
        if let Some(queue) = queues.get_mut(&address) {
            anybody_queued = !queue.is_empty();
            queue.abandoned_by = abandoned_by;
            if word.owner() != frozen.owner() || !frozen.is_waiting() {
                // Without W the word was free to change hands unseen.
                *holds += 1;
                queue.hold = *holds;
            }
            if !anybody_queued {
                queues.remove(&address);
                contents.give_back_memory();
            }
        }
        if let Some(dead) = abandoned_by
            && !anybody_queued
        {
            // Nobody is left to remember whose end is unreported: the word itself does, as if nobody had come since.
            word = word.taken(dead, false);
        }
        // Release: what this section and its callers wrote is seen by whoever acquires the word.
        shared.atomic().store(word.closed(anybody_queued).0, Ordering::Release);
        if let Some((parker, unreported)) = granted {
            // After the store: a thread that learns of its hold finds its id in the word.
            parker.grant(unreported);
            wakes.unpark(parker);
        }
        wakes
    }

    /// The frozen value, as it will be stored.
    pub(crate) fn word(&self) -> Word {
        self.word
    }

    /// A holder that is dead loses the word, which is marked. True if there was one.
    pub(crate) fn free_dead_owner(&mut self) -> bool {
        let owner = self.word.owner();
        let dead = owner != 0 && self.lot.agents.standing(owner) == Standing::Dead;
        if dead {
            self.abandoned_by = Some(owner);
            self.word = self.word.freed_for_dead();
        }
        dead
    }

    /// `agent` takes the word. Answers the dead holder whose end it has to report, if there is one.
    pub(crate) fn take(&mut self, agent: AgentId, guarded: bool) -> Option<AgentId> {
        debug_assert!(self.word.is_takeable());
        self.word = self.word.taken(agent, guarded);
        self.contents.tally.abandoned += u64::from(self.abandoned_by.is_some());
        self.abandoned_by.take()
    }

    /// The holder frees the word, and the next gets it.
    pub(crate) fn release(&mut self) {
        self.word = self.word.freed();
        self.hand_on();
    }

    /// Takes back a hold whose holder's code never ran; `unreported` is what [`Self::take`] had told it.
    pub(crate) fn revoke(&mut self, unreported: Option<AgentId>) {
        self.abandoned_by = self.abandoned_by.or(unreported);
        self.release();
    }

    /// The holder declares the guarded data sound again.
    pub(crate) fn mark_consistent(&mut self) {
        self.word = self.word.consistent();
    }

    /// Puts this thread at the end of the queue, to sleep in `parker`.
    pub(crate) fn push_blocked(
        &mut self,
        agent: AgentId,
        parker: Arc<Parker>,
        guarded: bool,
        since: Instant,
    ) -> NodeId {
        self.contents.tally.enter(true);
        let (queue, nodes) = self.queue_or_new();
        let id = queue.push_blocked(nodes, agent, parker, guarded, since);
        queue.lingering = Some(id);
        id
    }

    /// Puts a pending promise of `agent` at the end of the queue.
    pub(crate) fn push_async(&mut self, agent: &Arc<Agent>, token: u32, guarded: bool) -> NodeId {
        self.contents.tally.enter(false);
        let (queue, nodes) = self.queue_or_new();
        queue.push_async(nodes, agent, token, guarded, sync::now())
    }

    /// The holder itself would wait for the word, and for ever.
    pub(crate) fn note_deadlock(&mut self) {
        self.contents.tally.deadlocks += 1;
    }

    /// Whether `agent` has asynchronous waiters here.
    pub(crate) fn has_party(&mut self, agent: AgentId) -> bool {
        self.queue().is_some_and(|(queue, _)| queue.party(agent).is_some())
    }

    /// Whether the word is reserved for `agent`; if so it no longer is.
    pub(crate) fn drop_reservation_of(&mut self, agent: AgentId) -> bool {
        let Some((queue, _)) = self.queue() else { return false };
        let had = queue.reservation.take_if(|reservation| reservation.agent == agent).is_some();
        if had {
            self.word = self.word.reserved(false);
        }
        had
    }

    /// A woken, or returning, blocked waiter tries to take the word; if it cannot, it keeps its place.
    pub(crate) fn arrive(&mut self, id: NodeId, away: bool) -> Option<Attempt> {
        self.free_dead_owner();
        let takeable = self.word.is_takeable();
        let (queue, nodes) = self.queue().expect("a waiter has a queue");
        if takeable {
            let node = queue.remove(nodes, id);
            self.contents.tally.serve(&node);
            return Some(Attempt::Acquired { abandoned_by: self.take(node.agent, node.guarded) });
        }
        queue.set_woken(nodes, id, false);
        queue.lingering = Some(id);
        if let Kind::Blocked { parker, away: is_away, .. } = &mut nodes[id as usize].kind {
            parker.rest();
            *is_away = away;
        }
        None
    }

    /// The first asynchronous waiter of `agent` gets the word if it is free and nobody before it is to have it;
    /// else the claim is remembered.
    pub(crate) fn claim(&mut self, agent: AgentId) -> Claim {
        if !self.has_party(agent) {
            // An offer that its waiter did not live to see. Whoever comes for nobody must not free a dead holder's word
            // either: the scan of that death would not find it any more.
            return Claim::InVain;
        }
        self.free_dead_owner();
        let (word, shared) = (self.word, self.shared);
        let (queue, nodes) = self.queue().expect("it has a party");
        let mine = queue.party_index(agent).expect("it has a party");
        let reservation = queue.reservation.filter(|reservation| reservation.agent != agent);
        let before_me =
            |reservation: Reservation| queue.party_index(reservation.agent).is_none_or(|place| place < mine);
        let is_mine = word.owner() == 0 && !reservation.is_some_and(before_me);
        let party = queue.party(agent).expect("it has a party");
        party.offered = false;
        // A hold of this very thread is no reason to remember: W is set again, so its own unlock offers again.
        party.claimed = !is_mine && word.owner() != agent;
        if !is_mine {
            return if party.claimed { Claim::Remembered(shared) } else { Claim::InVain };
        }
        party.level = 0;
        let id = party.first();
        if let Some(behind) = reservation.and_then(|reservation| queue.party(reservation.agent)) {
            behind.claimed = true;
        }
        queue.reservation = None;
        let node = queue.remove(nodes, id);
        let Kind::Async { token } = node.kind else { unreachable!("parties hold asynchronous waiters") };
        self.contents.tally.serve(&node);
        self.word = word.reserved(false);
        Claim::Acquired { token, abandoned_by: self.take(agent, node.guarded) }
    }

    /// A waiter gives up, or its thread ends; if the word is free, the next is set on its way.
    pub(crate) fn leave(&mut self, id: NodeId, why: Leaving) {
        let (queue, nodes) = self.queue().expect("a waiter has a queue");
        let node = queue.remove(nodes, id);
        let agent = node.agent;
        let is_last = queue.party(agent).is_none();
        if is_last {
            self.drop_reservation_of(agent);
        }
        self.contents.tally.leave(&node, why);
        if self.word.is_takeable() {
            self.hand_on();
        }
    }

    /// If the lease `generation` still stands, the word is no longer reserved.
    pub(super) fn end_lease(&mut self, generation: u64) {
        let Some((queue, _)) = self.queue() else { return };
        let is_ours = |reservation: &mut Reservation| reservation.generation == generation;
        let Some(reservation) = queue.reservation.take_if(is_ours) else { return };
        if let Some(party) = queue.party(reservation.agent) {
            party.level += 1;
        }
        self.contents.tally.passed_by += 1;
        self.word = self.word.reserved(false);
        self.hand_on();
    }

    /// The one way on for a free word: see to it that somebody is on his way, in an order that is fair.
    pub(crate) fn hand_on(&mut self) {
        debug_assert!(self.word.is_takeable());
        let address = self.shared.address();
        let patience = self.lot.patience;
        let Contents { queues, nodes, .. } = &mut *self.contents;
        let Some(queue) = queues.get_mut(&address) else { return };
        let blocked = queue.first_blocked(nodes);

        // A loop that came and found the word held goes first, if it is ahead and can come again.
        let parties = queue.parties_ahead_of(nodes, blocked);
        for index in 0..parties.len() {
            let claimed = std::mem::take(&mut parties[index].claimed);
            if !claimed || parties[index].agent.is_blocked() || patience.lease.is_zero() {
                continue;
            }
            offer(&mut parties[..=index], address, &mut self.wakes);
            let party = &parties[index];
            let generation = self.lot.serial();
            let waited = sync::now().saturating_duration_since(nodes[party.first() as usize].since);
            let until = sync::now() + lease(patience, party.level, waited);
            queue.reservation = Some(Reservation { agent: party.agent.id, generation });
            self.word = self.word.reserved(true);
            self.wakes.lease(address, generation, until);
            return;
        }
        offer(parties, address, &mut self.wakes);

        let Some(first) = blocked else { return };
        let now = sync::now();
        let has_aged = now.saturating_duration_since(nodes[first as usize].since) >= patience.grant_after;
        let is_due = queue.last_grant.is_none_or(|last| now.saturating_duration_since(last) >= patience.grant_every);
        if has_aged && is_due {
            queue.last_grant = Some(now);
            self.grant(first);
        } else if let Some(lingering) = queue.lingering.filter(|id| parker(nodes, *id).is_lingering()) {
            // It runs: the word goes there without a system call, and without a moment in which nobody has it.
            self.grant(lingering);
        } else if !queue.anybody_woken() {
            queue.set_woken(nodes, first, true);
            let parker = parker(nodes, first);
            parker.wake();
            self.wakes.unpark(Arc::clone(parker));
        }
    }

    /// A blocked waiter gets the free word.
    fn grant(&mut self, id: NodeId) {
        let Contents { queues, nodes, tally, .. } = &mut *self.contents;
        let queue = queues.get_mut(&self.shared.address()).expect("a waiter has a queue");
        let node = queue.remove(nodes, id);
        tally.serve(&node);
        tally.handovers += 1;
        tally.abandoned += u64::from(self.abandoned_by.is_some());
        self.word = self.word.taken(node.agent, node.guarded);
        let Kind::Blocked { parker, .. } = node.kind else { unreachable!("it is on the blocked list") };
        self.granted = Some((parker, self.abandoned_by.take()));
    }

    fn queue(&mut self) -> Option<(&mut Queue, &mut slab::Slab<Node>)> {
        let Contents { queues, nodes, .. } = &mut *self.contents;
        Some((queues.get_mut(&self.shared.address())?, nodes))
    }

    fn queue_or_new(&mut self) -> (&mut Queue, &mut slab::Slab<Node>) {
        let Contents { queues, nodes, .. } = &mut *self.contents;
        let shared = self.shared;
        (queues.entry(shared.address()).or_insert_with(|| Queue::new(shared)), nodes)
    }
}

/// Where a blocked waiter sleeps.
fn parker(nodes: &slab::Slab<Node>, id: NodeId) -> &Arc<Parker> {
    let Kind::Blocked { parker, .. } = &nodes[id as usize].kind else { unreachable!("it is on the blocked list") };
    parker
}

/// Tells each loop that has not been told yet.
fn offer(parties: &mut [Party], address: usize, wakes: &mut Wakes) {
    for party in parties {
        if !std::mem::replace(&mut party.offered, true) {
            wakes.offer(Arc::clone(&party.agent), address);
        }
    }
}

/// How long a word is kept for a loop: doubling from the shortest, but beyond that at most a twentieth of the time
/// that its waiter has waited, so that a busy loop holds up the others by a twentieth.
fn lease(patience: super::Patience, level: u32, waited: Duration) -> Duration {
    let doubled = patience.lease.saturating_mul(1 << level.min(16)).min(patience.longest_lease);
    doubled.min((waited / 20).max(patience.lease))
}
