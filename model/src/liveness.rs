//! Every live waiter is served: no endless fair run in which it waits all the time.
//!
//! Such a run ends up in one strongly connected component of the states in which the waiter waits. The component is fair
//! if each class that is due in all its states is also taken within it.

use std::collections::HashSet;

use petgraph::algo::kosaraju_scc;
use petgraph::graph::NodeIndex;
use petgraph::visit::{EdgeFiltered, EdgeRef, NodeFiltered};

use crate::agent::{Hold, Id};
use crate::explore::Space;
use crate::fairness::{Class, Classes};
use crate::protocol::Protocol;
use crate::queue::Way;
use crate::state::State;

/// A waiter that may wait for ever.
pub struct Starving {
    pub agent: Id,
    pub way: Way,
    /// The endless run: states among which it can go on for ever.
    pub members: Vec<NodeIndex>,
}

/// The waiters to look at: agents of one kind are alike, so one of them speaks for all.
pub fn waiters(protocol: &Protocol) -> Vec<(Id, Way)> {
    let kinds = &protocol.scenario.agents;
    let mut waiters = Vec::new();
    for (index, kind) in kinds.iter().enumerate() {
        if kinds[..index].contains(kind) {
            continue;
        }
        let id = index as Id + 1;
        waiters.extend(kind.blocks.then_some((id, Way::Blocked)));
        waiters.extend((1..=kind.tasks).map(|task| (id, Way::Async(task))));
    }
    waiters
}

pub fn find_starving(protocol: &Protocol, space: &Space) -> Option<Starving> {
    waiters(protocol).into_iter().find_map(|(agent, way)| {
        // A thread that takes the lock again and again by blocking calls starves its own tasks, and the lock cannot help
        // it: such runs do not count for those.
        let patient = |class: Option<Class>| way == Way::Blocked || class != Some(Class::Blocking(agent));
        let waiting = NodeFiltered::from_fn(space, |node| waits(&space[node].state, agent, way));
        let waiting = EdgeFiltered::from_fn(&waiting, |edge| patient(*edge.weight()));
        let components = kosaraju_scc(&waiting);
        let fair = components.into_iter().filter(|members| is_fair(space, members, patient));
        let members = fair.min_by_key(|members| (members.len(), members.iter().min().copied()))?;
        Some(Starving { agent, way, members })
    })
}

/// Whether it waits here and has a right to be served: not away, its loop not stuck, the lock not its own.
fn waits(state: &State, id: Id, way: Way) -> bool {
    let agent = state.agent(id);
    let Some(waiter) = state.queue.find(id, way) else { return false };
    match way {
        Way::Blocked => agent.is_running() && !waiter.away && agent.hold != Hold::Inside,
        Way::Async(_) => agent.turns(),
    }
}

fn is_fair(space: &Space, members: &[NodeIndex], allowed: impl Fn(Option<Class>) -> bool) -> bool {
    let inside: HashSet<NodeIndex> = if members.len() > 1 { members.iter().copied().collect() } else { HashSet::new() };
    let always_due = members.iter().fold(u64::MAX, |due, node| due & space[*node].due.0);
    let mut taken = Classes::default();
    let mut cycles = false;
    let edges = members.iter().flat_map(|node| space.edges(*node));
    for edge in edges.filter(|edge| allowed(*edge.weight())) {
        if edge.target() == edge.source() || inside.contains(&edge.target()) {
            cycles = true;
            if let Some(class) = *edge.weight() {
                taken.add_if(true, class);
            }
        }
    }
    // Nothing due at all: the run may simply stop here.
    (cycles || always_due == 0) && always_due & !taken.0 == 0
}
