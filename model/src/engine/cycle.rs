//! Cycles of threads that are blocked without a timeout, each for what the next one stands in the way of.

use super::state::{At, Life, State};
use crate::primitives::{Id, NOBODY};

/// Whether `id` waits, through others, for itself. A waiter waits for the owner of its word and, where `follows_queue` says
/// that nobody overtakes, for those ahead of it: they have to be served first.
pub fn is_in_cycle(state: &State, id: Id, follows_queue: impl Fn(usize) -> bool) -> bool {
    let mut to_see = obstacles(state, id, &follows_queue);
    let mut seen = 0_u8;
    while let Some(next) = to_see.pop() {
        if next == id {
            return true;
        }
        if seen & 1 << next == 0 {
            seen |= 1 << next;
            to_see.extend(obstacles(state, next, &follows_queue));
        }
    }
    false
}

/// Whom a thread waits for, if it is blocked.
fn obstacles(state: &State, id: Id, follows_queue: impl Fn(usize) -> bool) -> Vec<Id> {
    let agent = state.agent(id);
    let At::Parked(word) = agent.at else { return Vec::new() };
    if agent.life != Life::Running || agent.parts[word].granted.is_some() {
        return Vec::new();
    }
    let mut obstacles = Vec::new();
    let owner = state.words[word].owner();
    if owner != NOBODY {
        obstacles.push(owner);
    }
    if follows_queue(word)
        && let Some(place) = state.place(id, word)
    {
        obstacles.extend(state.queue[..place].iter().filter(|w| w.word == word && w.agent != id).map(|w| w.agent));
    }
    obstacles
}
