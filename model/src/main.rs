//! A model of sablock's lock protocol: one word, its queue, and a few threads, in every order in which their steps can
//! happen. It is checked for the properties that tests cannot show, since the orders that break them are too rare.
//!
//! ```text
//! cargo run --release -p sablock-model -- [quick|full|mutants|<scenario>] [--trace]
//! ```
//!
//! - What there is: [`word`], [`queue`], [`agent`], and [`state`], which holds them together.
//! - What may happen: [`step`] names it, [`enabled`] says when, [`protocol`] and [`section`] do it; [`delivery`] is the way
//!   of an offer to a loop. `section` is the protocol proper, and reads like the library's own bucket-locked code.
//! - What must hold: [`safety`] in each state, [`liveness`] on endless runs, with [`fairness`] saying who is sure to go on.
//! - What is checked: [`scenario`] and [`suite`]; [`fault`] is what must not pass.
//!
//! The exit code is 0 only if the protocol holds and no mutant does.

mod agent;
mod check;
mod delivery;
mod enabled;
mod explore;
mod fairness;
mod fault;
mod liveness;
mod protocol;
mod queue;
mod report;
mod safety;
mod scenario;
mod section;
mod state;
mod step;
mod suite;
mod word;

use std::process::ExitCode;
use std::time::Instant;

use fault::Fault;
use protocol::Protocol;
use report::Outcome;
use scenario::Scenario;

fn main() -> ExitCode {
    let (options, words): (Vec<String>, Vec<String>) = std::env::args().skip(1).partition(|arg| arg.starts_with("--"));
    let traces = options.iter().any(|option| option == "--trace");
    let what = words.join(" ");
    let good = match what.as_str() {
        "" | "quick" => verify(suite::quick(), traces) & hunt(Fault::ALL.to_vec(), traces),
        "full" => verify(suite::full(), traces) & hunt(Fault::ALL.to_vec(), traces),
        "mutants" => hunt(Fault::ALL.to_vec(), traces),
        name => named(name, traces),
    };
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// One scenario or mutant, by a part of its name.
fn named(name: &str, traces: bool) -> bool {
    let faults: Vec<Fault> = Fault::ALL.into_iter().filter(|fault| format!("{fault:?}") == name).collect();
    if !faults.is_empty() {
        return hunt(faults, traces);
    }
    let scenarios: Vec<Scenario> = suite::full().into_iter().filter(|s| s.name.contains(name)).collect();
    if scenarios.is_empty() {
        eprintln!("No scenario or mutant has the name {name:?}. There are:");
        suite::full().iter().for_each(|s| eprintln!("  {}", s.name));
        Fault::ALL.iter().for_each(|f| eprintln!("  {f:?}"));
        return false;
    }
    verify(scenarios, traces)
}

/// The protocol as it is must hold in each scenario.
fn verify(scenarios: Vec<Scenario>, traces: bool) -> bool {
    let mut good = true;
    for scenario in scenarios {
        let start = Instant::now();
        let protocol = Protocol { scenario, fault: None };
        let outcome = check::check(&protocol);
        good &= matches!(outcome, Outcome::Verified { .. });
        outcome.print("FAILED", &protocol.scenario.name, start.elapsed(), traces);
    }
    good
}

/// Each mutant must fail in some scenario.
fn hunt(faults: Vec<Fault>, traces: bool) -> bool {
    let mut good = true;
    for fault in faults {
        let start = Instant::now();
        let mut outcomes = suite::hunting_grounds().into_iter().map(|scenario| {
            let protocol = Protocol { scenario, fault: Some(fault) };
            (check::check(&protocol), protocol.scenario.name)
        });
        let caught = outcomes.find(|(outcome, _)| matches!(outcome, Outcome::Failed { .. }));
        match &caught {
            Some((outcome, scenario)) => {
                outcome.print("caught", &format!("{fault:?} in {scenario}"), start.elapsed(), traces)
            }
            None => println!("SURVIVES {fault:?}"),
        }
        good &= caught.is_some();
    }
    good
}

#[cfg(test)]
mod tests {
    use super::*;
    use scenario::{B, L};

    fn outcome(scenario: Scenario, fault: Option<Fault>) -> Outcome {
        check::check(&Protocol { scenario, fault })
    }

    #[test]
    fn two_blocking_threads_that_may_die_lose_no_wake_up() {
        let scenario = Scenario::of(&[B, B]).away().deaths(2);
        assert!(matches!(outcome(scenario, None), Outcome::Verified { .. }));
    }

    #[test]
    fn a_thread_and_a_loop_are_both_served() {
        let scenario = Scenario::of(&[B, L]).away().stalls().liveness();
        assert!(matches!(outcome(scenario, None), Outcome::Verified { .. }));
    }

    #[test]
    fn an_unlock_that_wakes_nobody_is_noticed() {
        let scenario = Scenario::of(&[B, B]);
        let Outcome::Failed { property, .. } = outcome(scenario, Some(Fault::UnlockWakesNobody)) else {
            panic!("the mutant survives");
        };
        assert_eq!(property, "no lost wake-up");
    }

    #[test]
    fn a_lock_that_never_gives_starves_a_blocked_thread() {
        let scenario = Scenario::of(&[B, B]).liveness();
        assert!(matches!(outcome(scenario, Some(Fault::NeverGives)), Outcome::Failed { .. }));
    }
}
