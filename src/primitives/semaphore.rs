//! The semaphore: one word, in which zero means that all permits are there.
//!
//! | bits | meaning |
//! |------|---------|
//! | 0..=29 | the permits that are taken, less those that were added, in two's complement |
//! | 30 | 0 |
//! | 31 | W: every change goes through the queue, in which somebody waits |
//!
//! Each thread names the number of permits that there are in all. The register of holds says who has them. A permit that is kept
//! for an event loop counts as taken.
//!
//! Barging: whoever comes may take what is free, unless it is being gathered for one that has aged. W is off while all who are
//! first in line know that they may come. The fair one is strict: nobody overtakes, and W is on while anybody waits.

use super::word;
use crate::agents::AgentId;
use crate::engine::{
    About, Change, Corrupt, Counts, Decision, Facts, Glance, Hold, Order, Primitive, Request, Space, State,
};
use crate::memory::Place;
use crate::sync::Ordering;

/// W: somebody waits.
pub const WAITING: u32 = 1 << 31;
/// The bits of the number of permits taken.
pub const TAKEN: u32 = (1 << 30) - 1;
/// No semaphore has more permits: the constructor's and those that were added.
pub const MAX_PERMITS: u32 = (1 << 29) - 1;

/// The number of permits beyond all that can be added without a section. (The waiters of other kinds of lock have their bit where a
/// semaphore has the sign, so that it looks as if very many had been added: a section can tell.)
const MOST_ADDED: i32 = 1 << 27;

/// A value of the word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Word(u32);

impl Word {
    /// The permits taken, less those added.
    const fn taken(self) -> i32 {
        // Sign-extends the thirty bits.
        ((self.0 << 2) as i32) >> 2
    }

    /// The word with this number taken; `None` beyond what it can say.
    fn with(self, taken: i64) -> Option<Self> {
        let most = i64::from(MAX_PERMITS);
        let taken = (-most..=most).contains(&taken).then_some(taken as u32 & TAKEN)?;
        Some(Self(self.0 & WAITING | taken))
    }

    /// With so many more taken, if there are as many.
    fn granted(self, hold: Hold) -> Option<Self> {
        let Hold::Counted { count, of } = hold else { return None };
        let taken = i64::from(self.taken()) + i64::from(count);
        (taken <= i64::from(of)).then(|| self.with(taken)).flatten()
    }

    /// The same, only if it may change without a section.
    fn taken_at_once(self, hold: Hold) -> Option<Self> {
        let is_ours = self.0 & !TAKEN == 0 && self.taken() >= -MOST_ADDED;
        is_ours.then(|| self.granted(hold)).flatten()
    }

    /// With `count` given back that were taken at some time: no more than there can be, since others may have been added.
    fn with_back(self, count: u32) -> Option<Self> {
        self.with((i64::from(self.taken()) - i64::from(count)).max(-i64::from(MAX_PERMITS)))
    }

    fn state(self) -> State {
        State(u64::from(self.0))
    }
}

impl From<State> for Word {
    fn from(State(state): State) -> Self {
        // A state of the semaphore is a word.
        Self(state as u32)
    }
}

/// The semaphore, in one of two orders.
pub struct Semaphore(&'static About);

/// The one whose newcomers may take what is free.
pub static SEMAPHORE: Semaphore = Semaphore(&ABOUT);

/// The one in strict order.
pub static FAIR_SEMAPHORE: Semaphore = Semaphore(&FAIR);

impl Semaphore {
    /// The state with `count` permits more, of `of` in all; `None` if they were more than there can be.
    pub fn add(&self, state: State, count: u32, of: u32) -> Option<State> {
        let word = Word::from(state);
        let taken = i64::from(word.taken()) - i64::from(count);
        let available = i64::from(of) - taken;
        (available <= i64::from(MAX_PERMITS)).then(|| word.with(taken)).flatten().map(Word::state)
    }
}

impl Hold {
    /// Permits of a semaphore that has `of` in all.
    pub const fn permits(count: u32, of: u32) -> Self {
        Self::Counted { count, of }
    }
}

static ABOUT: About =
    About { name: "Semaphore", order: Order::Barging, space: Space::Words, registered: Some("permits") };

static FAIR: About =
    About { name: "Semaphore", order: Order::Strict, space: Space::Words, registered: Some("permits") };

impl Primitive for Semaphore {
    fn about(&self) -> &'static About {
        self.0
    }

    fn freeze(&self, place: Place, facts: &Facts<'_>) -> Result<State, Corrupt> {
        word::freeze(place, WAITING, |word| word & !(WAITING | TAKEN) == 0 && (word & WAITING == 0 || facts.is_queued))
    }

    fn thaw(&self, place: Place, _: State, state: State, is_queued: bool) {
        word::thaw(place, WAITING, state, is_queued);
    }

    fn enter(&self, state: State, request: Request, agent: AgentId, is_queued: bool) -> Decision {
        match request {
            // No newcomer overtakes.
            Request::Hold(_) if is_queued && self.0.order == Order::Strict && !fault!(StrictOrderOvertaken) => {
                Decision::Wait
            }
            Request::Hold(hold) => self.grant(state, hold, agent).map_or(Decision::Wait, Decision::Granted),
            Request::Notification | Request::NotificationWhile(_) => Decision::Refused,
        }
    }

    fn grant(&self, state: State, hold: Hold, _: AgentId) -> Option<State> {
        Word::from(state).granted(hold).map(Word::state)
    }

    fn release(&self, state: State, hold: Hold, _: AgentId) -> Option<State> {
        let Hold::Counted { count, of } = hold else { return None };
        // As many may have been added meanwhile as can be there in all.
        self.add(state, count, of)
    }

    fn given_back(&self, state: State, counts: Counts) -> State {
        Word::from(state).with_back(counts.sum()).map_or(state, Word::state)
    }

    fn change(&self, state: State, change: Change, _: AgentId) -> Option<State> {
        let Change::Add { count, of } = change else { return None };
        self.add(state, count.try_into().ok()?, of)
    }

    fn is_divided(&self) -> bool {
        self.0.order == Order::Barging
    }

    fn is_waiting(&self, state: State) -> bool {
        Word::from(state).0 & WAITING != 0
    }

    fn reserve(&self, state: State, hold: Hold) -> Option<State> {
        self.grant(state, hold, 0)
    }

    fn unreserve(&self, state: State, hold: Hold) -> State {
        let back = if fault!(KeptPermitsAreLost) { 0 } else { hold.count() };
        Word::from(state).with_back(back).map_or(state, Word::state)
    }

    fn glance(&self, place: Place, hold: Hold) -> Option<Glance> {
        if self.0.order == Order::Strict {
            return None;
        }
        // Relaxed: a hint that guards no data.
        let word = Word(place.word().load(Ordering::Relaxed));
        Some(Glance {
            is_free: word.taken_at_once(hold).is_some(),
            is_shared: false,
            held: word.0 & TAKEN,
            is_waiting: word.0 & WAITING != 0,
            is_reserved: false,
        })
    }

    fn try_enter(&self, place: Place, request: Request, _: AgentId) -> bool {
        // Relaxed: the compare-exchange decides.
        let was = place.word().load(Ordering::Relaxed);
        let Some(now) = request.hold().and_then(|hold| Word(was).taken_at_once(hold)) else { return false };
        // Acquire: pairs with the release of whoever gave back permits, all of whose changes are read-modify-writes.
        place.word().compare_exchange(was, now.0, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::ptr::NonNull;

    use super::*;
    use crate::sync::AtomicU32;

    const ME: AgentId = 70_000;
    const NEW: State = State(0);

    fn taken(state: State) -> i32 {
        Word::from(state).taken()
    }

    #[test]
    fn permits_are_taken_while_there_are_enough() {
        let some = SEMAPHORE.grant(NEW, Hold::permits(2, 3), ME).unwrap();
        assert_eq!(taken(some), 2);
        assert_eq!(SEMAPHORE.grant(some, Hold::permits(2, 3), ME), None);
        let all = SEMAPHORE.grant(some, Hold::permits(1, 3), ME).unwrap();
        assert_eq!(SEMAPHORE.grant(all, Hold::permits(1, 3), ME), None);
        assert_eq!(SEMAPHORE.release(all, Hold::permits(3, 3), ME), Some(NEW));
    }

    #[test]
    fn permits_that_were_added_count_below_zero() {
        assert_eq!(SEMAPHORE.grant(NEW, Hold::permits(1, 0), ME), None);
        let more = SEMAPHORE.add(NEW, 2, 0).unwrap();
        assert_eq!(taken(more), -2);
        let less = SEMAPHORE.grant(more, Hold::permits(2, 0), ME).unwrap();
        assert_eq!(SEMAPHORE.grant(less, Hold::permits(1, 0), ME), None);
    }

    #[test]
    fn no_more_than_the_maximum_can_be_added() {
        assert_eq!(SEMAPHORE.add(NEW, MAX_PERMITS, 1), None);
        assert!(SEMAPHORE.add(NEW, MAX_PERMITS, 0).is_some());
    }

    #[test]
    fn what_a_thread_that_ended_had_goes_back() {
        let some = SEMAPHORE.grant(NEW, Hold::permits(3, 5), ME).unwrap();
        assert_eq!(
            SEMAPHORE.given_back(some, Counts { raw: 0, guarded: 2 }),
            SEMAPHORE.release(some, Hold::permits(2, 5), ME).unwrap()
        );
        assert_eq!(SEMAPHORE.given_back(some, Counts { raw: 2, guarded: 1 }), NEW);
        let held = SEMAPHORE.grant(SEMAPHORE.add(NEW, 5, 0).unwrap(), Hold::permits(5, 0), ME).unwrap();
        let full = SEMAPHORE.add(held, MAX_PERMITS, 0).unwrap();
        assert_eq!(SEMAPHORE.release(full, Hold::permits(5, 0), ME), None, "more than there can be");
        assert_eq!(SEMAPHORE.given_back(full, Counts { raw: 0, guarded: 5 }), full);
    }

    #[test]
    fn a_compare_exchange_takes_permits_only_where_there_are_enough_and_nobody_waits() {
        let word = AtomicU32::new(0);
        // SAFETY: an aligned atomic that outlives the place.
        let place = unsafe { Place::new(NonNull::from(&word), 0) };
        for (value, count, taken) in [
            (0, 3, Some(3)),
            (1, 2, Some(3)),
            (1, 3, None),
            (TAKEN, 4, Some(3)),
            (TAKEN, 5, None),
            (WAITING, 1, None),
            (1 << 30, 1, None),
            // Another kind of lock, for which somebody waits.
            (1 << 29, 1, None),
        ] {
            word.store(value, Ordering::SeqCst);
            let hold = Hold::permits(count, 3);
            assert_eq!(SEMAPHORE.glance(place, hold).unwrap().is_free, taken.is_some(), "{value:#x}");
            assert_eq!(SEMAPHORE.try_enter(place, Request::Hold(hold), ME), taken.is_some(), "{value:#x}");
            assert_eq!(word.load(Ordering::SeqCst), taken.unwrap_or(value), "{value:#x}");
        }
        assert_eq!(FAIR_SEMAPHORE.glance(place, Hold::permits(1, 3)), None, "whoever spins would overtake");
    }
}
