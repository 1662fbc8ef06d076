//! Finds blocking waits that can never end: cycles of threads that are blocked without a timeout,
//! each for a word that the next one holds.

use std::sync::Arc;

use crate::agent::{Agent, Blockage, ThreadId};
use crate::lot::Lot;

/// A step of a cycle: this thread waits for this word, which the next thread of the cycle holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hop {
    /// The thread that waits.
    pub thread: ThreadId,
    /// The word that it waits for, as its byte offset.
    pub byte_offset: usize,
}

impl Lot {
    /// The cycle that this wait of `me`, already queued, has closed. Then `me` counts as blocked no longer,
    /// so that no other thread of the cycle is told.
    ///
    /// A cycle can only be closed by a thread that begins to wait, so looking once, after queueing, is enough.
    /// It is read twice: a thread whose wait has the same serial both times was blocked all the time in between,
    /// so that what it held and what it waited for were true at the same moment for all of them.
    pub(crate) fn find_cycle(&self, me: &Arc<Agent>, blockage: Blockage) -> Option<Vec<Hop>> {
        if !blockage.endless || !self.may_be_stuck(me, blockage) {
            return None;
        }
        let _one_at_a_time = self.detecting.lock();
        let cycle = self.walk(me, blockage)?;
        if self.walk(me, blockage)? != cycle {
            return None;
        }
        me.set_blockage(None);
        Some(cycle.into_iter().map(|(hop, _)| hop).collect())
    }

    /// The cycle that the thread of `me` has closed although it is blocked: code that it has run between two slices of its sleep
    /// has locked a word, perhaps the very one that it waits for.
    pub fn find_cycle_in_pause(&self, me: &Arc<Agent>) -> Option<Vec<Hop>> {
        let blockage = me.blockage().filter(|blockage| blockage.endless)?;
        // Nothing is handed to a thread that is away: if it holds the word, then by that code.
        let owner = self.read_queued(blockage.address)?.owner();
        let is_own = self.agents.get(owner).is_some_and(|owner| owner.shares_thread_with(me));
        let cycle = if is_own {
            vec![Hop { thread: me.thread, byte_offset: blockage.byte_offset }]
        } else {
            self.find_cycle(me, blockage)?
        };
        if let Some(Ok(mut section)) = self.open_queued(blockage.address) {
            section.note_deadlock();
            section.close().carry_out(self);
        }
        Some(cycle)
    }

    /// Whether the holder is itself blocked: if not, the common case, there is no cycle.
    /// Each thread notes its own blockage before it reads others', under their locks: of two that close a cycle at the same
    /// time, at least one sees the other.
    fn may_be_stuck(&self, me: &Arc<Agent>, blockage: Blockage) -> bool {
        let owner = self.read_queued(blockage.address).map_or(0, |word| word.owner());
        owner != me.id && self.agents.get(owner).is_some_and(|holder| holder.blockage().is_some())
    }

    /// Follows holders and what they wait for, from `me` until it comes back to `me`.
    fn walk(&self, me: &Arc<Agent>, blockage: Blockage) -> Option<Vec<(Hop, u64)>> {
        let mut cycle: Vec<(Hop, u64)> = Vec::new();
        let mut waiter = Arc::clone(me);
        let mut blockage = blockage;
        loop {
            if !blockage.endless || cycle.iter().any(|(_, serial)| *serial == blockage.serial) {
                return None;
            }
            cycle.push((Hop { thread: waiter.thread, byte_offset: blockage.byte_offset }, blockage.serial));
            let owner = self.read_queued(blockage.address)?.owner();
            if owner == waiter.id {
                // Granted to it in the meantime: it is on its way.
                return None;
            }
            waiter = self.agents.get(owner)?;
            if waiter.shares_thread_with(me) {
                return Some(cycle);
            }
            blockage = waiter.blockage()?;
        }
    }
}
