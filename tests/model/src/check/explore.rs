//! The graph of all reachable states. Stateright's checker keeps no edges, and liveness needs them.

use std::hash::{BuildHasher, BuildHasherDefault};

use petgraph::Directed;
use petgraph::graph::{Graph, NodeIndex};
use rustc_hash::{FxHashMap, FxHasher};

use super::fairness::{Class, Classes};
use super::protocol::Protocol;

/// A state, and what is sure to go on from it.
pub struct Node<P: Protocol> {
    pub state: P::State,
    pub due: Classes,
    /// The first way that led here.
    pub parent: Option<(NodeIndex, P::Action)>,
}

/// The edges say only of which class their step is.
pub type Space<P> = Graph<Node<P>, Option<Class>, Directed, u32>;

/// Breadth first, so that parents tell a shortest way. Ends early at a state where `stop` says so, which is then the last.
pub fn explore<P: Protocol>(protocol: &P, stop: impl Fn(&P::State) -> bool) -> Space<P> {
    let mut space = Space::<P>::default();
    let hasher = BuildHasherDefault::<FxHasher>::default();
    // Keyed by hash, to hold each state once; the rare others with the same hash follow.
    let mut known: FxHashMap<u64, Vec<NodeIndex>> = FxHashMap::default();
    let mut steps = Vec::new();

    for state in protocol.init_states() {
        known.insert(hasher.hash_one(&state), vec![add(&mut space, protocol, state, None)]);
    }
    let mut next = 0;
    while next < space.node_count() {
        let from = NodeIndex::new(next);
        protocol.actions(&space[from].state, &mut steps);
        for step in steps.drain(..) {
            let Some(state) = protocol.next_state(&space[from].state, step) else { continue };
            let same_hash = known.entry(hasher.hash_one(&state)).or_default();
            let found = same_hash.iter().copied().find(|known| space[*known].state == state);
            let to = found.unwrap_or_else(|| {
                let new = add(&mut space, protocol, state, Some((from, step)));
                same_hash.push(new);
                new
            });
            space.add_edge(from, to, protocol.class(step));
            if to.index() + 1 == space.node_count() && stop(&space[to].state) {
                return space;
            }
        }
        next += 1;
    }
    space
}

fn add<P: Protocol>(
    space: &mut Space<P>,
    protocol: &P,
    state: P::State,
    parent: Option<(NodeIndex, P::Action)>,
) -> NodeIndex {
    let due = protocol.due(&state);
    space.add_node(Node { state, due, parent })
}

/// The steps and states from the start to this one.
pub fn way_to<P: Protocol>(space: &Space<P>, mut node: NodeIndex) -> Vec<(P::Action, &P::State)> {
    let mut way = Vec::new();
    while let Some((parent, step)) = space[node].parent {
        way.push((step, &space[node].state));
        node = parent;
    }
    way.reverse();
    way
}
