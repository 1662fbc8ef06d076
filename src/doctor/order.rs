//! Which locks were held while others were locked: a graph, of which each cycle is an order that can deadlock.

use std::collections::VecDeque;

use rustc_hash::{FxHashMap, FxHashSet};

use super::names::{LockId, NodeId, SiteId};
use crate::agents::ThreadId;

/// No more cycles are told of.
const MOST_CYCLES: usize = 100;

/// The first sighting of two locks, one held while the other was locked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Edge {
    /// What was held.
    pub from: LockId,
    /// What was locked meanwhile.
    pub to: LockId,
    /// Where the one was locked.
    pub held: SiteId,
    /// Where the other was.
    pub locked: SiteId,
    /// By which thread.
    pub thread: ThreadId,
}

/// The graph.
#[derive(Default)]
pub struct Order {
    edges: FxHashMap<(NodeId, NodeId), Edge>,
    after: FxHashMap<NodeId, Vec<NodeId>>,
}

impl Order {
    /// Takes in a sighting. One whose place was not known gets one from a later sighting.
    pub fn add(&mut self, from: NodeId, to: NodeId, edge: Edge) {
        if from == to {
            return;
        }
        if let Some(known) = self.edges.get_mut(&(from, to)) {
            if (known.held == 0 && edge.held != 0) || (known.locked == 0 && edge.locked != 0) {
                *known = edge;
            }
            return;
        }
        self.edges.insert((from, to), edge);
        self.after.entry(from).or_default().push(to);
    }

    /// Whether it is known, with both places.
    pub fn is_complete(&self, from: NodeId, to: NodeId) -> bool {
        self.edges.get(&(from, to)).is_some_and(|edge| edge.held != 0 && edge.locked != 0)
    }

    /// For each edge in a cycle, the shortest cycle through it; each cycle once.
    pub fn cycles(&self) -> Vec<Vec<Edge>> {
        let mut starts: Vec<_> = self.edges.keys().copied().collect();
        starts.sort_unstable();
        let mut seen = FxHashSet::default();
        let mut cycles = Vec::new();
        // What leads nowhere is looked at once: without it a large graph in order would be searched from each of its edges.
        let alive = self.alive();
        for (from, to) in starts {
            if cycles.len() == MOST_CYCLES {
                break;
            }
            if !alive.contains(&from) || !alive.contains(&to) {
                continue;
            }
            let Some(nodes) = self.path(to, from, &alive) else { continue };
            let mut key = nodes.clone();
            key.sort_unstable();
            if !seen.insert(key) {
                continue;
            }
            // From the smallest, so that a report does not depend on the order of sightings in a table.
            let least = nodes.iter().enumerate().min_by_key(|(_, node)| **node).map_or(0, |(index, _)| index);
            let at = |index: usize| nodes[(least + index) % nodes.len()];
            cycles.push((0..nodes.len()).map(|index| self.edges[&(at(index), at(index + 1))]).collect());
        }
        cycles
    }

    /// The nodes that are left when those without a way in or out are taken away, again and again.
    fn alive(&self) -> FxHashSet<NodeId> {
        let mut outs: FxHashMap<NodeId, usize> = FxHashMap::default();
        let mut before: FxHashMap<NodeId, Vec<NodeId>> = FxHashMap::default();
        for (from, to) in self.edges.keys() {
            *outs.entry(*from).or_default() += 1;
            outs.entry(*to).or_default();
            before.entry(*to).or_default().push(*from);
        }
        let mut ends: Vec<NodeId> = outs.iter().filter(|(_, count)| **count == 0).map(|(node, _)| *node).collect();
        while let Some(end) = ends.pop() {
            outs.remove(&end);
            for from in before.get(&end).into_iter().flatten() {
                if let Some(count) = outs.get_mut(from) {
                    *count -= 1;
                    if *count == 0 {
                        ends.push(*from);
                    }
                }
            }
        }
        outs.into_keys().collect()
    }

    /// The shortest way, with both ends.
    fn path(&self, from: NodeId, to: NodeId, alive: &FxHashSet<NodeId>) -> Option<Vec<NodeId>> {
        let mut came_from = FxHashMap::default();
        let mut queue = VecDeque::from([from]);
        came_from.insert(from, from);
        while let Some(node) = queue.pop_front() {
            if node == to {
                let mut nodes = vec![to];
                let mut at = to;
                while at != from {
                    at = came_from[&at];
                    nodes.push(at);
                }
                nodes.reverse();
                return Some(nodes);
            }
            for next in self.after.get(&node).into_iter().flatten().filter(|next| alive.contains(next)) {
                if !came_from.contains_key(next) {
                    came_from.insert(*next, node);
                    queue.push_back(*next);
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(edges: &[(NodeId, NodeId)]) -> Order {
        let mut order = Order::default();
        for (from, to) in edges {
            order.add(*from, *to, Edge { from: *from, to: *to, held: 1, locked: 2, thread: 0 });
        }
        order
    }

    fn cycles(edges: &[(NodeId, NodeId)]) -> Vec<Vec<LockId>> {
        graph(edges).cycles().into_iter().map(|cycle| cycle.into_iter().map(|edge| edge.from).collect()).collect()
    }

    #[test]
    fn two_orders_of_two_locks_are_one_cycle() {
        assert_eq!(cycles(&[(1, 2), (2, 1)]), [[1, 2]]);
    }

    #[test]
    fn a_cycle_of_any_length_is_found_beside_edges_that_lead_nowhere() {
        assert_eq!(cycles(&[(9, 3), (3, 1), (1, 4), (4, 5), (5, 3), (5, 8)]), [[1, 4, 5, 3]]);
    }

    #[test]
    fn consistent_orders_have_no_cycle() {
        let all: Vec<_> = (0..20).flat_map(|from| (from + 1..20).map(move |to| (from, to))).collect();
        assert!(cycles(&all).is_empty());
    }

    #[test]
    fn two_cycles_through_one_lock_are_two() {
        assert_eq!(cycles(&[(1, 2), (2, 1), (2, 3), (3, 2)]), [[1, 2], [2, 3]]);
    }

    #[test]
    fn a_class_has_no_order_within() {
        assert!(cycles(&[(1, 1)]).is_empty());
    }

    #[test]
    fn a_later_sighting_gives_the_place_that_the_first_did_not_know() {
        let mut order = Order::default();
        order.add(1, 2, Edge { from: 1, to: 2, held: 0, locked: 7, thread: 0 });
        assert!(!order.is_complete(1, 2));
        order.add(1, 2, Edge { from: 1, to: 2, held: 6, locked: 7, thread: 0 });
        assert!(order.is_complete(1, 2));
    }
}
