//! Finds blocking waits that can never end: a thread waits for every holder that stands in its way, and for those who
//! wait ahead of it where they stand in its way too. All of these waits have no timeout.

use std::sync::Arc;

use super::primitive::{Blockers, Space};
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

    /// Whether anybody whom `me` waits for is itself blocked: if not, the common case, there is no cycle.
    /// Each thread notes its own blockage before it reads others', under their locks: of two that close a cycle at the same
    /// time, at least one sees the other.
    fn may_be_stuck(&self, me: &Arc<Agent>, blockage: Blockage) -> bool {
        let mut blockers = self.blockers(me.id, blockage).into_iter();
        blockers.any(|blocker| blocker != me.id && self.agents.blockage(blocker).is_some())
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
                if waiter.id == me.id {
                    continue;
                }
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

    /// Whom this blocked agent waits for; nobody if it was let in in the meantime.
    fn blockers(&self, waiter: AgentId, blockage: Blockage) -> Vec<AgentId> {
        let contents = self.contents(Space::Words, blockage.address);
        let Some(queue) = contents.queues.get(&blockage.address) else { return Vec::new() };
        match queue.primitive.blockers(queue.primitive.read(queue.place)) {
            Blockers::Owner(owner) if owner != 0 && owner != waiter => vec![owner],
            Blockers::Owner(_) | Blockers::Anybody | Blockers::Holders => Vec::new(),
        }
    }
}
