//! The latch: a count in one word; zero is open.
//!
//! | bits | meaning |
//! |------|---------|
//! | 0..=28 | the count |
//! | 29 | W: somebody waits, so that every change goes through the queue |
//!
//! An *entry* is one of the count that is counted down when its thread ends; who has entries, the register of holds says.

use super::word;
use crate::agents::AgentId;
use crate::engine::{About, Change, Corrupt, Counts, Facts, Hold, Order, Primitive, Space, State};
use crate::memory::Place;

/// No count is larger.
pub const MAX_COUNT: u32 = (1 << 29) - 1;
/// W: somebody waits.
pub const WAITING: u32 = 1 << 29;

/// The latch.
pub struct Latch;

/// There is only one: it has no state.
pub static LATCH: Latch = Latch;

impl Latch {
    /// The state with the count changed by `by`; `None` if that is no count.
    fn changed(&self, state: State, by: i64) -> Option<State> {
        let count = i64::from(word::of(state) & MAX_COUNT).checked_add(by)?;
        let count = (0..=i64::from(MAX_COUNT)).contains(&count).then_some(count as u32)?;
        Some(word::state(word::of(state) & WAITING | count))
    }

    /// The state with so many entries less, as far as others have not counted them down already.
    fn counted_down(&self, state: State, entries: u32) -> State {
        let count = word::of(state) & MAX_COUNT;
        word::state(word::of(state) & WAITING | count.saturating_sub(entries))
    }
}

impl Hold {
    /// Entries of a latch.
    pub const fn entries(count: u32) -> Self {
        Self::Counted { count, of: 0 }
    }
}

static ABOUT: About = About { name: "Latch", order: Order::Strict, space: Space::Words, registered: Some("entry") };

impl Primitive for Latch {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn freeze(&self, place: Place, facts: &Facts<'_>) -> Result<State, Corrupt> {
        word::freeze(place, WAITING, |word| {
            word & !(MAX_COUNT | WAITING) == 0 && (word & WAITING == 0 || facts.is_queued)
        })
    }

    fn thaw(&self, place: Place, _: State, state: State, is_queued: bool) {
        word::thaw(place, WAITING, state, is_queued);
    }

    /// A waiter that waits when it opens passes, though it closes again at once. An entry waits for nobody.
    fn grant(&self, state: State, hold: Hold, _: AgentId) -> Option<State> {
        match hold {
            Hold::Counted { count, .. } => self.changed(state, i64::from(count)),
            _ => (word::of(state) & MAX_COUNT == 0).then_some(state),
        }
    }

    /// An entry has no identity: once others counted it down, it counts nothing down any more.
    fn release(&self, state: State, hold: Hold, _: AgentId) -> Option<State> {
        match hold {
            Hold::Counted { count, .. } => self.changed(state, -i64::from(count)),
            _ => Some(state),
        }
    }

    fn may_be_gone(&self) -> bool {
        true
    }

    fn given_back(&self, state: State, counts: Counts) -> State {
        self.counted_down(state, counts.sum())
    }

    fn change(&self, state: State, change: Change, _: AgentId) -> Option<State> {
        let Change::Add { count, .. } = change else { return None };
        self.changed(state, i64::from(count))
    }

    fn found(&self, state: State) -> [u32; 2] {
        [word::of(state) & MAX_COUNT, 0]
    }

    fn is_waiting(&self, state: State) -> bool {
        word::of(state) & WAITING != 0
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const ME: AgentId = 70_000;

    #[test]
    fn it_is_open_at_zero() {
        for (count, is_open) in [(0, true), (1, false), (MAX_COUNT, false)] {
            assert_eq!(LATCH.grant(word::state(count), Hold::PASSAGE, ME).is_some(), is_open, "{count}");
        }
    }

    #[test]
    fn the_count_stays_within_its_bounds() {
        assert_eq!(LATCH.changed(word::state(2), -3), None);
        assert_eq!(LATCH.changed(word::state(MAX_COUNT), 1), None);
        assert_eq!(LATCH.changed(word::state(2 | WAITING), -2), Some(word::state(WAITING)));
    }

    #[test]
    fn entries_that_others_counted_down_count_nothing_down() {
        assert_eq!(LATCH.given_back(word::state(2), Counts { raw: 0, guarded: 5 }), word::state(0));
        assert_eq!(LATCH.given_back(word::state(7), Counts { raw: 2, guarded: 3 }), word::state(2));
    }
}
