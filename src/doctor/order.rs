//! Which locks were held while others were locked: a graph, of which each cycle is an order that can deadlock.

use std::collections::VecDeque;
use std::collections::hash_map::Entry;

use rustc_hash::{FxHashMap, FxHashSet};

use super::names::{LockId, NodeId, SiteId};
use crate::agents::ThreadId;

/// No more cycles are reported.
const MOST_CYCLES: usize = 100;

/// The steps that are tried on the ways around gates, of which there may be exponentially many.
const MOST_TRIES: usize = 100_000;

/// The locks of such a way at most: it is looked for by calls inside of each other.
const LONGEST_WAY: usize = 32;

/// The number of sightings of one edge that differ in what else was held.
const MOST_SIGHTINGS: usize = 16;

/// A sighting of two locks, one held while the other was locked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Edge {
    /// The lock that was held.
    pub from: LockId,
    /// The lock that was locked meanwhile.
    pub to: LockId,
    /// The place where the one was locked.
    pub held: SiteId,
    /// The place where the other was.
    pub locked: SiteId,
    /// By which thread.
    pub thread: ThreadId,
    /// The locks that were held alone meanwhile: two edges with a gate in common are never taken at once.
    pub gates: Vec<LockId>,
}

impl Edge {
    fn shares_gate(&self, other: &Self) -> bool {
        self.gates.iter().any(|gate| other.gates.contains(gate))
    }
}

/// The graph.
#[derive(Default)]
pub struct LockOrder {
    /// The sightings of each pair, of which none was with less held than another.
    edges: FxHashMap<(NodeId, NodeId), Vec<Edge>>,
    /// Locks of one class that were held inside of each other.
    within: FxHashMap<NodeId, Edge>,
    after: FxHashMap<NodeId, Vec<NodeId>>,
}

impl LockOrder {
    /// Takes in a sighting.
    pub fn add(&mut self, from: NodeId, to: NodeId, edge: Edge) {
        if from == to {
            if edge.from != edge.to {
                self.within.entry(from).or_insert(edge);
            }
            return;
        }
        let known = self.edges.entry((from, to)).or_default();
        if known.is_empty() {
            self.after.entry(from).or_default().push(to);
        }
        let is_within = |few: &Edge, many: &Edge| few.gates.iter().all(|gate| many.gates.contains(gate));
        if known.iter().any(|other| is_within(other, &edge) || fault!(OnlyTheFirstSightingCounts)) {
            return;
        }
        known.retain(|other| !is_within(&edge, other));
        if known.len() < MOST_SIGHTINGS {
            known.push(edge);
        }
    }

    /// Forgets the orders of these locks, but for those that a report tells of.
    pub fn forget(&mut self, is_past: impl Fn(LockId) -> bool) {
        let told: FxHashSet<_> = self.cycles().into_iter().flatten().map(|edge| (edge.from, edge.to)).collect();
        for sightings in self.edges.values_mut() {
            sightings.retain(|edge| told.contains(&(edge.from, edge.to)) || !(is_past(edge.from) || is_past(edge.to)));
        }
        self.edges.retain(|_, sightings| !sightings.is_empty());
        self.after.clear();
        for (from, to) in self.edges.keys() {
            self.after.entry(*from).or_default().push(*to);
        }
    }

    /// The locks that a report may name.
    pub fn locks(&self) -> impl Iterator<Item = LockId> {
        let edges = self.edges.values().flatten().chain(self.within.values());
        edges.flat_map(|edge| [edge.from, edge.to].into_iter().chain(edge.gates.iter().copied()))
    }

    /// The first sighting of each class of which one lock was locked while another was held.
    pub fn same_class(&self) -> Vec<Edge> {
        let mut all: Vec<_> = self.within.iter().collect();
        all.sort_unstable_by_key(|(node, _)| **node);
        all.into_iter().map(|(_, edge)| edge.clone()).collect()
    }

    /// Sightings of the edges of a circle that could have been at the same time.
    fn together(&self, nodes: &[NodeId], chosen: &mut Vec<Edge>) -> bool {
        let index = chosen.len();
        if index == nodes.len() {
            return true;
        }
        let pair = (nodes[index], nodes[(index + 1) % nodes.len()]);
        for edge in self.edges.get(&pair).into_iter().flatten() {
            if chosen.iter().any(|other| other.shares_gate(edge)) && !fault!(GatesAreIgnored) {
                continue;
            }
            chosen.push(edge.clone());
            if self.together(nodes, chosen) {
                return true;
            }
            chosen.pop();
        }
        false
    }

    /// For each edge in a cycle, the shortest cycle through it, or another one if gates keep that from closing; each cycle once.
    pub fn cycles(&self) -> Vec<Vec<Edge>> {
        let mut starts: Vec<_> = self.edges.keys().copied().collect();
        starts.sort_unstable();
        let mut seen = FxHashSet::default();
        let mut tries = MOST_TRIES;
        let mut cycles = Vec::new();
        // An edge from one to another is in no cycle: else a large graph would be searched from each of its edges.
        let components = self.components();
        for (from, to) in starts {
            if cycles.len() == MOST_CYCLES {
                break;
            }
            if components[&from] != components[&to] {
                continue;
            }
            let Some(mut nodes) = self.path(to, from, &components) else { continue };
            let mut chosen = Vec::new();
            if !self.together(&nodes, &mut chosen) {
                nodes = vec![from];
                if !self.way_around(to, &mut nodes, &mut chosen, &components, &mut tries) {
                    continue;
                }
            }
            nodes.sort_unstable();
            if seen.insert(nodes) {
                // From the smallest, so that a report does not depend on the order of sightings in a table.
                let least = (0..chosen.len()).min_by_key(|index| chosen[*index].from).unwrap_or(0);
                chosen.rotate_left(least);
                cycles.push(chosen);
            }
        }
        cycles
    }

    /// The sightings of a cycle that goes on from the last of these nodes to the next and comes back to the first.
    fn way_around(
        &self,
        next: NodeId,
        nodes: &mut Vec<NodeId>,
        chosen: &mut Vec<Edge>,
        components: &FxHashMap<NodeId, NodeId>,
        tries: &mut usize,
    ) -> bool {
        let pair = (nodes[nodes.len() - 1], next);
        for edge in self.edges.get(&pair).into_iter().flatten() {
            if *tries == 0 || nodes.len() > LONGEST_WAY || chosen.iter().any(|other| other.shares_gate(edge)) {
                continue;
            }
            *tries -= 1;
            chosen.push(edge.clone());
            if next == nodes[0] {
                return true;
            }
            nodes.push(next);
            let after = self.after.get(&next).into_iter().flatten();
            let is_near = |way: &&NodeId| components[*way] == components[&next];
            let ways: Vec<_> = after.filter(|way| is_near(way) && !nodes[1..].contains(way)).collect();
            if ways.into_iter().any(|way| self.way_around(*way, nodes, chosen, components, tries)) {
                return true;
            }
            nodes.pop();
            chosen.pop();
        }
        false
    }

    /// For each node the one that stands for all with a way there and back, by Kosaraju's algorithm: no cycle leaves them.
    fn components(&self) -> FxHashMap<NodeId, NodeId> {
        let mut before: FxHashMap<NodeId, Vec<NodeId>> = FxHashMap::default();
        for (from, to) in self.edges.keys() {
            before.entry(*to).or_default().push(*from);
        }
        let mut seen = FxHashSet::default();
        let mut ended = Vec::new();
        for start in self.after.keys() {
            if !seen.insert(*start) {
                continue;
            }
            // With the ways on that are left.
            let mut way = vec![(*start, self.after.get(start).into_iter().flatten())];
            while let Some((node, left)) = way.last_mut() {
                match left.find(|next| seen.insert(**next)) {
                    Some(next) => way.push((*next, self.after.get(next).into_iter().flatten())),
                    None => {
                        ended.push(*node);
                        way.pop();
                    }
                }
            }
        }
        let mut components = FxHashMap::default();
        for first in ended.into_iter().rev() {
            let mut found = vec![first];
            while let Some(node) = found.pop() {
                if let Entry::Vacant(entry) = components.entry(node) {
                    entry.insert(first);
                    found.extend(before.get(&node).into_iter().flatten());
                }
            }
        }
        components
    }

    /// The shortest way, with both ends.
    fn path(&self, from: NodeId, to: NodeId, components: &FxHashMap<NodeId, NodeId>) -> Option<Vec<NodeId>> {
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
            for next in self.after.get(&node).into_iter().flatten() {
                if components[next] == components[&from] && !came_from.contains_key(next) {
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

    fn edge(from: LockId, to: LockId, gates: &[LockId]) -> Edge {
        Edge { from, to, held: 1, locked: 2, thread: 0, gates: gates.to_vec() }
    }

    fn cycles(edges: &[(NodeId, NodeId)]) -> Vec<Vec<LockId>> {
        let mut order = LockOrder::default();
        edges.iter().for_each(|&(from, to)| order.add(from, to, edge(from, to, &[])));
        order.cycles().into_iter().map(|cycle| cycle.into_iter().map(|edge| edge.from).collect()).collect()
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
    fn a_lock_that_is_held_at_both_edges_is_a_gate() {
        let mut order = LockOrder::default();
        order.add(1, 2, edge(1, 2, &[9]));
        order.add(2, 1, edge(2, 1, &[8, 9]));
        assert!(order.cycles().is_empty());
        order.add(2, 1, edge(2, 1, &[8]));
        assert_eq!(order.cycles().len(), 1);
    }

    #[test]
    fn an_order_of_a_lock_that_is_past_is_forgotten_whichever_of_the_two_it_is() {
        for past in [1, 2] {
            let mut order = LockOrder::default();
            for (from, to) in [(1, 2), (3, 4)] {
                order.add(from, to, edge(from, to, &[]));
            }
            order.forget(|lock| lock == past);
            assert_eq!(order.locks().collect::<Vec<_>>(), [3, 4]);
        }
    }

    #[test]
    fn a_gate_may_be_held_at_any_two_edges_of_a_cycle() {
        for (one, other) in [(0, 1), (1, 2), (0, 2)] {
            let mut order = LockOrder::default();
            for (at, (from, to)) in [(1, 2), (2, 3), (3, 1)].into_iter().enumerate() {
                let gates = if at == one || at == other { &[9][..] } else { &[8 + 8 * at as LockId] };
                order.add(from, to, edge(from, to, gates));
            }
            assert!(order.cycles().is_empty(), "{one} and {other}");
        }
    }

    #[test]
    fn a_longer_cycle_is_found_where_gates_keep_the_shorter_ones_from_closing() {
        let mut order = LockOrder::default();
        for (from, to, gate) in [(1, 2, 9), (2, 1, 9), (2, 3, 8), (3, 2, 8), (3, 1, 7), (1, 3, 7)] {
            order.add(from, to, edge(from, to, &[gate]));
        }
        let nodes = |cycle: &Vec<Edge>| cycle.iter().map(|edge| edge.from).collect::<Vec<_>>();
        assert_eq!(order.cycles().iter().map(nodes).collect::<Vec<_>>(), [[1, 2, 3]]);
        order.add(1, 3, edge(1, 3, &[]));
        assert_eq!(order.cycles().iter().map(nodes).collect::<Vec<_>>(), [vec![1, 2, 3], vec![1, 3]]);
    }

    #[test]
    fn a_cycle_goes_around_a_lock_through_which_gates_keep_every_way_from_closing() {
        let mut order = LockOrder::default();
        let mut add = |from, to, gates: &[LockId]| order.add(from, to, edge(from, to, gates));
        for at in 1..=4 {
            add(at, 5, &[9]);
            add(5, at, &[9]);
            add(at, at % 4 + 1, &[]);
        }
        let pairs = |cycle: &Vec<Edge>| cycle.iter().map(|edge| (edge.from, edge.to)).collect::<Vec<_>>();
        assert_eq!(order.cycles().iter().map(pairs).collect::<Vec<_>>(), [[(1, 2), (2, 3), (3, 4), (4, 1)]]);
    }

    #[test]
    fn a_long_way_between_gated_pairs_is_no_cycle_and_not_followed_to_its_end() {
        let mut order = LockOrder::default();
        let last = 2_000;
        for node in 1..last {
            order.add(node, node + 1, edge(node, node + 1, &[]));
        }
        for (from, to, gate) in [(0, 1, 9_001), (1, 0, 9_001), (last, last + 1, 9_002), (last + 1, last, 9_002)] {
            order.add(from, to, edge(from, to, &[gate]));
        }
        let look = move || assert!(order.cycles().is_empty());
        let thread = std::thread::Builder::new().stack_size(128 << 10).spawn(look);
        assert!(thread.is_ok_and(|thread| thread.join().is_ok()));
    }

    #[test]
    fn a_long_way_from_one_cycle_to_another_is_not_searched_from_each_of_its_edges() {
        let last = 100_000;
        let way = (1..last).map(|node| (node, node + 1));
        let all: Vec<_> = way.chain([(2, 1), (last, last - 1)]).collect();
        assert_eq!(cycles(&all), [[1, 2], [last - 1, last]]);
    }

    #[test]
    fn a_sighting_with_fewer_gates_counts_after_however_many_with_more() {
        let mut order = LockOrder::default();
        for gate in 0..2 * MOST_SIGHTINGS as LockId {
            order.add(1, 2, edge(1, 2, &[9, 10 + gate]));
        }
        order.add(2, 1, edge(2, 1, &[9]));
        assert!(order.cycles().is_empty());
        order.add(1, 2, edge(1, 2, &[]));
        assert_eq!(order.cycles().len(), 1);
    }

    #[test]
    fn locks_of_one_class_inside_of_each_other_are_listed_once() {
        let mut order = LockOrder::default();
        for (class, from, to) in [(9, 7, 8), (1, 5, 5), (1, 5, 6), (1, 6, 5), (3, 4, 4)] {
            order.add(class, class, edge(from, to, &[]));
        }
        assert!(order.cycles().is_empty());
        assert_eq!(order.same_class(), [edge(5, 6, &[]), edge(7, 8, &[])]);
    }
}
