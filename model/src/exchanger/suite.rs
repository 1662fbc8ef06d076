//! Which scenarios are checked when.

use super::fault::Fault;
use super::protocol::Exchanger;
use crate::check::{Case, Mutant};

fn scenario(threads: u8, calls: u8, deaths: u8) -> Exchanger {
    let name = format!("exchanger of {threads}, calls={calls} deaths={deaths}");
    Exchanger { name, threads, calls, deaths, fault: None }
}

fn cases(scenarios: Vec<Exchanger>, fault: Option<Fault>) -> Vec<Box<dyn Case>> {
    scenarios.into_iter().map(|scenario| Box::new(Exchanger { fault, ..scenario }) as Box<dyn Case>).collect()
}

fn quick_scenarios() -> Vec<Exchanger> {
    vec![scenario(2, 2, 1), scenario(3, 2, 1), scenario(4, 1, 2)]
}

pub fn quick() -> Vec<Box<dyn Case>> {
    cases(quick_scenarios(), None)
}

pub fn full() -> Vec<Box<dyn Case>> {
    cases([quick_scenarios(), vec![scenario(3, 3, 1), scenario(4, 2, 0)]].concat(), None)
}

pub fn mutants() -> Vec<Mutant> {
    let mutant =
        |fault| Mutant { name: format!("exchanger: {fault:?}"), grounds: cases(quick_scenarios(), Some(fault)) };
    Fault::ALL.into_iter().map(mutant).collect()
}
