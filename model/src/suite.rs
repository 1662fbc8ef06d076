//! What is checked when.

use crate::barging;
use crate::check::{Case, Mutant};

/// What CI runs.
pub fn quick() -> Vec<Box<dyn Case>> {
    barging::suite::quick()
}

/// With the largest shapes that a day job has time for.
pub fn full() -> Vec<Box<dyn Case>> {
    barging::suite::full()
}

/// What must be caught.
pub fn mutants() -> Vec<Mutant> {
    barging::suite::mutants()
}
