//! Holds that went back because their thread ended. Nothing in the words tells of them, since what they guard is sound; whoever
//! is let in next through the core learns of them here, once, so that it can report them.

use super::contents::{Contents, EndedHold};
use super::primitive::{Primitive, Space};
use super::table::Engine;
use crate::agents::AgentId;
use crate::memory::Place;
use crate::sync::Ordering;

/// No bucket keeps more of them: of memory that nobody uses any more, they would stay for ever. The oldest go.
const MOST: usize = 64;

impl Engine {
    /// The thread of `agent` has ended, and what it held of a primitive has gone back.
    pub(super) fn note_ended(
        &self,
        contents: &mut Contents,
        primitive: &'static dyn Primitive,
        place: Place,
        agent: AgentId,
    ) {
        contents.stats.ended += 1;
        if contents.ended.len() == MOST {
            contents.ended.remove(0);
        } else {
            // Relaxed: whoever is let in because of this takes the bucket's lock after it was noted.
            self.ended.fetch_add(1, Ordering::Relaxed);
        }
        contents.ended.push(EndedHold {
            address: place.address(),
            name: primitive.name(),
            agent,
            serial: self.serial(),
        });
    }

    /// Whether anything that [`Engine::take_ended`] would return is noted: one load if nothing is, as almost always.
    pub fn has_ended(&self, place: Place) -> bool {
        // Relaxed: see `note_ended`.
        if self.ended.load(Ordering::Relaxed) == 0 {
            return false;
        }
        let contents = self.contents(Space::Words, place.address());
        contents.ended.iter().any(|ended| ended.address == place.address())
    }

    /// A moment, for [`Engine::take_ended`]: later than all before.
    pub fn moment(&self) -> u64 {
        self.serial()
    }

    /// The agents whose holds of a primitive went back because they ended, in that order; each is returned once. Not those that
    /// ended before `since`: whoever asks has known the memory since then, so that what ended before may have been in other
    /// memory at that address.
    pub fn take_ended(&self, primitive: &dyn Primitive, place: Place, since: u64) -> Vec<AgentId> {
        let mut contents = self.contents(Space::Words, place.address());
        let mut taken = Vec::new();
        let before = contents.ended.len();
        contents.ended.retain(|ended| {
            if ended.address != place.address() || ended.serial < since && !fault!(EndsOfFormerMemoryAreTold) {
                return true;
            }
            if ended.name == primitive.name() {
                taken.push(ended.agent);
            }
            false
        });
        // A bucket has MOST of them at most.
        let gone = (before - contents.ended.len()) as u32;
        self.ended.fetch_sub(gone, Ordering::Relaxed);
        taken
    }
}
