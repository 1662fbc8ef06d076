//! One line for each result, and traces that a person can read.

use std::fmt::Debug;
use std::time::Duration;

/// A counterexample, or what was checked.
pub enum Outcome {
    Verified { states: usize },
    Failed { property: String, trace: Vec<String> },
}

impl Outcome {
    pub fn failed(&self) -> bool {
        matches!(self, Outcome::Failed { .. })
    }

    /// `verdict`: what to call a failure, which is what one hopes for in a mutant.
    pub fn print(&self, verdict: &str, name: &str, time: Duration, traces: bool) {
        let time = time.as_secs_f32();
        match self {
            Outcome::Verified { states } => println!("{:<8} {name}: {states} states, {time:.1} s", "ok"),
            Outcome::Failed { property, trace } => {
                println!("{verdict:<8} {name}: {property}, {} steps, {time:.1} s", trace.len());
                if traces {
                    trace.iter().for_each(|line| println!("         {line}"));
                }
            }
        }
    }
}

pub fn line(step: impl Debug, state: &str) -> String {
    format!("{:<28} {state}", format!("{step:?}"))
}

pub fn line_of_round(state: &str) -> String {
    format!("{:<28} {state}", "")
}
