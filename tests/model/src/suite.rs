//! The checks, and when they run.

use crate::check::{Case, Mutant, Suite};
use crate::{barging, deadlock, engine, exchanger, files, leases, named, notified, sessions};

fn all() -> impl Iterator<Item = Suite> {
    [
        barging::suite::suite,
        engine::suite::suite,
        exchanger::suite::suite,
        notified::suite::suite,
        deadlock::suite::suite,
        named::suite::suite,
        leases::suite::suite,
        files::suite::suite,
        sessions::suite::suite,
    ]
    .into_iter()
    .map(|suite| suite())
}

/// Returns the checks that CI runs.
pub fn quick() -> Vec<Box<dyn Case>> {
    all().flat_map(|suite| suite.quick).collect()
}

/// With the largest shapes that a day job has time for.
pub fn full() -> Vec<Box<dyn Case>> {
    all().flat_map(|suite| suite.full).collect()
}

/// Returns the mutants that must be caught.
pub fn mutants() -> Vec<Mutant> {
    all().flat_map(|suite| suite.mutants).collect()
}
