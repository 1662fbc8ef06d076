//! Which scenarios are checked when.

use super::fault::Fault;
use super::setting::Named;
use super::setting::Role::{Alone, Shares, Steals};
use crate::check::{Case, Mutant};

fn quick_scenarios() -> Vec<Named> {
    vec![
        Named::of(&[Alone, Alone, Alone], 2, 1),
        Named::of(&[Alone, Shares, Shares], 2, 1),
        Named::of(&[Alone, Alone, Steals], 2, 1),
        Named::of(&[Shares, Shares, Steals], 2, 1),
        Named::of(&[Steals, Steals, Alone], 2, 2),
    ]
}

fn full_scenarios() -> Vec<Named> {
    let large = vec![
        Named::of(&[Alone, Alone, Shares, Shares], 2, 1),
        Named::of(&[Alone, Shares, Shares, Steals], 2, 1),
        Named::of(&[Alone, Alone, Steals], 3, 2),
    ];
    quick_scenarios().into_iter().chain(large).collect()
}

fn cases(scenarios: Vec<Named>, fault: Option<Fault>) -> Vec<Box<dyn Case>> {
    scenarios.into_iter().map(|scenario| Box::new(Named { fault, ..scenario }) as Box<dyn Case>).collect()
}

pub fn quick() -> Vec<Box<dyn Case>> {
    cases(quick_scenarios(), None)
}

pub fn full() -> Vec<Box<dyn Case>> {
    cases(full_scenarios(), None)
}

pub fn mutants() -> Vec<Mutant> {
    let mutant = |fault| Mutant { name: format!("names: {fault:?}"), grounds: cases(quick_scenarios(), Some(fault)) };
    Fault::ALL.into_iter().map(mutant).collect()
}
