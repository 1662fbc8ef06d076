//! The exchanger: two words, at which two meet and each goes on with the other's value.
//!
//! | bits of the first word | meaning |
//! |------------------------|---------|
//! | 28 | two have met: the one who waits gets what the second word says (within a section only) |
//! | 29 | W: somebody waits, so that every change goes through the queue |
//!
//! The second word is the value of the one who waits, or 0; once two have met, that of the other. Nobody waits behind somebody:
//! whoever comes then meets them. Everything goes through the core: an exchanger that nobody waits at is of no use.

use super::word;
use crate::agents::AgentId;
use crate::engine::{About, Corrupt, Decision, Facts, Hold, Order, Primitive, Request, Space, State};
use crate::memory::Place;
use crate::sync::Ordering;

const MET: u32 = 1 << 28;
const WAITING: u32 = 1 << 29;

/// The exchanger.
pub struct Exchanger;

/// There is one for all places.
pub static EXCHANGER: Exchanger = Exchanger;

/// Both words as a state.
fn of(first: u32, value: u32) -> State {
    State(u64::from(value) << 32 | u64::from(first))
}

impl Hold {
    /// To bring this value to an exchanger.
    pub const fn exchange(value: u32) -> Self {
        Self::Passage(value)
    }
}

static ABOUT: About = About { name: "Exchanger", order: Order::Strict, space: Space::Words, registered: None };

impl Primitive for Exchanger {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn freeze(&self, place: Place, facts: &Facts<'_>) -> Result<State, Corrupt> {
        let first = word::freeze(place, WAITING, |word| word == if facts.is_queued { WAITING } else { 0 })?;
        // Relaxed: written in sections only, which the bucket's lock orders.
        Ok(of(word::of(first), place.second_word().load(Ordering::Relaxed)))
    }

    fn thaw(&self, place: Place, _: State, State(state): State, is_queued: bool) {
        place.second_word().store((state >> 32) as u32, Ordering::Relaxed);
        word::thaw(place, WAITING, word::state(0), is_queued);
    }

    fn read(&self, place: Place) -> State {
        of(word::of(word::read(place)), place.second_word().load(Ordering::Relaxed))
    }

    fn enter(&self, state: State, request: Request, _: AgentId, is_queued: bool) -> Decision {
        let Request::Hold(Hold::Passage(value)) = request else { return Decision::Refused };
        if is_queued && !fault!(PartnersPassEachOther) {
            return Decision::Granted(of(word::of(state) | MET, value));
        }
        Decision::Wait
    }

    fn queued(&self, state: State, hold: Option<Hold>) -> State {
        of(word::of(state), if let Some(Hold::Passage(value)) = hold { value } else { 0 })
    }

    /// The value of one that has left goes to nobody.
    fn left(&self, state: State) -> State {
        of(word::of(state), 0)
    }

    fn grant(&self, state: State, _: Hold, _: AgentId) -> Option<State> {
        let left = if fault!(ExchangedValueStaysBehind) { self.found(state)[0] } else { 0 };
        (word::of(state) & MET != 0).then_some(of(word::of(state) & !MET, left))
    }

    /// Two that have met have met, though the code of one will never know of it.
    fn release(&self, state: State, _: Hold, _: AgentId) -> Option<State> {
        Some(state)
    }

    /// The value of the one who is there.
    fn found(&self, State(state): State) -> [u32; 2] {
        [(state >> 32) as u32, 0]
    }

    fn is_waiting(&self, state: State) -> bool {
        word::of(state) & WAITING != 0
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn each_finds_what_the_other_brought() {
        let (first, second) = (Hold::exchange(7), Hold::exchange(u32::MAX));
        assert_eq!(EXCHANGER.enter(State(0), Request::Hold(first), 1, false), Decision::Wait);
        let waits = EXCHANGER.queued(State(0), Some(first));
        assert_eq!((EXCHANGER.found(waits)[0], EXCHANGER.grant(waits, first, 1)), (7, None));
        let Decision::Granted(met) = EXCHANGER.enter(waits, Request::Hold(second), 2, true) else {
            panic!("they meet")
        };
        assert_eq!((EXCHANGER.found(met)[0], EXCHANGER.grant(met, first, 1)), (u32::MAX, Some(State(0))));
        assert_eq!(EXCHANGER.left(waits), State(0));
    }
}
