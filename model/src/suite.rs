//! What is checked when.

use crate::check::{Case, Mutant};
use crate::{barging, deadlock, engine, exchanger, files, leases, named, notified, sessions};

/// What CI runs.
pub fn quick() -> Vec<Box<dyn Case>> {
    [
        barging::suite::quick(),
        engine::suite::quick(),
        exchanger::suite::quick(),
        notified::suite::quick(),
        deadlock::suite::quick(),
        named::suite::quick(),
        leases::suite::quick(),
        files::suite::quick(),
        sessions::suite::quick(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// With the largest shapes that a day job has time for.
pub fn full() -> Vec<Box<dyn Case>> {
    [
        barging::suite::full(),
        engine::suite::full(),
        exchanger::suite::full(),
        notified::suite::full(),
        deadlock::suite::full(),
        named::suite::full(),
        leases::suite::full(),
        files::suite::full(),
        sessions::suite::full(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// What must be caught.
pub fn mutants() -> Vec<Mutant> {
    [
        barging::suite::mutants(),
        engine::suite::mutants(),
        exchanger::suite::mutants(),
        notified::suite::mutants(),
        deadlock::suite::mutants(),
        named::suite::mutants(),
        leases::suite::mutants(),
        files::suite::mutants(),
        sessions::suite::mutants(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
