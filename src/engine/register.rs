//! The register of holds: what each agent holds that a primitive's words cannot say: shared holds, and what is counted.
//!
//! A slot is two counts in memory that an agent's JS shares with the core: raw holds, and holds that a guard owns. Only its
//! own thread changes the counts: the fast path in JS, in the same expression as the compare-exchange on the word, between
//! which V8 can stop a thread at no point; the slow paths here. A grant by another thread lives in the waiter until its own
//! thread collects it. When an agent ends, its slots say what has to be given back, exactly.

use super::primitive::{Hold, Primitive};
use super::slot::Slot;
use super::table::Engine;
use crate::agents::AgentId;
use crate::memory::Place;

impl Engine {
    /// Takes in a slot of `agent` for a primitive, in place of one that it has there: for another primitive, whose memory this
    /// was before, or one that its JS never learned of, because it was interrupted. On the agent's thread.
    pub fn add_slot(&self, primitive: &'static dyn Primitive, place: Place, slot: Slot) {
        let mut contents = self.contents(primitive.space(), place.address());
        let before = contents.take_slot(place.address(), slot.agent);
        let slot = before.map_or(slot, |before| slot.with_what_is_beside(before));
        contents.slots.entry(place.address()).or_default().push(slot);
        drop(contents);
        let mut registers = self.registers.lock();
        let places = registers.entry(slot.agent).or_default();
        if places.contains_key(&place.address()) && fault!(RegisterKeepsFormerPrimitive) {
            return;
        }
        places.insert(place.address(), (primitive, place));
    }

    /// Gives up the slot of `agent` for a primitive; false if it is in use.
    pub fn free_slot(&self, primitive: &'static dyn Primitive, place: Place, agent: AgentId) -> bool {
        let mut contents = self.contents(primitive.space(), place.address());
        let slots = contents.slots.get(&place.address()).into_iter().flatten();
        if slots.into_iter().any(|slot| slot.agent == agent && slot.read().sum() > 0) {
            return false;
        }
        contents.take_slot(place.address(), agent);
        drop(contents);
        if let Some(places) = self.registers.lock().get_mut(&agent) {
            places.remove(&place.address());
        }
        true
    }

    /// Sets aside, beside a wait, what `agent` holds of this: the clock may take it back. On its own thread.
    pub(crate) fn set_aside(&self, primitive: &'static dyn Primitive, place: Place, agent: AgentId, hold: Hold) {
        self.with_slot(primitive, place, agent, hold, |slot| slot.set_aside(hold.owner(), hold.count()));
    }

    /// Takes back what was beside a wait: it is its code's, or is given back by it. On its own thread.
    pub(crate) fn bring_back(&self, primitive: &'static dyn Primitive, place: Place, agent: AgentId, hold: Hold) {
        self.with_slot(primitive, place, agent, hold, |slot| {
            let count = slot.take_from_aside(hold.owner(), hold.count());
            slot.change(hold.owner(), |held| held.saturating_add(count));
        });
    }

    /// Gives back what was beside a wait. On any thread.
    pub(super) fn drop_aside(&self, primitive: &'static dyn Primitive, place: Place, agent: AgentId, hold: Hold) {
        self.with_slot(primitive, place, agent, hold, |slot| {
            slot.take_from_aside(hold.owner(), hold.count());
        });
    }

    /// Notes that `agent` has got a hold that its words do not tell of. On its own thread.
    pub(crate) fn note_hold(&self, primitive: &'static dyn Primitive, place: Place, agent: AgentId, hold: Hold) {
        self.with_slot(primitive, place, agent, hold, |slot| {
            slot.change(hold.owner(), |count| count.saturating_add(hold.count()));
        });
    }

    /// Notes that `agent` holds so much less. On its own thread.
    pub(crate) fn note_release(&self, primitive: &'static dyn Primitive, place: Place, agent: AgentId, hold: Hold) {
        self.with_slot(primitive, place, agent, hold, |slot| {
            slot.change(hold.owner(), |count| count.saturating_sub(hold.count()));
        });
    }

    /// Only what words do not tell of is in a slot.
    fn with_slot(
        &self,
        primitive: &'static dyn Primitive,
        place: Place,
        agent: AgentId,
        hold: Hold,
        act: impl FnOnce(&mut Slot),
    ) {
        if !primitive.is_registered(hold) {
            return;
        }
        let mut contents = self.contents(primitive.space(), place.address());
        let mut slots = contents.slots.get_mut(&place.address()).into_iter().flatten();
        if let Some(slot) = slots.find(|slot| slot.agent == agent) {
            act(slot);
        }
    }

    /// An agent has ended: what its register says goes back, and others get in.
    pub(super) fn give_back_holds(&self, agent: AgentId) {
        let places = self.registers.lock().remove(&agent).unwrap_or_default();
        for (primitive, place) in places.into_values() {
            let Ok(mut section) = self.open(primitive, place) else {
                // Overwritten: nobody can say what its holds are worth.
                self.contents(primitive.space(), place.address()).take_slot(place.address(), agent);
                continue;
            };
            section.give_back(agent);
            section.finish();
        }
    }
}
