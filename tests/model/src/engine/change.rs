//! A holder changes its hold without giving it up, or ends it for good.

use super::fault::Fault;
use super::section::Locked;
use super::state::At;
use crate::primitives::{Id, Request, Word};

impl Locked<'_> {
    /// It is done: all who wait pass.
    pub(super) fn finish(&mut self, id: Id) {
        self.state.agent_mut(id).at = At::Js;
        let Word::Once(word) = self.value else { return };
        self.value = Word::Once(word.finished());
        self.state.finished = true;
        self.hand_off();
    }

    /// From writing to reading, always, and readers at the head of the queue go in; from reading to writing, if it is alone. In
    /// one step, the slot included.
    pub(super) fn change_mode(&mut self, id: Id, held: Request) {
        self.state.agent_mut(id).at = At::Js;
        let Word::RwLock(word) = self.value else { return };
        let changed = match held {
            Request::Exclusive => Some(word.downgraded()),
            _ => word.upgraded(id, self.engine.has(Fault::UpgradesBesideReaders)),
        };
        let Some(changed) = changed else { return };
        self.value = Word::RwLock(changed);
        let part = self.state.part_mut(id, self.word);
        if held == Request::Exclusive {
            part.inside = Some(Request::Shared);
            part.slot.count += u8::from(!self.engine.has(Fault::DowngradeLeavesSlot));
            part.has += 1;
            if !self.engine.has(Fault::DowngradeLetsNobodyIn) {
                self.hand_off();
            }
        } else {
            part.inside = Some(Request::Exclusive);
            part.slot.count -= 1;
            part.has -= 1;
        }
    }
}
