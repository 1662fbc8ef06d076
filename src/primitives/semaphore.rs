//! The semaphore: one word, in which zero means that all permits are there.
//!
//! | bits | meaning |
//! |------|---------|
//! | 0..=29 | the permits that are taken, less those that were added, in two's complement |
//! | 30 | 0 |
//! | 31 | W: somebody waits, so that every change goes through the queue |
//!
//! How many permits there are in all is what each thread names. Who has them, the register of holds says. Strict order: a
//! large request at the head is never overtaken by small ones.

use std::sync::Arc;

use super::word;
use crate::agents::{Agent, AgentId};
use crate::engine::{Blockers, Corrupt, Counts, Engine, Entry, Facts, Hold, Mode, Order, Primitive, Request, State};
use crate::memory::Place;

/// W: somebody waits.
pub const WAITING: u32 = 1 << 31;
/// The bits of the number of permits taken.
pub const TAKEN: u32 = (1 << 30) - 1;
/// No semaphore has more permits: the constructor's and those that were added.
pub const MAX_PERMITS: u32 = (1 << 29) - 1;

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

/// The semaphore.
pub struct Semaphore;

/// The one that there need be.
pub static SEMAPHORE: Semaphore = Semaphore;

impl Semaphore {
    /// The state with `count` permits more, of `of` in all; `None` if they were more than there can be.
    pub fn add(&self, state: State, count: u32, of: u32) -> Option<State> {
        let word = Word::from(state);
        let taken = i64::from(word.taken()) - i64::from(count);
        let available = i64::from(of) - taken;
        (available <= i64::from(MAX_PERMITS)).then(|| word.with(taken)).flatten().map(Word::state)
    }
}

impl Primitive for Semaphore {
    fn name(&self) -> &'static str {
        "Semaphore"
    }

    fn order(&self) -> Order {
        Order::Strict
    }

    fn freeze(&self, place: Place, facts: &Facts<'_>) -> Result<State, Corrupt> {
        word::freeze(place, WAITING, |word| word & !(WAITING | TAKEN) == 0 && (word & WAITING == 0 || facts.is_queued))
    }

    fn thaw(&self, place: Place, _: State, state: State, is_queued: bool) {
        word::thaw(place, WAITING, state, is_queued);
    }

    fn read(&self, place: Place) -> State {
        word::read(place)
    }

    fn enter(&self, state: State, request: Request, agent: AgentId, is_queued: bool) -> Entry {
        match request {
            // Nobody overtakes.
            Request::Hold(_) if is_queued && !fault!(StrictOrderOvertaken) => Entry::Wait,
            Request::Hold(hold) => self.grant(state, hold, agent).map_or(Entry::Wait, Entry::Granted),
            Request::Notification | Request::NotificationWhile(_) => Entry::Refused,
        }
    }

    fn grant(&self, state: State, hold: Hold, _: AgentId) -> Option<State> {
        let word = Word::from(state);
        let taken = i64::from(word.taken()) + i64::from(hold.count);
        (taken <= i64::from(hold.of)).then(|| word.with(taken)).flatten().map(Word::state)
    }

    fn release(&self, state: State, hold: Hold, _: AgentId) -> Option<State> {
        let word = Word::from(state);
        word.with(i64::from(word.taken()) - i64::from(hold.count)).map(Word::state)
    }

    fn registered(&self) -> Option<Mode> {
        Some(Mode::Permits)
    }

    fn given_back(&self, state: State, counts: Counts) -> State {
        let word = Word::from(state);
        // No more than there can be: permits were added while these were held.
        let taken = (i64::from(word.taken()) - i64::from(counts.sum())).max(-i64::from(MAX_PERMITS));
        word.with(taken).map_or(state, Word::state)
    }

    fn is_waiting(&self, state: State) -> bool {
        Word::from(state).0 & WAITING != 0
    }

    fn blockers(&self, _: State) -> Blockers {
        // Anybody may add permits.
        Blockers::Anybody
    }
}

impl Engine {
    /// Adds permits to a semaphore that has `of` in all; false if they were more than there can be: then nothing changes. On
    /// the thread of `here`, as [`Engine::release`].
    pub fn add_permits(&self, here: &Arc<Agent>, place: Place, count: u32, of: u32) -> Result<bool, Corrupt> {
        Ok(self.update(here, &SEMAPHORE, place, |state| SEMAPHORE.add(state, count, of))?.is_some())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

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
        let held = SEMAPHORE.grant(SEMAPHORE.add(NEW, 5, 0).unwrap(), Hold::permits(5, 0), ME).unwrap();
        let full = SEMAPHORE.add(held, MAX_PERMITS, 0).unwrap();
        assert_eq!(SEMAPHORE.release(full, Hold::permits(5, 0), ME), None, "more than there can be");
        assert_eq!(SEMAPHORE.given_back(full, Counts { raw: 0, guarded: 5 }), full);
    }
}
