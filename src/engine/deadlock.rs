//! Finds blocking waits that can never end: a thread waits for every holder that stands in its way, and for those who
//! wait ahead of it where they stand in its way too. All of these waits have no timeout.

use std::sync::Arc;

use super::primitive::{Blockers, Mode, Order};
use super::queue::WaiterId;
use super::table::Engine;
use crate::agents::{Agent, AgentId, Blockage, ThreadId};

/// A step of a cycle: this thread waits for this lock, which the next thread of the cycle keeps from it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hop {
    /// The thread that waits.
    pub thread: ThreadId,
    /// The lock that it waits for, as its byte offset.
    pub byte_offset: usize,
}

/// A cycle: its steps, each with the serial of its wait.
type Cycle = Vec<(Hop, u64)>;

impl Engine {
    /// The cycle that this wait of `me`, already queued, has closed. Then `me` no longer counts as blocked, so that no
    /// other thread reports the same cycle.
    ///
    /// A cycle can only be closed by a thread that begins to wait, so looking once, after queueing, is enough.
    /// It is read twice: a thread whose wait has the same serial both times was blocked all the time in between, so that
    /// what it held and what it waited for were true at the same moment for all of them.
    pub(crate) fn find_cycle(&self, me: &Arc<Agent>, blockage: Blockage) -> Option<Vec<Hop>> {
        if !blockage.endless || !self.may_be_stuck(me, blockage) {
            return None;
        }
        let _one_at_a_time = self.detecting.lock();
        let cycle = self.search(me, blockage)?;
        if !fault!(CycleIsReadOnce) && self.search(me, blockage)? != cycle {
            return None;
        }
        if !fault!(BothFindTheCycle) {
            me.set_blockage(None);
        }
        Some(cycle.into_iter().map(|(hop, _)| hop).collect())
    }

    /// The cycle that the thread of `me` has closed although it is blocked: code that it has run between two slices of its sleep
    /// has locked something, perhaps the very mutex that it waits for.
    pub fn find_cycle_in_pause(&self, me: &Arc<Agent>) -> Option<Vec<Hop>> {
        let blockage = me.blockage().filter(|blockage| blockage.endless)?;
        // Nothing is granted to a thread that is away: if it owns the word, then by that code.
        let cycle = if self.owner_of(blockage) == me.id {
            vec![Hop { thread: me.thread, byte_offset: blockage.byte_offset }]
        } else {
            self.find_cycle(me, blockage)?
        };
        if let Some(Ok(mut section)) = self.open_queued(blockage.address) {
            section.note_deadlock();
            section.finish();
        }
        Some(cycle)
    }

    /// Who owns what this agent waits for; 0 if nobody does.
    fn owner_of(&self, blockage: Blockage) -> AgentId {
        let contents = self.contents_at(blockage.address);
        let Some(queue) = contents.queues.get(&blockage.address) else { return 0 };
        match queue.primitive.blockers(queue.primitive.read(queue.place)) {
            Blockers::Owner(owner) => owner,
            Blockers::Anybody | Blockers::Holders => 0,
        }
    }

    /// Whether anybody whom `me` waits for is itself blocked: if not, the common case, there is no cycle.
    /// Each thread notes its own blockage before it reads others', under their locks: of two that close a cycle at the same
    /// time, at least one sees the other.
    fn may_be_stuck(&self, me: &Arc<Agent>, blockage: Blockage) -> bool {
        let mut blockers = self.blockers(me.id, blockage).into_iter();
        blockers.any(|blocker| blocker == me.id || self.agents.blockage(blocker).is_some())
    }

    fn search(&self, me: &Arc<Agent>, blockage: Blockage) -> Option<Cycle> {
        let mut cycle = Vec::new();
        let mut seen = Vec::new();
        (self.walk(me, me, blockage, &mut cycle, &mut seen) && !fault!(CycleGoesUnnoticed)).then_some(cycle)
    }

    /// Follows those whom `waiter` waits for, depth first, until one of them is `me`.
    fn walk(
        &self,
        me: &Arc<Agent>,
        waiter: &Arc<Agent>,
        blockage: Blockage,
        cycle: &mut Cycle,
        seen: &mut Vec<u64>,
    ) -> bool {
        if !blockage.endless || seen.contains(&blockage.serial) {
            return false;
        }
        seen.push(blockage.serial);
        cycle.push((Hop { thread: waiter.thread, byte_offset: blockage.byte_offset }, blockage.serial));
        for blocker in self.blockers(waiter.id, blockage) {
            if blocker == me.id {
                return true;
            }
            // Of a blocker that cannot run since `me` blocks their thread, the blockage is that of `me`.
            if let Some((next, blockage)) = self.agents.blockage(blocker)
                && (next.id == me.id || self.walk(me, &next, blockage, cycle, seen))
            {
                return true;
            }
        }
        cycle.pop();
        false
    }

    /// Whom this blocked agent waits for; nobody if it was let in in the meantime. For shared holds these are their
    /// holders, and those who wait ahead of it for longer than a time.
    fn blockers(&self, waiter: AgentId, blockage: Blockage) -> Vec<AgentId> {
        let contents = self.contents_at(blockage.address);
        let Some(queue) = contents.queues.get(&blockage.address) else { return Vec::new() };
        let mut blockers = Vec::new();
        match queue.primitive.blockers(queue.primitive.read(queue.place)) {
            Blockers::Anybody => return blockers,
            Blockers::Owner(owner) => {
                if owner == waiter {
                    return blockers;
                }
                blockers.push(owner);
            }
            Blockers::Holders => {}
        }
        let is_strict = queue.primitive.order() == Order::Strict;
        let slots = contents.slots.get(&blockage.address).into_iter().flatten();
        let registered = slots.filter(|slot| slot.read().sum() > 0).map(|slot| slot.agent);
        let named = contents.holders_of(blockage.address);
        let holders: Vec<AgentId> = registered.chain(named.iter().map(|holder| holder.agent)).collect();
        let mut ahead: Vec<_> = queue.tickets(&contents.waiters).collect();
        ahead.sort_unstable();
        let is_mine = |id: WaiterId| contents.waiters[id].agent == waiter && contents.waiters[id].is_blocking();
        let Some(mine) = ahead.iter().position(|(_, id)| is_mine(*id)) else { return Vec::new() };
        let is_exclusive = |id: WaiterId| contents.waiters[id].hold.is_some_and(|hold| hold.mode == Mode::Exclusive);
        let is_held_alone = named.iter().any(|holder| holder.hold.mode == Mode::Exclusive);
        let mut waits_for_holders = is_held_alone || is_exclusive(ahead[mine].1);
        for (_, id) in &ahead[..mine] {
            let other = &contents.waiters[*id];
            if is_strict && other.is_endless {
                // It goes first, and final: even a loop, which cannot come while its thread is blocked.
                blockers.push(other.agent);
            }
            if !holders.is_empty() && other.is_endless && is_exclusive(*id) {
                // It waits for the holders itself; a pending promise does so without a thread.
                waits_for_holders = true;
                if other.is_blocking() {
                    blockers.push(other.agent);
                }
            }
        }
        if waits_for_holders {
            blockers.extend(holders);
        }
        blockers
    }
}
