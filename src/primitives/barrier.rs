//! The barrier: two words.
//!
//! | bits of the first word | meaning |
//! |------------------------|---------|
//! | 0..=27 | how many have come and wait |
//! | 28 | all have come: those who wait pass (within a section only) |
//! | 29 | W: somebody waits, so that every change goes through the queue |
//! | 30 | broken: those who wait and those who come are refused, until it is reset |
//! | 31 | with 30: it is new once those who wait are refused (within a section only) |
//!
//! The second word is the number of parties, as the first to arrive had it, or 0. Everything goes through the core: a
//! barrier that nobody waits at is of no use.

use super::word;
use crate::agents::AgentId;
use crate::engine::{About, Change, Corrupt, Counts, Decision, Facts, Hold, Order, Primitive, Request, Space, State};
use crate::memory::Place;
use crate::sync::Ordering;

/// The bits of the number of those who wait.
pub const ARRIVED: u32 = (1 << 28) - 1;
const COMPLETE: u32 = 1 << 28;
/// W: somebody waits.
pub const WAITING: u32 = 1 << 29;
/// It is broken.
pub const BROKEN: u32 = 1 << 30;
const RESET: u32 = 1 << 31;
/// No barrier has more parties.
pub const MAX_PARTIES: u32 = ARRIVED;

/// The barrier.
pub struct Barrier;

/// There is only one: it has no state.
pub static BARRIER: Barrier = Barrier;

/// Both words of a state.
#[derive(Clone, Copy)]
struct Words {
    first: u32,
    parties: u32,
}

impl Words {
    fn arrived(self) -> u32 {
        self.first & ARRIVED
    }

    fn state(self) -> State {
        State(u64::from(self.parties) << 32 | u64::from(self.first))
    }

    /// The first word when nobody waits.
    fn kept(self) -> u32 {
        let is_new = self.first & RESET != 0 && !fault!(ResetStaysBroken);
        if is_new { 0 } else { self.first & BROKEN }
    }

    /// Broken, with nobody in it.
    fn broken() -> State {
        Self { first: BROKEN, parties: 0 }.state()
    }
}

impl From<State> for Words {
    fn from(State(state): State) -> Self {
        Self { first: state as u32, parties: (state >> 32) as u32 }
    }
}

impl Hold {
    /// A party of a barrier that has `parties`.
    pub const fn party(parties: u32) -> Self {
        Self::Passage(parties)
    }

    /// Membership of a barrier.
    pub const MEMBER: Self = Self::Counted { count: 1, of: 0 };
}

static ABOUT: About = About { name: "Barrier", order: Order::Strict, space: Space::Words, registered: Some("member") };

impl Primitive for Barrier {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn freeze(&self, place: Place, facts: &Facts<'_>) -> Result<State, Corrupt> {
        let first = word::freeze(place, WAITING, |word| {
            let arrived = word & ARRIVED;
            word & !(ARRIVED | WAITING | BROKEN) == 0
                && (word & WAITING != 0) == facts.is_queued
                && (arrived != 0) == facts.is_queued
                && (word & BROKEN == 0 || arrived == 0)
        })?;
        // Relaxed: written in sections only, which the bucket's lock orders.
        let parties = place.second_word().load(Ordering::Relaxed);
        Ok(Words { first: word::of(first), parties }.state())
    }

    fn thaw(&self, place: Place, _: State, state: State, is_queued: bool) {
        let words = Words::from(state);
        place.second_word().store(if is_queued { words.parties } else { 0 }, Ordering::Relaxed);
        let first = if is_queued { words.first & !(COMPLETE | RESET) } else { words.kept() };
        word::thaw(place, WAITING, word::state(first), is_queued);
    }

    fn read(&self, place: Place) -> State {
        let parties = place.second_word().load(Ordering::Relaxed);
        Words { first: word::of(word::read(place)), parties }.state()
    }

    fn enter(&self, state: State, request: Request, _: AgentId, is_queued: bool) -> Decision {
        let words = Words::from(state);
        let parties = match request {
            Request::Hold(Hold::Passage(parties)) => parties,
            Request::Hold(Hold::Counted { .. }) => return Decision::Granted(state),
            _ => return Decision::Refused,
        };
        if words.first & BROKEN != 0 || is_queued && words.parties != parties {
            return Decision::Refused;
        }
        if words.arrived() + 1 < parties {
            return Decision::Wait;
        }
        Decision::Granted(Words { first: words.first | COMPLETE, ..words }.state())
    }

    fn queued(&self, state: State, hold: Option<Hold>) -> State {
        let words = Words::from(state);
        let parties = if let Some(Hold::Passage(parties)) = hold { parties } else { words.parties };
        Words { first: words.first + 1, parties }.state()
    }

    /// A party that does not stay breaks it for all.
    fn left(&self, _: State) -> State {
        Words::broken()
    }

    fn refuses(&self, state: State) -> bool {
        Words::from(state).first & BROKEN != 0
    }

    fn grant(&self, state: State, _: Hold, _: AgentId) -> Option<State> {
        (Words::from(state).first & COMPLETE != 0).then_some(state)
    }

    /// A party that passed and never knew of it has passed all the same; a member goes.
    fn release(&self, state: State, _: Hold, _: AgentId) -> Option<State> {
        Some(state)
    }

    /// A member that ends breaks it, though nobody waits.
    fn given_back(&self, state: State, counts: Counts) -> State {
        if counts.sum() > 0 { Words::broken() } else { state }
    }

    /// To reset it breaks it for those who wait, and makes it new, in one section: who comes between two would be forgotten.
    fn change(&self, state: State, change: Change, _: AgentId) -> Option<State> {
        let words = Words::from(state);
        match change {
            Change::Break(parties) if words.arrived() > 0 && words.parties != parties => None,
            Change::Break(_) => Some(Words::broken()),
            Change::Reset => Some(Words { first: BROKEN | RESET, parties: 0 }.state()),
            _ => None,
        }
    }

    fn found(&self, state: State) -> [u32; 2] {
        let words = Words::from(state);
        [words.arrived(), words.parties]
    }

    fn is_waiting(&self, state: State) -> bool {
        Words::from(state).first & WAITING != 0
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::ptr::NonNull;

    use super::*;
    use crate::sync::AtomicU32;

    const ME: AgentId = 70_000;

    #[test]
    fn the_last_party_lets_all_pass() {
        let party = Hold::party(3);
        let enter = |state, is_queued| BARRIER.enter(state, Request::Hold(party), ME, is_queued);
        assert_eq!(enter(State(0), false), Decision::Wait);
        let one = BARRIER.queued(State(0), Some(party));
        assert_eq!((BARRIER.found(one), enter(one, true)), ([1, 3], Decision::Wait));
        let two = BARRIER.queued(one, Some(party));
        let Decision::Granted(all) = enter(two, true) else { panic!("the last") };
        assert_eq!((BARRIER.grant(two, party, ME), BARRIER.grant(all, party, ME)), (None, Some(all)));
    }

    #[test]
    fn another_number_of_parties_and_a_broken_barrier_are_refused() {
        let one = BARRIER.queued(State(0), Some(Hold::party(3)));
        assert_eq!(BARRIER.enter(one, Request::Hold(Hold::party(2)), ME, true), Decision::Refused);
        assert_eq!(BARRIER.change(one, Change::Break(2), ME), None);
        let broken = BARRIER.left(one);
        assert!(BARRIER.refuses(broken));
        assert_eq!(BARRIER.enter(broken, Request::Hold(Hold::party(3)), ME, false), Decision::Refused);
    }

    #[test]
    fn a_member_that_ends_breaks_it() {
        assert!(BARRIER.refuses(BARRIER.given_back(State(0), Counts { raw: 0, guarded: 1 })));
        assert!(BARRIER.refuses(BARRIER.given_back(State(0), Counts { raw: 1, guarded: 0 })));
        assert!(!BARRIER.refuses(BARRIER.given_back(State(0), Counts::default())));
    }

    #[test]
    fn a_round_that_is_over_leaves_no_trace_beside_the_next() {
        let memory = [AtomicU32::new(0), AtomicU32::new(0)];
        // SAFETY: two aligned atomics that outlive the test.
        let place = unsafe { Place::new(NonNull::from(&memory).cast(), 0) };
        let state = Words { first: 1 | COMPLETE | RESET, parties: 3 }.state();
        BARRIER.thaw(place, State(0), state, true);
        assert_eq!(memory.map(AtomicU32::into_inner), [WAITING | 1, 3]);
    }

    #[test]
    fn who_goes_changes_nothing() {
        let state = Words { first: WAITING | 1, parties: 3 }.state();
        for hold in [Hold::party(3), Hold::MEMBER] {
            assert_eq!(BARRIER.release(state, hold, ME), Some(state));
        }
    }
}
