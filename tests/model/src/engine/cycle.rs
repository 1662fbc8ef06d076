//! The search for cycles of threads that are blocked without a timeout, each for what the next one stands in the way of.

use super::enabled::has_deadline;
use super::fault::Fault;
use super::setting::Engine;
use super::state::{At, Life, State, Waiter};
use super::step::Way;
use crate::primitives::{Id, NOBODY, Request, Word};

/// Whether `id` waits, through others, for itself. A waiter waits for the owner of its word; in strict order for those ahead of
/// it, who have to be served first; where others read, for these and for the writers in between. Permits have no holders here:
/// anybody may release some.
pub fn is_in_cycle(engine: &Engine, state: &State, id: Id) -> bool {
    let mut to_see = obstacles(engine, state, id);
    let mut seen = 0_u8;
    while let Some(next) = to_see.pop() {
        if next == id {
            return true;
        }
        if seen & 1 << next == 0 {
            seen |= 1 << next;
            to_see.extend(obstacles(engine, state, next));
        }
    }
    false
}

/// Returns the agents that a thread waits for, if it is blocked.
fn obstacles(engine: &Engine, state: &State, id: Id) -> Vec<Id> {
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
    let Some(place) = state.place(id, word) else { return obstacles };
    let lasts = |w: &&Waiter| w.word == word && w.agent != id && !has_deadline(engine, state, w.agent, word);
    let ahead = || state.queue[..place].iter().filter(lasts);
    match state.words[word] {
        Word::Semaphore(_) => obstacles.clear(),
        Word::RwLock(_) => {
            let readers = || state.ids().filter(|other| state.part(*other, word).slot.count > 0);
            let mut waits_for_readers = state.queue[place].request == Request::Exclusive;
            let writers =
                ahead().filter(|w| w.request == Request::Exclusive && !engine.has(Fault::SearchForgetsWriters));
            for writer in writers.filter(|_| readers().next().is_some()) {
                // It waits for the readers itself; a pending promise does so without a thread.
                waits_for_readers = true;
                obstacles.extend((writer.way == Way::Blocked).then_some(writer.agent));
            }
            if waits_for_readers && !engine.has(Fault::SearchForgetsReaders) {
                obstacles.extend(readers());
            }
        }
        Word::Mutex(_) | Word::Once(_) if engine.is_strict(word) && !engine.has(Fault::SearchFollowsOwnersOnly) => {
            obstacles.extend(ahead().map(|w| w.agent));
        }
        Word::Mutex(_) | Word::Once(_) => {}
    }
    obstacles
}
