//! The readers-writer lock: one word of 32 bits, and a second one that is 1 while anybody waits, else 0. The first does not say that
//! while it is free and those who wait are on their way: `tryLock()` of a reader looks at the second.
//!
//! | low 26 bits | S | G | A | F | W | for the holders | for the others |
//! |-------------|---|---|---|---|---|-----------------|----------------|
//! | 0           | 0 | 0 | * | * | * | - | free: as for the mutex |
//! | id          | 0 | * | * | 0 | * | one writer, as for the mutex | held |
//! | count       | 1 | 0 | * | 0 | 0 | so many readers; one compare-exchange takes or gives back a hold if A is 0 | readers enter |
//! | count       | 1 | 0 | * | 0 | 1 | giving back must look at the queue | somebody waits: readers queue behind |
//! | count or 0  | 1 | 0 | * | 1 | 1 | as above, if there are any | kept for an event loop that will read: no writer enters |
//!
//! The register of holds says which agents read. Barging, as the mutex; adjacent readers go in together.

use super::mutex::{ABANDONED, GUARDED, OWNER, RESERVED, WAITING};
use super::word;
use crate::agents::{AgentId, Standing};
use crate::engine::{
    About, Blockers, Change, Corrupt, Counts, Decision, Facts, Glance, Hold, HoldOwner, Mode, Order, Primitive,
    Request, Space, State,
};
use crate::memory::Place;
use crate::sync::Ordering;

/// S: shared; the low bits are the number of readers.
pub const SHARED: u32 = 1 << 30;
/// The bits of the number of readers.
pub const READERS: u32 = OWNER;
/// No lock has more readers.
pub const MAX_READERS: u32 = READERS;

const ALL: u32 = OWNER | GUARDED | ABANDONED | RESERVED | WAITING | SHARED;

/// A value of the word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Word(pub u32);

impl Word {
    /// The writer's id, 0 if there is none.
    pub const fn writer(self) -> AgentId {
        if self.0 & SHARED == 0 { self.0 & OWNER } else { 0 }
    }

    /// The number of readers that are in.
    pub const fn readers(self) -> u32 {
        if self.0 & SHARED == 0 { 0 } else { self.0 & READERS }
    }

    /// Whether a writer's thread ended inside.
    pub const fn is_abandoned(self) -> bool {
        self.0 & ABANDONED != 0
    }

    const fn is_free(self) -> bool {
        self.0 & (OWNER | SHARED | RESERVED) == 0
    }

    /// With this number of readers; the mark of abandonment stays, and what is kept for a reader.
    const fn with_readers(self, readers: u32) -> Self {
        let kept = self.0 & (ABANDONED | RESERVED);
        let shared = if readers == 0 && kept & RESERVED == 0 { 0 } else { SHARED | readers };
        Self(kept | shared)
    }

    /// Whether a reader may enter: nobody writes, and it is not kept for a writer.
    fn is_open_to_readers(self) -> bool {
        self.writer() == 0
            && (self.0 & RESERVED == 0 || self.0 & SHARED != 0)
            && self.readers() < MAX_READERS + u32::from(fault!(OneReaderTooMany))
    }

    /// Taken by a writer.
    const fn taken(self, agent: AgentId, owner: HoldOwner) -> Self {
        Self(self.0 & ABANDONED | writer_bits(agent, owner))
    }

    /// Whether `agent` writes, and holds it so.
    const fn is_written_by(self, agent: AgentId, owner: HoldOwner) -> bool {
        self.0 & (OWNER | GUARDED | SHARED) == writer_bits(agent, owner)
    }

    fn is_plausible(self, facts: &Facts<'_>) -> bool {
        let is_shared = self.0 & SHARED != 0;
        let low = self.0 & OWNER;
        self.0 & !ALL == 0
            && (self.0 & GUARDED == 0 || low != 0 && !is_shared)
            && (!is_shared || low != 0 || self.0 & RESERVED != 0)
            && (self.0 & RESERVED != 0) == facts.is_reserved
            && (self.0 & RESERVED == 0 || low == 0 || is_shared)
            && (self.0 & WAITING == 0 || facts.is_queued && self.must_look())
            && (is_shared || low == 0 || facts.agents.standing(low) != Standing::NeverIssued)
    }

    /// Whether no fast path may pass by those who are queued.
    const fn must_look(self) -> bool {
        self.0 & (OWNER | SHARED | ABANDONED | RESERVED) != 0
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

const fn writer_bits(agent: AgentId, owner: HoldOwner) -> u32 {
    match owner {
        HoldOwner::Thread => agent,
        HoldOwner::Guard => agent | GUARDED,
    }
}

/// The readers-writer lock.
pub struct RwLock;

/// There is only one: it has no state.
pub static RWLOCK: RwLock = RwLock;

static ABOUT: About = About { name: "RwLock", order: Order::Barging, space: Space::Words, registered: Some("shared") };

impl Primitive for RwLock {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn freeze(&self, place: Place, facts: &Facts<'_>) -> Result<State, Corrupt> {
        word::freeze(place, WAITING, |word| Word(word).is_plausible(facts))
    }

    fn thaw(&self, place: Place, _: State, state: State, is_queued: bool) {
        // Relaxed: a hint; the release below is what others see it by.
        let hint = u32::from(is_queued && !fault!(TriersPassWhoIsOnTheWay));
        place.second_word().store(hint, Ordering::Relaxed);
        word::thaw(place, WAITING, state, is_queued && Word::from(state).must_look());
    }

    /// A reader that comes while somebody waits queues behind; a writer may take what is free.
    fn enter(&self, state: State, request: Request, agent: AgentId, is_queued: bool) -> Decision {
        match request {
            Request::Hold(hold) if hold.is_exclusive() || !is_queued => {
                self.grant(state, hold, agent).map_or(Decision::Wait, Decision::Granted)
            }
            Request::Hold(_) => Decision::Wait,
            Request::Notification | Request::NotificationWhile(_) => Decision::Refused,
        }
    }

    fn grant(&self, state: State, hold: Hold, agent: AgentId) -> Option<State> {
        let word = Word::from(state);
        let next = match hold.mode()? {
            Mode::Shared if word.is_open_to_readers() => word.with_readers(word.readers() + 1),
            Mode::Exclusive if word.is_free() => word.taken(agent, hold.owner()),
            _ => return None,
        };
        Some(next.state())
    }

    /// Whether it is a reader's hold, its slot says; here only whether there are readers.
    fn release(&self, state: State, hold: Hold, agent: AgentId) -> Option<State> {
        let word = Word::from(state);
        let next = match hold.mode()? {
            Mode::Shared if word.readers() > 0 => word.with_readers(word.readers() - 1),
            Mode::Exclusive if word.is_written_by(agent, hold.owner()) => Word(word.0 & ABANDONED),
            _ => return None,
        };
        Some(next.state())
    }

    fn owner(&self, state: State) -> AgentId {
        Word::from(state).writer()
    }

    fn given_back(&self, state: State, counts: Counts) -> State {
        let word = Word::from(state);
        if word.readers() == 0 {
            // Its slot is empty: it has read before, and now somebody else writes, or nobody is in.
            return state;
        }
        word.with_readers(word.readers().saturating_sub(counts.sum())).state()
    }

    fn ended(&self, _: State) -> State {
        word::state(ABANDONED)
    }

    fn remember_ended(&self, state: State, agent: AgentId) -> State {
        let word = Word::from(state);
        // While readers are in, the mark alone tells.
        if word.readers() > 0 { state } else { word.taken(agent, HoldOwner::Thread).state() }
    }

    /// Readers at the head of the queue follow one who downgrades. To upgrade, nobody else may read, nor wait; that the agent
    /// reads, its slot says.
    fn change(&self, state: State, change: Change, agent: AgentId) -> Option<State> {
        let word = Word::from(state);
        let next = match change {
            Change::Downgrade(owner) if word.is_written_by(agent, owner) => word.with_readers(1),
            Change::Upgrade(owner) if word.readers() == 1 && word.0 & WAITING == 0 => word.taken(agent, owner),
            Change::MarkConsistent if word.writer() == agent => Word(word.0 & !ABANDONED),
            _ => return None,
        };
        Some(next.state())
    }

    fn is_waiting(&self, state: State) -> bool {
        word::of(state) & WAITING != 0
    }

    /// A place that is kept for a reader is open to others that read.
    fn reserve(&self, state: State, hold: Hold) -> Option<State> {
        let word = Word::from(state);
        let reserved = match hold.mode()? {
            Mode::Shared if word.is_open_to_readers() && !fault!(NothingIsKeptForReaders) => SHARED | RESERVED,
            Mode::Exclusive if word.is_free() => RESERVED,
            _ => return None,
        };
        Some(Word(word.0 | reserved).state())
    }

    fn unreserve(&self, state: State, _: Hold) -> State {
        let word = Word(word::of(state) & !RESERVED);
        // S stays while readers are in.
        if word.0 & SHARED == 0 { word } else { word.with_readers(word.readers()) }.state()
    }

    fn glance(&self, place: Place, _: Hold) -> Option<Glance> {
        // Relaxed: a hint that guards no data.
        let word = Word(place.word().load(Ordering::Relaxed));
        Some(Glance {
            is_free: word.0 == 0,
            is_shared: word.readers() > 0,
            held: word.writer(),
            is_waiting: word.0 & WAITING != 0,
            is_reserved: word.0 & RESERVED != 0,
        })
    }

    /// Free only; a spin for a shared hold is over as soon as readers are in: then the section lets it in.
    fn try_enter(&self, place: Place, request: Request, agent: AgentId) -> bool {
        let mine = match request.hold() {
            Some(Hold::Lock { mode: Mode::Exclusive, owner }) => writer_bits(agent, owner),
            Some(Hold::Lock { mode: Mode::Shared, .. }) => SHARED | 1,
            _ => return false,
        };
        // Acquire: pairs with the release of the unlock that wrote 0.
        place.word().compare_exchange(0, mine, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    fn blockers(&self, state: State) -> Blockers {
        match Word::from(state).writer() {
            0 => Blockers::Holders,
            writer => Blockers::Owner(writer),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::agents::Agents;

    const ME: AgentId = 70_000;
    const OTHER: AgentId = 70_001;
    const READ: Hold = Hold::shared(HoldOwner::Thread);
    const WRITE: Hold = Hold::exclusive(HoldOwner::Guard);

    fn grant(word: u32, hold: Hold) -> Option<u32> {
        RWLOCK.grant(word::state(word), hold, ME).map(word::of)
    }

    fn release(word: u32, hold: Hold) -> Option<u32> {
        RWLOCK.release(word::state(word), hold, ME).map(word::of)
    }

    #[test]
    fn transitions_follow_the_table() {
        for (name, got, expected) in [
            ("free, read", grant(0, READ), Some(SHARED | 1)),
            ("free, written", grant(0, WRITE), Some(ME | GUARDED)),
            ("read, read", grant(SHARED | 1, READ), Some(SHARED | 2)),
            ("read, not written", grant(SHARED | 1, WRITE), None),
            ("written, not read", grant(OTHER, READ), None),
            ("reserved for a writer, not read", grant(RESERVED, READ), None),
            (
                "reserved for a reader, read: still reserved",
                grant(SHARED | RESERVED, READ),
                Some(SHARED | RESERVED | 1),
            ),
            ("reserved for a reader, not written", grant(SHARED | RESERVED, WRITE), None),
            ("one short of full", grant(SHARED | (MAX_READERS - 1), READ), Some(SHARED | MAX_READERS)),
            ("reserved for a reader, the last leaves", release(SHARED | RESERVED | 1, READ), Some(SHARED | RESERVED)),
            ("marked, read: still marked", grant(ABANDONED, READ), Some(ABANDONED | SHARED | 1)),
            ("full", grant(SHARED | MAX_READERS, READ), None),
            ("one of two leaves", release(SHARED | 2 | WAITING, READ), Some(SHARED | 1)),
            ("the last leaves: the mark stays", release(SHARED | 1 | ABANDONED, READ), Some(ABANDONED)),
            ("the writer leaves", release(ME | GUARDED | WAITING, WRITE), Some(0)),
            ("not this writer's", release(OTHER | GUARDED, WRITE), None),
            ("not held so", release(ME, WRITE), None),
            ("nobody reads", release(ME, READ), None),
        ] {
            assert_eq!(got, expected, "{name}");
        }
    }

    #[test]
    fn it_is_kept_for_a_reader_beside_readers_and_for_a_writer_where_nobody_is() {
        let reserve = |word, hold| RWLOCK.reserve(word::state(word), hold).map(word::of);
        for (word, for_reader, for_writer) in [
            (0, Some(SHARED | RESERVED), Some(RESERVED)),
            (ABANDONED, Some(ABANDONED | SHARED | RESERVED), Some(ABANDONED | RESERVED)),
            (SHARED | 2, Some(SHARED | RESERVED | 2), None),
            (OTHER, None, None),
        ] {
            assert_eq!((reserve(word, READ), reserve(word, WRITE)), (for_reader, for_writer), "{word:#x}");
            for reserved in for_reader.into_iter().chain(for_writer) {
                assert_eq!(RWLOCK.unreserve(word::state(reserved), READ), word::state(word), "{reserved:#x}");
            }
        }
    }

    #[test]
    fn readers_of_threads_that_ended_go_back() {
        let counts = Counts { raw: 2, guarded: 1 };
        assert_eq!(RWLOCK.given_back(word::state(SHARED | 4), counts), word::state(SHARED | 1));
        assert_eq!(RWLOCK.given_back(word::state(SHARED | 3), counts), word::state(0));
        for word in [0, OTHER, OTHER | GUARDED, ABANDONED, RESERVED, SHARED | 2] {
            assert_eq!(RWLOCK.given_back(word::state(word), Counts::default()), word::state(word), "{word:#x}");
        }
    }

    #[test]
    fn a_reader_queues_behind_those_who_wait_and_a_writer_may_barge() {
        for (hold, is_queued, granted) in [(READ, false, true), (READ, true, false), (WRITE, true, true)] {
            let entry = RWLOCK.enter(word::state(0), Request::Hold(hold), ME, is_queued);
            assert_eq!(matches!(entry, Decision::Granted(_)), granted, "{hold:?} {is_queued}");
        }
    }

    #[test]
    fn values_that_this_package_did_not_write_are_told_apart() {
        let agents = Agents::new(ME);
        agents.add(0).unwrap();
        for (word, is_queued, is_plausible) in [
            (0, false, true),
            (ME, false, true),
            (SHARED | 3, false, true),
            (SHARED | 3 | WAITING | ABANDONED, true, true),
            (SHARED, false, false),
            (SHARED | GUARDED | 1, false, false),
            (OTHER, false, false),
            (SHARED | 3 | WAITING, false, false),
            (RESERVED, true, false),
            (1 << 31, false, false),
        ] {
            let facts = Facts { is_queued, is_reserved: false, agents: &agents };
            assert_eq!(Word(word).is_plausible(&facts), is_plausible, "{word:#x}");
        }
    }
}
