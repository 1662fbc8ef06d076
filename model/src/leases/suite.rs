//! Which scenarios are checked when.

use super::fault::Fault;
use super::protocol::Leases;
use crate::check::{Case, Mutant};

fn scenario(requests: u8, [lease, end]: [u8; 2], losses: u8, doubles: u8) -> Leases {
    let name = format!("leases requests={requests} lease={lease} end={end} losses={losses} doubles={doubles}");
    Leases { name, clients: 2, requests, lease, end, losses, doubles, fault: None }
}

fn quick_scenarios() -> Vec<Leases> {
    vec![scenario(1, [2, 1], 0, 0), scenario(1, [1, 2], 1, 0)]
}

fn full_scenarios() -> Vec<Leases> {
    let large = vec![scenario(1, [1, 2], 0, 1), scenario(1, [2, 3], 1, 0)];
    quick_scenarios().into_iter().chain(large).collect()
}

fn cases(scenarios: Vec<Leases>, fault: Option<Fault>) -> Vec<Box<dyn Case>> {
    scenarios.into_iter().map(|scenario| Box::new(Leases { fault, ..scenario }) as Box<dyn Case>).collect()
}

pub fn quick() -> Vec<Box<dyn Case>> {
    cases(quick_scenarios(), None)
}

pub fn full() -> Vec<Box<dyn Case>> {
    cases(full_scenarios(), None)
}

pub fn mutants() -> Vec<Mutant> {
    let grounds = |fault| match fault {
        Fault::AnyAnswerWillDo => vec![scenario(2, [1, 1], 0, 0)],
        Fault::AnswersInAnyOrder => vec![scenario(1, [1, 2], 0, 1)],
        _ => quick_scenarios(),
    };
    let mutant = |fault| Mutant { name: format!("leases: {fault:?}"), grounds: cases(grounds(fault), Some(fault)) };
    Fault::ALL.into_iter().map(mutant).collect()
}
