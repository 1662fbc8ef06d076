//! The base of primitives of one word with a bit W. Fast paths change such a word by compare-exchange from values
//! without W only.

use crate::engine::{Corrupt, State};
use crate::memory::Place;
use crate::sync::Ordering;

/// The word of a state.
pub fn of(State(state): State) -> u32 {
    // A state of such a primitive is a word.
    state as u32
}

/// The state of a word.
pub fn state(word: u32) -> State {
    State(u64::from(word))
}

/// Sets W, so that every fast path fails; leaves alone what is not plausible.
pub fn freeze(place: Place, waiting: u32, is_plausible: impl Fn(u32) -> bool) -> Result<State, Corrupt> {
    // Looked at before it is changed: foreign content stays as it is.
    // Relaxed: the read-modify-write below decides.
    if !is_plausible(place.word().load(Ordering::Relaxed)) {
        return Err(Corrupt);
    }
    // Acquire: pairs with the release (JS compare-exchange, or the store in `thaw`) that wrote this value.
    // Nothing is published here: that is for the store at the end.
    let waiting = if fault!(SectionDoesNotFreeze) { 0 } else { waiting };
    let word = place.word().fetch_or(waiting, Ordering::Acquire);
    if !is_plausible(word) {
        place.word().store(word, Ordering::Release);
        return Err(Corrupt);
    }
    Ok(state(word))
}

/// Writes the word; W stays if somebody is queued.
pub fn thaw(place: Place, waiting: u32, state: State, is_queued: bool) {
    let word = of(state) & !waiting;
    // Release: what the section and its callers wrote is seen by whoever gets in next.
    // A plain store: every fast path changes the word by compare-exchange, which fails on W.
    let order = if fault!(ThawsRelaxed) { Ordering::Relaxed } else { Ordering::Release };
    place.word().store(if is_queued { word | waiting } else { word }, order);
}

/// Reads the word, which may change at once.
pub fn read(place: Place) -> State {
    state(place.word().load(Ordering::Acquire))
}
