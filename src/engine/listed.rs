//! The list of holds, of those primitives whose table is [`Space::Listed`]: each of their holds stands in the bucket, so that
//! it can be shown, taken away, or given back when its thread ends.

use super::contents::Contents;
use super::holders::{Holder, Holders};
use super::primitive::{Hold, Space};
use super::section::Section;
use super::table::{Engine, bucket_index};
use crate::agents::{AgentId, Notice, Standing, is_sparse};
use crate::memory::Place;
use crate::sync::{self, MutexGuard};

impl Section<'_> {
    /// Somebody holds it now, and has to report that ended agent.
    pub(super) fn note_holder(&mut self, agent: AgentId, hold: Hold, report: Option<AgentId>) {
        if let Hold::Listed(hold) = hold {
            let (is_in, report) = if hold.is_part { (false, report) } else { (true, None) };
            let holder = Holder { agent, hold, since: sync::now(), is_in, report };
            self.contents.holders.entry(self.place.address()).or_default().push(holder);
        }
    }

    /// Somebody does not hold it any more. False if the list says that it did not.
    pub(super) fn forget_holder(&mut self, agent: AgentId, hold: Hold) -> bool {
        let Hold::Listed(hold) = hold else { return true };
        let address = self.place.address();
        let all = &mut self.contents.holders;
        let Some(holders) = all.get_mut(&address) else { return false };
        let is_it = |holder: &Holder| (holder.agent, holder.hold) == (agent, hold) || fault!(AnyHoldOfANameWillDo);
        let Some(index) = holders.iter().position(is_it) else { return false };
        holders.swap_remove(index);
        if holders.is_empty() {
            all.remove(&address);
            if is_sparse(all.len(), all.capacity()) {
                all.shrink_to(2 * all.len());
            }
        }
        true
    }

    /// Takes it from all who hold it; returns them.
    pub(crate) fn evict(&mut self) -> Holders {
        let holders = self.contents.holders.remove(&self.place.address()).unwrap_or_default();
        if !holders.is_empty() {
            self.state = self.primitive.ended(self.state);
        }
        self.free_ended_owner();
        holders
    }

    /// `agent` gets in before all who wait; nobody holds it. Returns the ended agent that it has to report.
    pub(crate) fn let_in(&mut self, agent: AgentId, hold: Hold) -> Option<AgentId> {
        self.state = self.primitive.grant(self.state, hold, agent).expect("nobody holds it");
        let report = self.take_report();
        self.note_holder(agent, hold, report);
        report
    }

    /// Leaves a notice for the loop of `agent`, if that lives.
    pub(crate) fn tell(&mut self, agent: AgentId, notice: Notice) {
        if let Some(agent) = self.engine.agents.get(agent)
            && agent.post(notice)
        {
            self.wakes.turn(agent);
        }
    }

    /// Whether it has that hold at this moment.
    pub(crate) fn is_holder(&mut self, agent: AgentId, hold: Hold) -> bool {
        self.contents.holder(self.place.address(), agent, hold).is_some()
    }

    /// The thread of `agent` has ended with this hold: others get in. It is marked if its code was in; else the next reports what
    /// it did not come to report.
    pub(crate) fn end_hold(&mut self, agent: AgentId, hold: Hold) {
        let Some(holder) = self.contents.holder(self.place.address(), agent, hold) else { return };
        let (was_in, report) = (holder.is_in || fault!(EndBesideANameMarksIt), holder.report);
        if !self.forget_holder(agent, hold) {
            return;
        }
        if was_in && hold.is_exclusive() && !fault!(EndedHolderOfANameIsNotMarked) {
            self.abandoned_by = Some(agent);
            self.state = self.primitive.ended(self.state);
        } else if let Some(state) = self.primitive.release(self.state, hold, agent) {
            self.state = state;
            self.leave_report(report);
        }
        self.hand_off();
    }
}

/// All that is listed, at one moment: nothing of it changes for as long as this lives.
pub(crate) struct Listed<'e>(Vec<MutexGuard<'e, Contents>>);

impl Listed<'_> {
    /// Returns the bucket in which what is at `address` is listed.
    pub(crate) fn contents(&self, address: usize) -> &Contents {
        &self.0[bucket_index(address, self.0.len())]
    }
}

impl Engine {
    /// All that is listed.
    pub(crate) fn listed(&self) -> Listed<'_> {
        Listed(self.buckets(Space::Listed).map(|bucket| bucket.contents.lock()).collect())
    }

    /// Notes that a hold of `agent` does not suffice yet, or, `is_in`, does from now on. False if it is not held any more.
    pub(crate) fn note_in(&self, place: Place, agent: AgentId, hold: Hold, is_in: bool) -> bool {
        let mut contents = self.contents(Space::Listed, place.address());
        let Some(holder) = contents.holder(place.address(), agent, hold) else { return false };
        holder.is_in = is_in;
        if is_in {
            holder.report = None;
        }
        holder.since = sync::now();
        true
    }

    /// Whether the agent's thread has ended, though what it held or waited for is still written down.
    pub(crate) fn is_ghost(&self, agent: AgentId) -> bool {
        self.agents.standing(agent) == Standing::Ended && !fault!(QueryShowsGhosts)
    }
}
