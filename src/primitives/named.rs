//! The lock that a name stands for: two words of the engine's own memory.
//!
//! | L | count | meaning |
//! |---|-------|---------|
//! | 0 | 0 | nobody holds it |
//! | 1 | 0 | one holds it alone |
//! | 0 | n | n hold it together |
//!
//! A: somebody who held it alone ended inside, or a hold was stolen; it stays until a holder says that all is well.
//! The second word is the agent whose thread ended inside, until somebody who gets in reports it; 0 if nobody has to.
//!
//! Its holders stand in its bucket (see `engine/listed.rs`). Strict order: nobody overtakes, and those next to each
//! other who share it go in together.

use super::mutex::ABANDONED;
use crate::agents::AgentId;
use crate::engine::{
    About, Blockers, Change, Corrupt, Decision, Facts, Hold, Mode, Order, Primitive, Request, Space, State,
};
use crate::memory::Place;
use crate::sync::Ordering;

/// L: held alone.
const ALONE: u32 = 1 << 30;
/// The bits of the number of those who share it.
const SHARERS: u32 = (1 << 26) - 1;

/// A value of both words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Words {
    lock: u32,
    ended: AgentId,
}

impl Words {
    const fn sharers(self) -> u32 {
        self.lock & SHARERS
    }

    const fn is_held_alone(self) -> bool {
        self.lock & ALONE != 0
    }

    const fn is_free(self) -> bool {
        self.lock & (ALONE | SHARERS) == 0
    }

    /// Held so; the mark and the ended agent stay.
    const fn held(self, held: u32) -> Self {
        Self { lock: self.lock & ABANDONED | held, ..self }
    }

    const fn state(self) -> State {
        State((self.ended as u64) << 32 | self.lock as u64)
    }
}

impl From<State> for Words {
    fn from(State(state): State) -> Self {
        Self { lock: state as u32, ended: (state >> 32) as u32 }
    }
}

/// The lock of a name.
pub struct Named;

/// There is only one: it has no state.
pub static NAMED: Named = Named;

static ABOUT: About = About { name: "HeldLock", order: Order::Strict, space: Space::Listed, registered: None };

impl Primitive for Named {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    /// There are no fast paths to be stopped: all changes are sections.
    fn freeze(&self, place: Place, _: &Facts<'_>) -> Result<State, Corrupt> {
        Ok(self.read(place))
    }

    fn thaw(&self, place: Place, _: State, state: State, _: bool) {
        let Words { lock, ended } = state.into();
        // Relaxed: the bucket's lock orders all who read them to decide.
        place.word().store(lock, Ordering::Relaxed);
        place.second_word().store(ended, Ordering::Relaxed);
    }

    fn read(&self, place: Place) -> State {
        // Relaxed: as in `thaw`; a holder who looks for the mark has been let in by a section.
        let (lock, ended) = (place.word().load(Ordering::Relaxed), place.second_word().load(Ordering::Relaxed));
        Words { lock, ended }.state()
    }

    fn enter(&self, state: State, request: Request, agent: AgentId, is_queued: bool) -> Decision {
        match request {
            Request::Hold(_) if is_queued => Decision::Wait,
            Request::Hold(hold) => self.grant(state, hold, agent).map_or(Decision::Wait, Decision::Granted),
            Request::Notification | Request::NotificationWhile(_) => Decision::Refused,
        }
    }

    fn grant(&self, state: State, hold: Hold, _: AgentId) -> Option<State> {
        let words = Words::from(state);
        let held = match hold.mode()? {
            Mode::Exclusive if words.is_free() => ALONE,
            Mode::Shared if !words.is_held_alone() && words.sharers() < SHARERS => words.sharers() + 1,
            _ => return None,
        };
        Some(words.held(held).state())
    }

    /// Whether this very request holds it, the table of names says.
    fn release(&self, state: State, hold: Hold, _: AgentId) -> Option<State> {
        let words = Words::from(state);
        let held = match hold.mode()? {
            Mode::Exclusive if words.is_held_alone() => 0,
            Mode::Shared if words.sharers() > 0 => words.sharers() - 1,
            _ => return None,
        };
        Some(words.held(held).state())
    }

    /// While somebody holds it, nobody is to be reported.
    fn remembered(&self, state: State) -> AgentId {
        let words = Words::from(state);
        if words.is_free() { words.ended } else { 0 }
    }

    /// The hold is gone, and the mark remains.
    fn ended(&self, state: State) -> State {
        let words = Words::from(state);
        let ended = if words.is_free() { 0 } else { words.ended };
        Words { lock: ABANDONED, ended }.state()
    }

    fn remember_ended(&self, state: State, agent: AgentId) -> State {
        Words { ended: agent, ..state.into() }.state()
    }

    /// Whether this very request holds it alone, the table of names says.
    fn change(&self, state: State, change: Change, _: AgentId) -> Option<State> {
        let words = Words::from(state);
        (change == Change::MarkConsistent).then(|| Words { lock: words.lock & !ABANDONED, ..words }.state())
    }

    fn is_waiting(&self, _: State) -> bool {
        true
    }

    fn blockers(&self, _: State) -> Blockers {
        Blockers::Holders
    }
}

/// Whether a lock of a name is marked: a holder ended inside, or a hold was stolen, and nobody has said since that all is well.
pub fn is_abandoned(state: State) -> bool {
    Words::from(state).lock & ABANDONED != 0
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::agents::RequestId;
    use crate::engine::ListedHold;

    const ME: AgentId = 70_000;
    const OTHER: AgentId = 70_001;
    const FREE: State = State(0);
    const ALONE_HOLD: Hold = listed(Mode::Exclusive, 1);
    const SHARED_HOLD: Hold = listed(Mode::Shared, 2);

    const fn listed(mode: Mode, generation: u32) -> Hold {
        Hold::Listed(ListedHold { request: RequestId { number: 0, generation }, mode, is_part: false })
    }

    fn state(lock: u32) -> State {
        Words { lock, ended: 0 }.state()
    }

    fn enter(from: State, hold: Hold, is_queued: bool) -> Decision {
        NAMED.enter(from, Request::Hold(hold), ME, is_queued)
    }

    #[test]
    fn transitions_follow_the_table() {
        assert_eq!(enter(FREE, ALONE_HOLD, false), Decision::Granted(state(ALONE)));
        assert_eq!(enter(FREE, SHARED_HOLD, false), Decision::Granted(state(1)));
        assert_eq!(enter(state(1), SHARED_HOLD, false), Decision::Granted(state(2)));
        for (held, hold) in [(ALONE, ALONE_HOLD), (ALONE, SHARED_HOLD), (1, ALONE_HOLD), (SHARERS, SHARED_HOLD)] {
            assert_eq!(enter(state(held), hold, false), Decision::Wait, "{held:x} {hold:?}");
        }
        assert_eq!(NAMED.release(state(ALONE), ALONE_HOLD, ME), Some(FREE));
        assert_eq!(NAMED.release(state(2), SHARED_HOLD, ME), Some(state(1)));
        assert_eq!(NAMED.release(state(1), SHARED_HOLD, ME), Some(FREE));
        for (held, hold) in [(0, ALONE_HOLD), (0, SHARED_HOLD), (1, ALONE_HOLD), (ALONE, SHARED_HOLD)] {
            assert_eq!(NAMED.release(state(held), hold, ME), None, "{held:x} {hold:?}");
        }
    }

    #[test]
    fn nobody_overtakes_those_who_are_queued() {
        assert_eq!(enter(state(1), SHARED_HOLD, true), Decision::Wait);
        assert_eq!(enter(FREE, ALONE_HOLD, true), Decision::Wait);
    }

    #[test]
    fn the_mark_stays_until_it_is_taken_off() {
        let marked = NAMED.ended(state(ALONE));
        assert!(is_abandoned(marked) && Words::from(marked).is_free());
        let held = NAMED.grant(marked, ALONE_HOLD, ME).unwrap();
        assert_eq!(NAMED.release(held, ALONE_HOLD, ME), Some(marked));
        assert_eq!(NAMED.release(NAMED.change(held, Change::MarkConsistent, ME).unwrap(), ALONE_HOLD, ME), Some(FREE));
    }

    #[test]
    fn an_end_is_remembered_until_somebody_gets_in_who_can_report_it() {
        let remembered = NAMED.remember_ended(NAMED.ended(state(ALONE)), OTHER);
        assert_eq!(NAMED.remembered(remembered), OTHER);
        assert_eq!(NAMED.ended(remembered), state(ABANDONED), "reported now");
        let shared = NAMED.remember_ended(state(ABANDONED | 2), OTHER);
        assert_eq!(NAMED.remembered(shared), 0, "those who are in came before");
        assert_eq!(NAMED.remembered(NAMED.ended(shared)), OTHER, "stolen from them, it is still to be reported");
    }
}
