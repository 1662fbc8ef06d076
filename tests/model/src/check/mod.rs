//! Checks one scenario: the safety properties with stateright's checker, liveness on the graph of all states.
//! Nothing here knows what is modelled.

mod explore;
mod fairness;
mod liveness;
mod protocol;
mod report;

use std::fmt::Debug;
use std::num::NonZeroUsize;
use std::thread::available_parallelism;

use petgraph::graph::NodeIndex;
use stateright::{Checker, HasDiscoveries};

pub use fairness::{Class, Classes};
pub use protocol::Protocol;
pub use report::Outcome;

use explore::{Space, explore, way_to};
use liveness::find_starving;

/// A protocol in a scenario, whichever it is.
pub trait Case {
    fn name(&self) -> String;
    fn check(&self) -> Outcome;
}

/// A fault, and where it is looked for, the cheapest first: it must fail in one of these.
pub struct Mutant {
    pub name: String,
    pub grounds: Vec<Box<dyn Case>>,
}

/// The checks of a model.
pub struct Suite {
    pub quick: Vec<Box<dyn Case>>,
    pub full: Vec<Box<dyn Case>>,
    pub mutants: Vec<Mutant>,
}

impl Suite {
    /// Scenarios without a fault, and `grounds` on which each of `faults` is looked for; `with` makes a model of a scenario.
    /// `prefix` tells the faults from those of other models.
    pub fn new<S, F: Copy + Debug, P: Protocol + 'static>(
        prefix: &str,
        quick: Vec<S>,
        full: Vec<S>,
        faults: impl IntoIterator<Item = F>,
        grounds: impl Fn(F) -> Vec<S>,
        with: impl Fn(Option<F>, S) -> P,
    ) -> Self {
        let cases = |scenarios: Vec<S>, fault| -> Vec<Box<dyn Case>> {
            scenarios.into_iter().map(|scenario| Box::new(with(fault, scenario)) as Box<dyn Case>).collect()
        };
        let mutant = |fault| Mutant { name: format!("{prefix}{fault:?}"), grounds: cases(grounds(fault), Some(fault)) };
        let mutants = faults.into_iter().map(mutant).collect();
        Self { quick: cases(quick, None), full: cases(full, None), mutants }
    }

    /// And this model must fail without any fault: it lacks what the others rely on.
    #[must_use]
    pub fn must_fail(mut self, name: &str, model: impl Protocol + 'static) -> Self {
        self.mutants.push(Mutant { name: name.to_string(), grounds: vec![Box::new(model)] });
        self
    }
}

impl<P: Protocol> Case for P {
    fn name(&self) -> String {
        Protocol::name(self).to_string()
    }

    fn check(&self) -> Outcome {
        if self.is_live() { live(self) } else { safe(self) }
    }
}

fn safe<P: Protocol>(protocol: &P) -> Outcome {
    let threads = available_parallelism().map_or(1, NonZeroUsize::get);
    let builder = protocol.clone().checker().threads(threads).finish_when(HasDiscoveries::AnyFailures);
    let checker = builder.spawn_bfs().join();
    if checker.discoveries().is_empty() {
        return Outcome::Verified { states: checker.unique_state_count() };
    }
    shortest_failure(protocol)
}

/// Stateright returns some counterexample; people want the shortest.
fn shortest_failure<P: Protocol>(protocol: &P) -> Outcome {
    let properties = protocol.properties();
    let fails = |state: &P::State| properties.iter().find(|p| !(p.condition)(protocol, state));
    let space = explore(protocol, |state| fails(state).is_some());
    let last = NodeIndex::new(space.node_count() - 1);
    let property = fails(&space[last].state).map_or("not found again", |p| p.name).to_string();
    Outcome::Failed { property, trace: lines_to(protocol, &space, last) }
}

fn lines_to<P: Protocol>(protocol: &P, space: &Space<P>, node: NodeIndex) -> Vec<String> {
    let line = |(step, state): &(P::Action, &P::State)| report::line(*step, &protocol.show(state));
    way_to(space, node).iter().map(line).collect()
}

fn live<P: Protocol>(protocol: &P) -> Outcome {
    let space = explore(protocol, |_| false);
    let Some(starving) = find_starving(protocol, &space) else {
        return Outcome::Verified { states: space.node_count() };
    };
    let entry = starving.members.iter().copied().min().unwrap_or_default();
    let mut trace = lines_to(protocol, &space, entry);
    let size = starving.members.len();
    trace.push(format!("-- and round for ever among {size} states, such as"));
    trace.extend(round(protocol, &space, entry, &starving.members));
    let property = format!("{:?} may wait for ever", starving.waiter);
    Outcome::Failed { property, trace }
}

/// Some of the states of an endless run.
fn round<P: Protocol>(protocol: &P, space: &Space<P>, entry: NodeIndex, members: &[NodeIndex]) -> Vec<String> {
    let others = members.iter().filter(|node| **node != entry);
    others.take(24).map(|node| report::line_of_round(&protocol.show(&space[*node].state))).collect()
}
