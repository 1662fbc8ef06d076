//! Models of sablock's protocols, checked in every order in which the steps of a few threads can happen, for the
//! properties that tests cannot show, since the orders that break them are too rare.
//!
//! ```text
//! cargo run --release -p sablock-model -- [quick|full|mutants|<scenario>|<mutant>] [--trace]
//! ```
//!
//! - [`primitives`]: what a word says and how it changes, as pure state machines that know no queue and no thread.
//! - [`barging`]: one mutex, its queue and its threads, in the finest steps.
//! - [`engine`]: several words, primitives in both orders, batches, the register of holds, ends of threads.
//! - [`exchanger`]: two that meet and swap values.
//! - [`notified`]: wait and notify, and conditions.
//! - [`deadlock`]: the search for cycles of blocked threads.
//! - [`files`]: the order of locks of files, among processes.
//! - [`leases`]: one name in a store by leases. [`sessions`]: locks that are a session's, as PostgreSQL's.
//! - [`check`]: checks any of them. [`suite`]: what is checked when.
//!
//! The exit code is 0 only if the protocols hold and no mutant does.

#[macro_use]
mod agents;

mod barging;
mod check;
mod deadlock;
mod engine;
mod exchanger;
mod files;
mod leases;
mod named;
mod notified;
mod primitives;
mod sessions;
mod suite;

use std::process::ExitCode;
use std::time::Instant;

use check::{Case, Mutant};

fn main() -> ExitCode {
    let (options, words): (Vec<String>, Vec<String>) = std::env::args().skip(1).partition(|arg| arg.starts_with("--"));
    let traces = options.iter().any(|option| option == "--trace");
    let what = words.join(" ");
    let good = match what.as_str() {
        "" | "quick" => verify(suite::quick(), traces) & hunt(suite::mutants(), traces),
        "full" => verify(suite::full(), traces) & hunt(suite::mutants(), traces),
        "mutants" => hunt(suite::mutants(), traces),
        name => named(name, traces),
    };
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// One mutant by its name, or scenarios by a part of theirs.
fn named(name: &str, traces: bool) -> bool {
    let mutants: Vec<Mutant> = suite::mutants().into_iter().filter(|mutant| mutant.name == name).collect();
    if !mutants.is_empty() {
        return hunt(mutants, traces);
    }
    let scenarios: Vec<Box<dyn Case>> = suite::full().into_iter().filter(|s| s.name().contains(name)).collect();
    if scenarios.is_empty() {
        eprintln!("No scenario or mutant has the name {name:?}. There are:");
        suite::full().iter().for_each(|s| eprintln!("  {}", s.name()));
        suite::mutants().iter().for_each(|m| eprintln!("  {}", m.name));
        return false;
    }
    verify(scenarios, traces)
}

/// The protocol as it is must hold in each scenario.
fn verify(scenarios: Vec<Box<dyn Case>>, traces: bool) -> bool {
    let mut good = true;
    for scenario in scenarios {
        let start = Instant::now();
        let outcome = scenario.check();
        good &= !outcome.failed();
        outcome.print("FAILED", &scenario.name(), start.elapsed(), traces);
    }
    good
}

/// Each mutant must fail in some scenario.
fn hunt(mutants: Vec<Mutant>, traces: bool) -> bool {
    let mut good = true;
    for Mutant { name, grounds } in mutants {
        let start = Instant::now();
        let mut outcomes = grounds.iter().map(|case| (case.check(), case.name()));
        let caught = outcomes.find(|(outcome, _)| outcome.failed());
        match &caught {
            Some((outcome, scenario)) => {
                outcome.print("caught", &format!("{name} in {scenario}"), start.elapsed(), traces)
            }
            None => println!("SURVIVES {name}"),
        }
        good &= caught.is_some();
    }
    good
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_mutants_are_unique() {
        let mut names: Vec<String> = suite::mutants().into_iter().map(|mutant| mutant.name).collect();
        let all = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    #[test]
    fn names_of_scenarios_are_unique() {
        let mut names: Vec<String> = suite::full().into_iter().map(|case| case.name()).collect();
        let all = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    /// One of each protocol, the cheapest that its name leads to.
    #[test]
    fn protocols_hold_and_their_mutants_are_caught() {
        for name in ["2B away deaths=2", "two permits", "notified", "deadlock search, 2 threads"] {
            let case = suite::quick().into_iter().find(|case| case.name().contains(name)).expect("a scenario");
            assert!(!case.check().failed(), "{name}");
        }
        for name in ["UnlockWakesNobody", "BatchOfOne", "LastFirst", "OneWalk"] {
            let mutant = suite::mutants().into_iter().find(|mutant| mutant.name == name).expect("a mutant");
            assert!(mutant.grounds.iter().any(|case| case.check().failed()), "{name}");
        }
    }
}
