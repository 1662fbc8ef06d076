//! States as a person reads them.

use std::fmt::Write;

use super::agent::{Agent, Hold, Life, NOBODY};
use super::queue::Way;
use super::state::State;

/// The word, the queue and whatever is not in its usual state.
pub fn state(state: &State) -> String {
    let mut out = String::new();
    let word = state.word;
    let flag = |set: bool, name| if set { name } else { "" };
    let (a, f, w) = (flag(word.abandoned, "A"), flag(word.reserved, "F"), flag(word.waiters, "W"));
    let _ = write!(out, "{}{a}{f}{w} [", word.owner);
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
        let _ = write!(out, " | {id} {}", agent(state.agent(id)));
    }
    if let Some(wrong) = state.ghost.wrong {
        let _ = write!(out, " | {wrong:?}");
    }
    out
}

fn agent(agent: &Agent) -> String {
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
    let group = agent.group;
    let flags = [
        (group.offered, "offered"),
        (group.claimed, "claimed"),
        (group.parked, "parked"),
        (group.passed_by, "passed by"),
        (group.inbox > 0, "inbox"),
        (group.scheduled, "scheduled"),
        (group.called, "called"),
        (agent.unreported != NOBODY, "warns"),
    ];
    parts.extend(flags.iter().filter(|(set, _)| *set).map(|(_, name)| name.to_string()));
    parts.join(" ")
}
