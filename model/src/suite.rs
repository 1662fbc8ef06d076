//! What is checked when.

use std::fmt::Debug;

use crate::check::{Case, Mutant, Protocol};
use crate::{barging, deadlock, engine, exchanger, files, leases, named, notified, sessions};

/// What is checked of a model.
pub struct Suite {
    quick: Vec<Box<dyn Case>>,
    full: Vec<Box<dyn Case>>,
    mutants: Vec<Mutant>,
}

impl Suite {
    /// Scenarios without a fault, and `grounds` on which each of `faults` is looked for; `with` makes a model of a scenario.
    /// `prefix` tells the faults from those of other models.
    pub fn new<S, F: Copy + Debug, P: Protocol + 'static>(
        prefix: &str,
        quick: Vec<S>,
        full: Vec<S>,
        faults: impl IntoIterator<Item = F>,
        grounds: impl Fn(F) -> Vec<S>,
        with: impl Fn(Option<F>, S) -> P,
    ) -> Self {
        let cases = |scenarios: Vec<S>, fault| -> Vec<Box<dyn Case>> {
            scenarios.into_iter().map(|scenario| Box::new(with(fault, scenario)) as Box<dyn Case>).collect()
        };
        let mutant = |fault| Mutant { name: format!("{prefix}{fault:?}"), grounds: cases(grounds(fault), Some(fault)) };
        let mutants = faults.into_iter().map(mutant).collect();
        Self { quick: cases(quick, None), full: cases(full, None), mutants }
    }

    /// And this model must fail without any fault: it lacks what the others rely on.
    #[must_use]
    pub fn must_fail(mut self, name: &str, model: impl Protocol + 'static) -> Self {
        self.mutants.push(Mutant { name: name.to_string(), grounds: vec![Box::new(model)] });
        self
    }
}

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

/// What CI runs.
pub fn quick() -> Vec<Box<dyn Case>> {
    all().flat_map(|suite| suite.quick).collect()
}

/// With the largest shapes that a day job has time for.
pub fn full() -> Vec<Box<dyn Case>> {
    all().flat_map(|suite| suite.full).collect()
}

/// What must be caught.
pub fn mutants() -> Vec<Mutant> {
    all().flat_map(|suite| suite.mutants).collect()
}
