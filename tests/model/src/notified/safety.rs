//! The properties that must hold in every state, judged by the history alone.

use stateright::Property;

use super::line::Ticket;
use super::setting::{Notified, Role};
use super::state::{At, State};
use crate::primitives::NOBODY;

pub fn properties() -> Vec<Property<Notified>> {
    vec![
        Property::always("nobody is notified of nothing", |_, s: &State| fits(s, None)),
        Property::always("no notification is lost", |_, s: &State| {
            let dying = s.agents.iter().any(|agent| agent.at == At::Dying);
            dying || s.line.waiting().all(|waiter| !fits(s, Some(waiter.ticket)))
        }),
        Property::always("nobody overtakes", |_, s: &State| in_order(s)),
        Property::always("nobody sleeps on what has come", |n, s: &State| !sleeps_on(n, s)),
    ]
}

/// Whether each who was notified (the dead who never knew of it are as if they had not come), and this one too, can have
/// had a notification of its own that was given while it stood in the line.
fn fits(s: &State, too: Option<Ticket>) -> bool {
    let notified = s.line.waiters.iter().filter(|w| w.notified.is_some()).map(|w| w.ticket);
    let mut tickets: Vec<Ticket> = notified.chain(s.learned.iter().copied()).chain(too).collect();
    let mut given: Vec<Ticket> = s.given.to_vec();
    tickets.sort_unstable();
    given.sort_unstable();
    // The latest to come needs the latest given.
    tickets.len() <= given.len() && tickets.iter().rev().zip(given.iter().rev()).all(|(ticket, before)| ticket < before)
}

/// Whether nobody is notified while one that came before it waits.
fn in_order(s: &State) -> bool {
    let first = s.line.waiting().next().map(|w| w.ticket);
    s.line.waiters.iter().filter(|w| w.notified.is_some()).all(|w| first.is_none_or(|first| w.ticket < first))
}

/// Everybody sleeps or has done what it does, and somebody sleeps though what it waits for is there.
fn sleeps_on(notified: &Notified, s: &State) -> bool {
    let is_quiet = |at: At| matches!(at, At::Js | At::Waiting | At::Gone);
    let quiet = s.agents.iter().all(|agent| is_quiet(agent.at)) && s.line.waiters.iter().all(|w| w.notified.is_none());
    let is_about_values = notified.roles.iter().any(|role| matches!(role, Role::Sets | Role::Puts(_)));
    is_about_values && quiet && s.lock.owner == NOBODY && s.value > 0 && !s.excused && s.line.waiting().next().is_some()
}
