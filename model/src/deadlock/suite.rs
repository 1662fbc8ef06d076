//! Which scenarios are checked when.

use super::protocol::{Deadlock, Fault};
use crate::check::{Case, Mutant};

fn of(agents: usize, words: usize, fault: Option<Fault>) -> Box<dyn Case> {
    let name = format!("deadlock search, {agents} threads, {words} mutexes");
    Box::new(Deadlock { name, words, agents, fault })
}

pub fn quick() -> Vec<Box<dyn Case>> {
    vec![of(2, 2, None), of(3, 2, None)]
}

pub fn full() -> Vec<Box<dyn Case>> {
    vec![of(2, 2, None), of(3, 2, None), of(3, 3, None)]
}

pub fn mutants() -> Vec<Mutant> {
    let mutant =
        |fault| Mutant { name: format!("{fault:?}"), grounds: vec![of(2, 2, Some(fault)), of(3, 2, Some(fault))] };
    Fault::ALL.into_iter().map(mutant).collect()
}
