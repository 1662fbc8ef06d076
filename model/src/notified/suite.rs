//! Which scenarios are checked when.

use super::fault::Fault;
use super::setting::Notified;
use super::setting::Role::{Notifies, Puts, Sets, Takes, Waits};
use crate::check::{Case, Mutant};

fn quick_scenarios() -> Vec<Notified> {
    vec![
        Notified::of(&[Waits(1), Waits(1), Waits(1), Notifies(2, 1)]).deaths(2).quits(),
        Notified::of(&[Waits(2), Waits(1), Notifies(2, 1), Notifies(1, 2)]).deaths(1).quits(),
        Notified::of(&[Waits(1), Waits(1), Waits(1), Waits(1), Notifies(3, 1)]).deaths(2),
        Notified::of(&[Waits(2), Waits(1), Sets]).deaths(1),
        Notified::of(&[Takes(1), Takes(1), Puts(2)]).deaths(1).quits(),
        Notified::of(&[Takes(1), Takes(1), Takes(1), Puts(2)]).deaths(1),
    ]
}

fn full_scenarios() -> Vec<Notified> {
    let large = vec![
        Notified::of(&[Waits(1), Waits(1), Waits(1), Waits(1), Notifies(3, 1)]).deaths(2).quits(),
        Notified::of(&[Waits(2), Waits(2), Waits(1), Notifies(3, 1)]).deaths(2).quits(),
        Notified::of(&[Takes(1), Takes(1), Takes(1), Puts(3)]).deaths(1).quits(),
    ];
    quick_scenarios().into_iter().chain(large).collect()
}

fn hunting_grounds() -> Vec<Notified> {
    quick_scenarios()
}

fn cases(scenarios: Vec<Notified>, fault: Option<Fault>) -> Vec<Box<dyn Case>> {
    scenarios.into_iter().map(|scenario| Box::new(Notified { fault, ..scenario }) as Box<dyn Case>).collect()
}

pub fn quick() -> Vec<Box<dyn Case>> {
    cases(quick_scenarios(), None)
}

pub fn full() -> Vec<Box<dyn Case>> {
    cases(full_scenarios(), None)
}

pub fn mutants() -> Vec<Mutant> {
    let mutant = |fault| Mutant { name: format!("{fault:?}"), grounds: cases(hunting_grounds(), Some(fault)) };
    Fault::ALL.into_iter().map(mutant).collect()
}
