//! Checks one scenario: the safety properties with stateright's checker, liveness on the graph.

use std::num::NonZeroUsize;
use std::thread::available_parallelism;

use petgraph::graph::NodeIndex;
use stateright::{Checker, HasDiscoveries, Model};

use crate::explore::{Space, explore, way_to};
use crate::liveness::find_starving;
use crate::protocol::Protocol;
use crate::report::{Outcome, line, show};
use crate::state::State;

/// Safety, then liveness where the scenario asks for it.
pub fn check(protocol: &Protocol) -> Outcome {
    if protocol.scenario.liveness { live(protocol) } else { safe(protocol) }
}

pub fn safe(protocol: &Protocol) -> Outcome {
    let threads = available_parallelism().map_or(1, NonZeroUsize::get);
    let builder = protocol.clone().checker().threads(threads).finish_when(HasDiscoveries::AnyFailures);
    let checker = builder.spawn_bfs().join();
    if checker.discoveries().is_empty() {
        return Outcome::Verified { states: checker.unique_state_count() };
    }
    shortest_failure(protocol)
}

/// Stateright tells some counterexample; people want the shortest.
fn shortest_failure(protocol: &Protocol) -> Outcome {
    let properties = protocol.properties();
    let fails = |state: &State| properties.iter().find(|p| !(p.condition)(protocol, state));
    let space = explore(protocol, |state| fails(state).is_some());
    let last = NodeIndex::new(space.node_count() - 1);
    let property = fails(&space[last].state).map_or("not found again", |p| p.name).to_string();
    Outcome::Failed { property, trace: lines_to(&space, last) }
}

fn lines_to(space: &Space, node: NodeIndex) -> Vec<String> {
    way_to(space, node).iter().map(|(step, state)| line(*step, state)).collect()
}

pub fn live(protocol: &Protocol) -> Outcome {
    let space = explore(protocol, |_| false);
    let Some(starving) = find_starving(protocol, &space) else {
        return Outcome::Verified { states: space.node_count() };
    };
    let entry = starving.members.iter().copied().min().unwrap_or_default();
    let mut trace = lines_to(&space, entry);
    let size = starving.members.len();
    trace.push(format!("-- and round for ever among {size} states, such as"));
    trace.extend(round(&space, entry, &starving.members));
    let property = format!("{} {:?} may wait for ever", starving.agent, starving.way);
    Outcome::Failed { property, trace }
}

/// Some of the states of an endless run.
fn round(space: &Space, entry: NodeIndex, members: &[NodeIndex]) -> Vec<String> {
    members.iter().filter(|node| **node != entry).take(12).map(|node| show(&space[*node].state)).collect()
}
