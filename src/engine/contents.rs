//! The contents of a bucket: what the engine knows of the primitives whose addresses share a hash.

use std::sync::Arc;
use std::time::Instant;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::expiry::Expiry;
use super::holders::{Held, Holder, Holders};
use super::limit::Limit;
use super::primitive::{Hold, Mode, Order, Primitive};
use super::queue::{Arrival, Kind, LoopGroup, Queue, Settlement, Ticket, Turn, Waiter, WaiterId, Waiters};
use super::slot::Slot;
use super::stats::{Leaving, Stats};
use super::wakes::Wakes;
use crate::agents::{AgentId, Notice, is_sparse};
use crate::memory::Place;
use crate::sync::{AtomicBool, AtomicU32, Mutex, Ordering};

/// The queues of the addresses that share a hash.
#[repr(align(128))]
#[derive(Default)]
pub(crate) struct Bucket {
    pub(crate) contents: Mutex<Contents>,
    /// A thread spins for a lock of this bucket, unqueued.
    pub(crate) has_spinner: AtomicBool,
    /// The lengths that spins have seen of the holds of this bucket's locks.
    pub(crate) holds: HoldLengths,
}

/// The number of times in a row that spins have seen one and the same holder all the time. A loop that locks again at once can
/// look like that by chance, hence twice.
// Relaxed throughout: a hint that guards no data.
#[derive(Default)]
pub(crate) struct HoldLengths(AtomicU32);

impl HoldLengths {
    const LONG: u32 = 2;
    const MOST: u32 = 4;

    /// Whether holds are longer than a spin.
    pub(crate) fn are_long(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= Self::LONG
    }

    pub(crate) fn note(&self, change: impl FnOnce(u32) -> u32) {
        self.0.store(change(self.0.load(Ordering::Relaxed)).min(Self::MOST), Ordering::Relaxed);
    }
}

/// The data that a bucket's lock guards.
#[derive(Default)]
pub(crate) struct Contents {
    pub(crate) queues: FxHashMap<usize, Queue>,
    pub(crate) waiters: Waiters,
    pub(crate) stats: Stats,
    pub(crate) next_ticket: Ticket,
    /// The number of holds that were distinguished.
    pub(crate) hold_serials: u64,
    /// The slots of the register of holds, by address.
    pub(crate) slots: FxHashMap<usize, SmallVec<[Slot; 2]>>,
    /// The listed holders, by address.
    pub(crate) holders: FxHashMap<usize, Holders>,
    /// Holds that went back because their thread ended, which were not reported yet.
    pub(crate) ended: Vec<EndedHold>,
}

/// An entry of the register of holds of an agent that has ended.
pub(crate) struct EndedHold {
    pub(super) address: usize,
    /// The primitive's: its memory may be another's by now.
    pub(super) name: &'static str,
    pub(super) agent: AgentId,
    /// When, among the engine's serials.
    pub(super) serial: u64,
}

impl Contents {
    /// The queue at `address`, a new one if none waits there.
    pub(crate) fn queue_or_new(
        &mut self,
        place: Place,
        primitive: &'static dyn Primitive,
    ) -> (&mut Queue, &mut Waiters) {
        let queue = self.queues.entry(place.address()).or_insert_with(|| Queue::new(place, primitive));
        (queue, &mut self.waiters)
    }

    /// The queue at `address`, if anybody waits there.
    pub(crate) fn queue(&mut self, address: usize) -> Option<(&mut Queue, &mut Waiters)> {
        Some((self.queues.get_mut(&address)?, &mut self.waiters))
    }

    /// A ticket greater than all before.
    pub(crate) fn ticket(&mut self) -> Ticket {
        self.next_ticket += 1;
        self.next_ticket - 1
    }

    /// Takes a settled waiter out of the table; `None` if it is not settled. Called by its own thread.
    pub(crate) fn collect(&mut self, id: WaiterId) -> Option<Settlement> {
        let settlement = self.waiters[id].settlement?;
        self.waiters.remove(id);
        Some(settlement)
    }

    /// Takes a waiter out of its queue and the table; not a settled one. The queue stays, for the section to close.
    pub(crate) fn remove(&mut self, address: usize, id: WaiterId) -> Waiter {
        self.unlink(address, id);
        self.waiters.remove(id)
    }

    fn unlink(&mut self, address: usize, id: WaiterId) {
        let queue = self.queues.get_mut(&address).expect("a waiter that is not settled is queued");
        queue.unlink(&mut self.waiters, id);
    }

    /// Settles a waiter; its thread is woken, or its loop gets a notice.
    pub(crate) fn settle(&mut self, address: usize, id: WaiterId, settlement: Settlement, wakes: &mut Wakes) {
        let queue = self.queues.get_mut(&address).expect("a waiter that is not settled is queued");
        let waiter = &self.waiters[id];
        match &waiter.kind {
            Kind::Blocked { parker, .. } => wakes.unpark(Arc::clone(parker)),
            Kind::Async { token, .. } => {
                let group = queue.group(waiter.agent).expect("an asynchronous waiter has a group");
                // Posted here, under the lock, so that promises of one loop are settled in the order of their queue.
                post_settled(group, *token, wakes);
            }
        }
        self.settle_silently(address, id, settlement);
    }

    /// As [`Contents::settle`], for a waiter whose thread learns of it in another way.
    pub(crate) fn settle_silently(&mut self, address: usize, id: WaiterId, settlement: Settlement) {
        self.waiters[id].settlement = Some(settlement);
        match settlement {
            Settlement::Granted { .. } if fault!(GrantedStillCountsAsWaiting) => {}
            Settlement::Granted { .. } => self.stats.served(&self.waiters[id]),
            Settlement::Corrupt | Settlement::Refused { .. } => self.stats.left(&self.waiters[id], Leaving::Ending),
            Settlement::Expired => self.stats.left(&self.waiters[id], Leaving::TimedOut),
            Settlement::Notified(_) => {}
        }
        if fault!(SettledWaiterStaysQueued) {
            return;
        }
        self.unlink(address, id);
    }

    /// The thread of one who was notified at `address` has ended before its code knew: another is notified instead.
    pub(crate) fn pass_on(&mut self, address: usize, ticket: Ticket, wakes: &mut Wakes) {
        if let Some((queue, waiters)) = self.queue(address)
            && let Some(next) = queue.next_of(waiters, ticket)
        {
            let ticket = waiters[next].ticket();
            self.settle(address, next, Settlement::Notified(ticket), wakes);
            self.forget_if_empty(address);
        }
    }

    /// Takes out the slot of `agent` at `address`.
    pub(crate) fn take_slot(&mut self, address: usize, agent: AgentId) -> Option<Slot> {
        let slots = self.slots.get_mut(&address)?;
        let index = slots.iter().position(|slot| slot.agent == agent)?;
        let slot = slots.swap_remove(index);
        if slots.is_empty() {
            self.slots.remove(&address);
        }
        Some(slot)
    }

    /// Forgets a queue that has emptied.
    pub(crate) fn forget_if_empty(&mut self, address: usize) {
        if self.queues.get(&address).is_some_and(Queue::is_empty) {
            self.queues.remove(&address);
            if is_sparse(self.queues.len(), self.queues.capacity()) {
                self.queues.shrink_to(2 * self.queues.len());
            }
        }
    }

    /// Returns what a new waiter brings.
    pub(crate) fn arrival(&mut self, since: Instant, hold: Option<Hold>, limit: Limit) -> Arrival {
        Arrival { ticket: self.ticket(), since, hold, limit }
    }

    /// A waiter of words that were overwritten leaves; the words are left alone.
    pub(crate) fn abandon_queue(&mut self, address: usize, id: WaiterId) {
        if self.collect(id).is_some() {
            return;
        }
        let waiter = self.remove(address, id);
        self.stats.left(&waiter, Leaving::Ending);
        self.left_behind(address, waiter.agent);
    }

    /// The time of a waiter is over of which no section has the words: they were overwritten, or there are none. A grant by an
    /// outsider, which its loop has not come for, passes. Returns what goes back as well.
    pub(super) fn expire(
        &mut self,
        order: Order,
        address: usize,
        id: WaiterId,
        wakes: &mut Wakes,
    ) -> Option<Arc<dyn Expiry>> {
        match self.waiters[id].settlement {
            None => {
                let agent = self.waiters[id].agent;
                self.settle(address, id, Settlement::Expired, wakes);
                self.left_behind(address, agent);
            }
            Some(Settlement::Granted { .. }) if order == Order::Notified && !fault!(LateOuterGrantStays) => {
                self.waiters[id].settlement = Some(Settlement::Expired);
            }
            Some(_) => return None,
        }
        self.take_beside(id)
    }

    /// All that goes back with waits of this agent when the clock ends them.
    pub(super) fn beside_of(&self, agent: AgentId) -> Vec<Arc<dyn Expiry>> {
        let beside = |waiter: &Waiter| match &waiter.kind {
            Kind::Async { beside, .. } if waiter.agent == agent => beside.clone(),
            _ => None,
        };
        self.waiters.iter().filter_map(|(_, waiter)| beside(waiter)).collect()
    }

    /// The rest that goes back with a wait that the clock ends.
    pub(super) fn take_beside(&mut self, id: WaiterId) -> Option<Arc<dyn Expiry>> {
        match &mut self.waiters[id].kind {
            Kind::Async { beside, .. } => beside.take(),
            Kind::Blocked { .. } => None,
        }
    }

    /// A waiter of `agent` has left a queue of which no section has the words.
    fn left_behind(&mut self, address: usize, agent: AgentId) {
        if !fault!(OverwrittenQueueStaysReserved) {
            self.drop_reservation_of_nobody(address, agent);
        }
        self.forget_if_empty(address);
    }

    fn drop_reservation_of_nobody(&mut self, address: usize, agent: AgentId) {
        if let Some(queue) = self.queues.get_mut(&address)
            && queue.group(agent).is_none()
        {
            queue.reservation.take_if(|reservation| reservation.agent == agent);
        }
    }

    /// The addresses that have waiters.
    pub(crate) fn queued(&self) -> impl Iterator<Item = usize> {
        self.queues.iter().filter(|(_, queue)| !queue.is_empty()).map(|(address, _)| *address)
    }

    /// Returns the waiters at `address`, each with its ticket; in no order.
    pub(crate) fn waiters_of(&self, address: usize) -> impl Iterator<Item = (Ticket, &Waiter)> {
        let tickets = self.queues.get(&address).into_iter().flat_map(|queue| queue.tickets(&self.waiters));
        tickets.map(|(ticket, id)| (ticket, &self.waiters[id]))
    }

    /// Returns the holds of what is at `address`, as slots and the list say; the words may tell of another.
    pub(crate) fn held(&self, address: usize) -> impl Iterator<Item = Held> {
        let slots = self.slots.get(&address).into_iter().flatten();
        let slots = slots.map(|slot| Held { agent: slot.agent, count: slot.read().sum(), is_alone: false });
        let listed = self.holders_of(address).iter().map(|Holder { agent, hold, .. }| Held {
            agent: *agent,
            count: 1,
            is_alone: hold.mode == Mode::Exclusive,
        });
        slots.filter(|held| held.count > 0).chain(listed)
    }

    /// Returns the listed holders of what is at `address`.
    pub(crate) fn holders_of(&self, address: usize) -> &[Holder] {
        self.holders.get(&address).map_or(&[], |holders| holders)
    }

    pub(super) fn holder(&mut self, address: usize, agent: AgentId, hold: Hold) -> Option<&mut Holder> {
        let Hold::Listed(hold) = hold else { return None };
        self.holders.get_mut(&address)?.iter_mut().find(|holder| (holder.agent, holder.hold) == (agent, hold))
    }
}

/// Leaves the notice that a wait of this loop is settled.
fn post_settled(group: &mut LoopGroup, token: u32, wakes: &mut Wakes) {
    let notice = Notice::Settled(token);
    if let Turn::Parked(parker) = &group.turn {
        // It looks into its inbox before it goes on.
        group.agent.leave_notice(notice);
        if fault!(ParkedLoopSleepsOn) {
            return;
        }
        wakes.unpark(Arc::clone(parker));
    } else if group.agent.post(notice) {
        wakes.turn(Arc::clone(&group.agent));
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::ptr::NonNull;

    use super::*;
    use crate::agents::SPARE;
    use crate::primitives::mutex::MUTEX;

    #[test]
    fn memory_follows_the_number_of_queues() {
        let words: Vec<AtomicU32> = (0..10_000).map(|_| AtomicU32::new(0)).collect();
        // SAFETY: aligned atomics that outlive the table.
        let places = words.iter().map(|word| unsafe { Place::new(NonNull::from(word), 0) });
        let places: Vec<Place> = places.collect();
        let mut contents = Contents::default();
        for place in &places {
            contents.queue_or_new(*place, &MUTEX);
        }
        for place in &places {
            contents.forget_if_empty(place.address());
            assert!(contents.queues.capacity() <= SPARE.max(16 * contents.queues.len().max(64)));
        }
    }
}
