//! The mutex: one word of 32 bits, and what each legal value means.
//!
//! The fast paths in JS, single compare-exchanges on the word, get its bits from the binding.
//!
//! | owner | G | A | F | W | for the holder | for the others |
//! |-------|---|---|---|---|----------------|----------------|
//! | 0     | 0 | 0 | 0 | 0 | -              | free: one compare-exchange takes it |
//! | 0     | 0 | 1 | 0 | * | -              | free, but a holder's thread ended inside: taken by the slow path |
//! | 0     | 0 | * | 1 | 1 | -              | free, reserved for one event loop until its lease is over |
//! | id    | * | * | 0 | 0 | one compare-exchange frees it if G and A are 0 | held; nobody waits, or somebody was woken and will come |
//! | id    | * | * | 0 | 1 | freeing it must look at the queue | held; somebody waits whom nobody has woken |
//!
//! `W` with owner 0 and neither `A` nor `F` is written only inside a section (see [`crate::engine`]), never left behind.
//! All values are below 2^30, so that V8 keeps them as small integers.

use super::word;
use crate::agents::{AgentId, LARGEST_ID, Standing};
use crate::engine::{
    About, Blockers, Change, Corrupt, Facts, Glance, Hold, HoldOwner, Order, Primitive, Request, Space, State,
};
use crate::memory::Place;
use crate::sync::Ordering;

/// The bits that name the holder: an agent's id, 0 for nobody.
pub const OWNER: u32 = LARGEST_ID;
/// G: a guard owns the hold, so only that guard frees it.
pub const GUARDED: u32 = 1 << 26;
/// A: a holder's thread ended inside; sticky until `markConsistent()`.
pub const ABANDONED: u32 = 1 << 27;
/// F: the free word is reserved for one event loop.
pub const RESERVED: u32 = 1 << 28;
/// W: whoever frees the word must look at the queue.
pub const WAITING: u32 = 1 << 29;

const ALL: u32 = OWNER | GUARDED | ABANDONED | RESERVED | WAITING;

/// A value of the lock word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Word(pub u32);

impl Word {
    /// The holder's id, 0 if nobody holds it.
    pub const fn owner(self) -> u32 {
        self.0 & OWNER
    }

    /// Whether a holder's thread ended inside.
    pub const fn is_abandoned(self) -> bool {
        self.0 & ABANDONED != 0
    }

    /// Whether the word is kept for one event loop.
    pub const fn is_reserved(self) -> bool {
        self.0 & RESERVED != 0
    }

    /// Whether freeing the word must look at the queue.
    pub const fn is_waiting(self) -> bool {
        self.0 & WAITING != 0
    }

    /// Whether anybody who comes may take it.
    pub const fn is_takeable(self) -> bool {
        self.owner() == 0 && !self.is_reserved()
    }

    /// Whether `agent` holds it so.
    pub const fn is_held_by(self, agent: AgentId, owner: HoldOwner) -> bool {
        self.0 & (OWNER | GUARDED) == hold_bits(agent, owner)
    }

    /// Taken by `agent`; the mark of abandonment stays, a reservation ends.
    #[must_use]
    pub const fn taken(self, agent: AgentId, owner: HoldOwner) -> Self {
        Self(self.0 & ABANDONED | hold_bits(agent, owner))
    }

    /// Freed; the mark of abandonment stays.
    #[must_use]
    pub const fn freed(self) -> Self {
        Self(self.0 & ABANDONED)
    }

    /// Freed, for a holder whose thread ended inside.
    #[must_use]
    pub const fn freed_for_ended(self) -> Self {
        Self(ABANDONED)
    }

    /// With or without the reservation.
    #[must_use]
    pub const fn reserved(self, on: bool) -> Self {
        Self(if on { self.0 | RESERVED } else { self.0 & !RESERVED })
    }

    /// Without the mark of abandonment.
    #[must_use]
    pub const fn consistent(self) -> Self {
        Self(self.0 & !ABANDONED)
    }

    /// Whether no fast path may pass by those who are queued: it is held, or taking it needs the slow path.
    const fn must_look(self) -> bool {
        self.0 & (OWNER | ABANDONED | RESERVED) != 0
    }

    /// Whether this package could have written this value, by what its queue says.
    fn is_plausible(self, facts: &Facts<'_>) -> bool {
        let owner = self.owner();
        self.0 & !ALL == 0
            && (owner != 0 || self.0 & GUARDED == 0)
            && (!self.is_reserved() || owner == 0)
            && self.is_reserved() == facts.is_reserved
            && (!self.is_waiting() || facts.is_queued && self.0 & (OWNER | ABANDONED | RESERVED) != 0)
            && (owner == 0 || facts.agents.standing(owner) != Standing::NeverIssued)
    }

    fn state(self) -> State {
        word::state(self.0)
    }
}

impl From<State> for Word {
    fn from(state: State) -> Self {
        Self(word::of(state))
    }
}

const fn hold_bits(agent: AgentId, owner: HoldOwner) -> u32 {
    match owner {
        HoldOwner::Thread => agent,
        HoldOwner::Guard => agent | GUARDED,
    }
}

/// The mutex.
pub struct Mutex;

/// There is only one: it has no state.
pub static MUTEX: Mutex = Mutex;

static ABOUT: About = About { name: "Mutex", order: Order::Barging, space: Space::Words, registered: None };

impl Primitive for Mutex {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn freeze(&self, place: Place, facts: &Facts<'_>) -> Result<State, Corrupt> {
        word::freeze(place, WAITING, |word| Word(word).is_plausible(facts))
    }

    fn thaw(&self, place: Place, _: State, state: State, is_queued: bool) {
        let word = Word::from(state);
        let is_hidden = fault!(HeldWordWithoutW) && word.owner() != 0;
        word::thaw(place, WAITING, state, is_queued && word.must_look() && !is_hidden);
    }

    fn grant(&self, state: State, hold: Hold, agent: AgentId) -> Option<State> {
        let word = Word::from(state);
        word.is_takeable().then(|| word.taken(agent, hold.owner()).state())
    }

    fn release(&self, state: State, hold: Hold, agent: AgentId) -> Option<State> {
        let word = Word::from(state);
        word.is_held_by(agent, hold.owner()).then(|| word.freed().state())
    }

    fn owner(&self, state: State) -> AgentId {
        Word::from(state).owner()
    }

    fn ended(&self, state: State) -> State {
        let word = Word::from(state);
        if fault!(EndedOwnerIsFreedUnmarked) { word.freed() } else { word.freed_for_ended() }.state()
    }

    fn remember_ended(&self, state: State, agent: AgentId) -> State {
        Word::from(state).taken(agent, HoldOwner::Thread).state()
    }

    fn change(&self, state: State, change: Change, agent: AgentId) -> Option<State> {
        let word = Word::from(state);
        (change == Change::MarkConsistent && word.owner() == agent).then(|| word.consistent().state())
    }

    fn is_waiting(&self, state: State) -> bool {
        Word::from(state).is_waiting()
    }

    fn reserve(&self, state: State, _: Hold) -> Option<State> {
        Some(Word::from(state).reserved(true).state())
    }

    fn unreserve(&self, state: State, _: Hold) -> State {
        Word::from(state).reserved(false).state()
    }

    fn glance(&self, place: Place, _: Hold) -> Option<Glance> {
        // Relaxed: a hint that guards no data.
        let word = Word(place.word().load(Ordering::Relaxed));
        Some(Glance {
            is_free: word.0 == 0,
            is_shared: false,
            held: word.owner(),
            is_waiting: word.is_waiting(),
            is_reserved: word.is_reserved(),
        })
    }

    fn try_enter(&self, place: Place, request: Request, agent: AgentId) -> bool {
        let Some(hold) = request.hold() else { return false };
        let mine = Word(0).taken(agent, hold.owner()).0;
        // Acquire: pairs with the release of the unlock that wrote 0.
        let order = if fault!(EntersWithoutAcquire) { Ordering::Relaxed } else { Ordering::Acquire };
        place.word().compare_exchange(0, mine, order, Ordering::Relaxed).is_ok()
    }

    fn blockers(&self, state: State) -> Blockers {
        Blockers::Owner(Word::from(state).owner())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::agents::Agents;

    const ME: u32 = 70_000;
    const OTHER: u32 = 70_001;

    #[test]
    fn transitions_follow_the_table() {
        for (name, result, expected) in [
            ("free, taken", Word(0).taken(ME, HoldOwner::Thread), ME),
            ("free, taken by a guard", Word(0).taken(ME, HoldOwner::Guard), ME | GUARDED),
            ("abandoned, taken: still marked", Word(ABANDONED).taken(ME, HoldOwner::Thread), ME | ABANDONED),
            ("reserved, taken: the reservation ends", Word(RESERVED | WAITING).taken(ME, HoldOwner::Thread), ME),
            ("held, freed", Word(ME | WAITING).freed(), 0),
            ("held by a guard, freed", Word(ME | GUARDED).freed(), 0),
            ("held and marked, freed: still marked", Word(ME | ABANDONED | WAITING).freed(), ABANDONED),
            ("the holder's thread ended, freed: marked", Word(OTHER | GUARDED | WAITING).freed_for_ended(), ABANDONED),
            ("free, reserved", Word(0).reserved(true), RESERVED),
            ("reservation over", Word(RESERVED | ABANDONED).reserved(false), ABANDONED),
            ("held and marked, made consistent", Word(ME | ABANDONED | WAITING).consistent(), ME | WAITING),
        ] {
            assert_eq!(result, Word(expected), "{name}");
        }
    }

    #[test]
    fn nobody_who_is_queued_is_passed_by_unless_somebody_will_come() {
        for (name, word, must_look) in [
            ("held", ME, true),
            ("free: open to all", 0, false),
            ("free and marked", ABANDONED, true),
            ("reserved", RESERVED, true),
        ] {
            assert_eq!(Word(word).must_look(), must_look, "{name}");
        }
    }

    #[test]
    fn a_hold_is_its_own_kind_only() {
        assert!(Word(ME | WAITING | ABANDONED).is_held_by(ME, HoldOwner::Thread));
        assert!(!Word(ME | GUARDED).is_held_by(ME, HoldOwner::Thread));
        assert!(Word(ME | GUARDED).is_held_by(ME, HoldOwner::Guard));
        assert!(!Word(OTHER).is_held_by(ME, HoldOwner::Thread));
    }

    #[test]
    fn values_that_this_package_did_not_write_are_found() {
        let agents = Agents::new(ME);
        agents.add(0).unwrap();
        for (value, queued, reservation, plausible) in [
            (0, false, false, true),
            (ME, false, false, true),
            (ME | GUARDED | ABANDONED | WAITING, true, false, true),
            (ABANDONED, false, false, true),
            (RESERVED | WAITING, true, true, true),
            (1, false, false, false),
            (2, false, false, false),
            (OTHER, false, false, false),
            (u32::MAX, true, true, false),
            (1 << 30, false, false, false),
            (1 << 31, false, false, false),
            (GUARDED, false, false, false),
            (WAITING, true, false, false),
            (ME | WAITING, false, false, false),
            (RESERVED, true, false, false),
            (ME | RESERVED, true, true, false),
            (0, true, true, false),
        ] {
            let facts = Facts { is_queued: queued, is_reserved: reservation, agents: &agents };
            assert_eq!(Word(value).is_plausible(&facts), plausible, "{value:#x}");
        }
    }
}
