//! One line for each result, and traces that a person can read.

use std::fmt::Write;
use std::time::Duration;

use crate::agent::{Agent, Hold, Life, NOBODY};
use crate::queue::Way;
use crate::state::State;
use crate::step::Step;

/// A counterexample, or what was checked.
pub enum Outcome {
    Verified { states: usize },
    Failed { property: String, trace: Vec<String> },
}

impl Outcome {
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

/// The word, the queue and whatever is not in its usual state.
pub fn show(state: &State) -> String {
    let mut out = String::new();
    let word = state.word;
    let flag = |set: bool, name| if set { name } else { "" };
    let _ = write!(
        out,
        "{}{}{}{} [",
        word.owner,
        flag(word.abandoned, "A"),
        flag(word.fenced, "F"),
        flag(word.waiters, "W")
    );
    for (place, w) in state.queue.iter().enumerate() {
        let way = match w.way {
            Way::Blocked => "b".to_string(),
            Way::Async(task) => format!("a{task}"),
        };
        let space = if place > 0 { " " } else { "" };
        let _ = write!(out, "{space}{}{way}{}{}{}", w.agent, flag(w.woken, "*"), flag(w.away, "~"), flag(w.aged, "+"));
    }
    out.push(']');
    if state.reserved_for != NOBODY {
        let _ = write!(out, " for {}", state.reserved_for);
    }
    if state.abandoned_by != NOBODY {
        let _ = write!(out, " abandoned by {}", state.abandoned_by);
    }
    if let Some(frozen) = state.bucket {
        let _ = write!(out, " frozen for {:?}", frozen.section);
    }
    out.push_str(flag(state.cool, " cool"));
    for id in state.ids() {
        let _ = write!(out, " | {id} {}", show_agent(state.agent(id)));
    }
    if let Some(wrong) = state.ghost.wrong {
        let _ = write!(out, " | {wrong:?}");
    }
    out
}

fn show_agent(agent: &Agent) -> String {
    let mut parts = vec![format!("{:?}", agent.at)];
    if agent.life != Life::Running {
        parts.push(format!("{:?}", agent.life));
    }
    if agent.hold != Hold::No {
        parts.push(format!("{:?}", agent.hold));
    }
    if agent.stall != Default::default() {
        parts.push(format!("{:?}", agent.stall));
    }
    let party = agent.party;
    let flags = [
        (party.offered, "offered"),
        (party.claimed, "claimed"),
        (party.level > 0, "long lease"),
        (party.inbox > 0, "inbox"),
        (party.scheduled, "scheduled"),
        (party.called, "called"),
        (agent.tell != NOBODY, "warns"),
    ];
    parts.extend(flags.iter().filter(|(set, _)| *set).map(|(_, name)| name.to_string()));
    parts.join(" ")
}

pub fn line(step: Step, state: &State) -> String {
    format!("{:<24} {}", format!("{step:?}"), show(state))
}
