//! Every live waiter is served: no endless fair run in which it waits all the time.
//!
//! Such a run ends up in one strongly connected component of the states in which the waiter waits. The component is fair
//! if each class that is due in all its states is also taken within it.

use std::collections::HashSet;

use petgraph::algo::kosaraju_scc;
use petgraph::graph::NodeIndex;
use petgraph::visit::{EdgeFiltered, EdgeRef, NodeFiltered};

use super::explore::Space;
use super::fairness::{Class, Classes};
use super::protocol::Protocol;

/// A waiter that may wait for ever.
pub struct Starving<W> {
    pub waiter: W,
    /// The endless run: states among which it can go on for ever.
    pub members: Vec<NodeIndex>,
}

pub fn find_starving<P: Protocol>(protocol: &P, space: &Space<P>) -> Option<Starving<P::Waiter>> {
    protocol.waiters().into_iter().find_map(|waiter| {
        let counts = |class: Option<Class>| protocol.counts(waiter, class);
        let waiting = NodeFiltered::from_fn(space, |node| protocol.waits(&space[node].state, waiter));
        let waiting = EdgeFiltered::from_fn(&waiting, |edge| counts(*edge.weight()));
        let components = kosaraju_scc(&waiting);
        let fair = components.into_iter().filter(|members| is_fair(space, members, counts));
        let members = fair.min_by_key(|members| (members.len(), members.iter().min().copied()))?;
        Some(Starving { waiter, members })
    })
}

fn is_fair<P: Protocol>(space: &Space<P>, members: &[NodeIndex], counts: impl Fn(Option<Class>) -> bool) -> bool {
    let inside: HashSet<NodeIndex> = if members.len() > 1 { members.iter().copied().collect() } else { HashSet::new() };
    let always_due = members.iter().fold(u64::MAX, |due, node| due & space[*node].due.0);
    let mut taken = Classes::default();
    let mut cycles = false;
    let edges = members.iter().flat_map(|node| space.edges(*node));
    for edge in edges.filter(|edge| counts(*edge.weight())) {
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
