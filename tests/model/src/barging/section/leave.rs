//! Ways out of the queue without the lock: abort, timeout, death; and what a dying agent leaves behind.

use super::Locked;
use crate::barging::agent::{Agent, Group, Hold, Id, Life, NOBODY, Stage};
use crate::barging::fault::Fault;
use crate::barging::queue::Way;

impl Locked<'_> {
    /// A waiter may have the wake-up or the reservation that the others rely on, so whoever finds the word free as it
    /// leaves hands it on.
    pub(super) fn leave(&mut self, id: Id, way: Way) {
        self.state.queue.remove(id, way);
        self.group_left(id);
        if self.state.word.is_open() && !self.protocol.has(Fault::LeaverKeepsWakeup) {
            self.hand_off();
        }
    }

    /// A reservation for the group ends with its last waiter.
    pub(super) fn group_left(&mut self, id: Id) {
        if self.state.queue.group_size(id) > 0 {
            return;
        }
        if self.state.reserved_for == id {
            self.reserve_for_nobody();
        }
        let group = self.state.group(id);
        group.claimed = false;
        // ... not even that an offer is under way, so there may be two. (Where offers are not split, this flag is the
        // offer itself, and comes late.)
        if self.protocol.scenario.split_offers {
            group.offered = false;
        }
    }

    /// The first thing of a dying agent's cleanup that is still to do. Only once nothing is left is it marked dead: a
    /// grant that its code never saw is not an abandonment, and must not look like one to others.
    pub(super) fn die_out(&mut self, id: Id) {
        if self.state.agent(id).hold == Hold::Granted {
            self.pass_on(id);
        } else if let Some(way) = self.state.queue.any_of(id).map(|w| w.way) {
            self.leave(id, way);
        } else {
            let late = self.protocol.has(Fault::MarksAfterScan);
            let next = if late { Stage::Scan } else { Stage::Mark };
            self.state.agent_mut(id).life = Life::Dying(next);
        }
    }

    /// A grant goes on as if it had never been, and with it the duty to warn.
    fn pass_on(&mut self, id: Id) {
        let agent = self.state.agent_mut(id);
        agent.hold = Hold::No;
        let dead = std::mem::replace(&mut agent.unreported, NOBODY);
        self.state.word = self.state.word.release();
        if dead != NOBODY && !self.protocol.has(Fault::WarningDiesWithGrant) {
            self.remember(dead);
        }
        self.hand_off();
    }

    /// Only contended words are found; of the others the next comer asks whether the owner lives.
    pub(super) fn scan(&mut self, id: Id) {
        if self.state.word.owner == id && !self.state.queue.is_empty() {
            self.abandon(id);
            if !self.protocol.has(Fault::ScanWakesNobody) {
                self.hand_off();
            }
        }
        let late = self.protocol.has(Fault::MarksAfterScan);
        let agent = self.state.agent_mut(id);
        agent.life = if late { Life::Dying(Stage::Mark) } else { Life::Gone };
        *agent = Agent { life: agent.life, marked: agent.marked, group: Group::default(), ..Agent::default() };
    }
}
