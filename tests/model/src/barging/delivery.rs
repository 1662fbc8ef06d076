//! An offer reaches a loop, once its flag is set, not under the bucket's lock; and one word may come to be offered
//! while another is under way.

use super::agent::Thread;
use super::agent::{At, Id, Life, NOBODY};
use super::fault::Fault;
use super::setting::Barging;
use super::state::State;

/// The offering thread, out of the bucket, pushes the word on the next loop's inbox.
pub fn push(state: &mut State, thread: Thread) {
    let group = state.outbox(thread).next();
    // A loop whose environment has ended has no inbox any more.
    if state.agent(group).life != Life::Gone {
        state.outbox(thread).ring = group;
        let inbox = &mut state.group(group).inbox;
        *inbox = (*inbox + 1).min(2);
    }
}

/// ... and calls the loop's threadsafe function, unless somebody has.
pub fn ring(state: &mut State, thread: Thread) {
    let id = std::mem::replace(&mut state.outbox(thread).ring, NOBODY);
    if state.agent(id).life != Life::Gone {
        call(state, id);
    }
}

/// All words share one callback of the loop: it may come for the sake of another one, and find ours, or nothing.
pub fn call(state: &mut State, id: Id) {
    let group = state.group(id);
    if !std::mem::replace(&mut group.scheduled, true) {
        group.called = true;
    }
}

/// The loop's callback runs, in two steps. It clears `scheduled` before it takes the inbox: a word that comes too late for
/// this drain calls for the next.
pub fn drain(protocol: &Barging, state: &mut State, id: Id) {
    let agent = state.agent_mut(id);
    let second = matches!(agent.at, At::Draining(_));
    let mut words = if let At::Draining(taken) = agent.at { taken } else { 0 };
    if second == protocol.has(Fault::ScheduledClearedLate) {
        agent.group.scheduled = false;
    } else {
        words += std::mem::take(&mut agent.group.inbox);
    }
    agent.group.called &= second; // the callback that runs is used up; one called since is another
    agent.at = match words {
        _ if !second => At::Draining(words),
        0 => At::Js,
        _ => At::Claiming(words),
    };
}
