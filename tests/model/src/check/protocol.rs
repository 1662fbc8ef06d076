//! A modelled protocol, as it describes itself, so that it can be checked.

use std::fmt::Debug;
use std::hash::Hash;

use stateright::Model;

use super::fairness::{Class, Classes};

/// One scenario of one protocol, with at most one fault.
pub trait Protocol:
    Model<State: Clone + Debug + Eq + Hash + Send + Sync, Action: Copy + Debug + Eq + Hash + Send + Sync>
    + Clone
    + Send
    + Sync
    + 'static
{
    /// Somebody who waits, and is to be served.
    type Waiter: Copy + Debug + PartialEq;

    fn name(&self) -> &str;

    /// Whether liveness is checked, and not only the safety properties. Else the methods up to `waits` are of no use.
    fn is_live(&self) -> bool {
        false
    }

    /// Which class a step belongs to, if it is one that comes by itself.
    fn class(&self, _step: Self::Action) -> Option<Class> {
        None
    }

    /// Returns what is sure to go on some time from this state.
    fn due(&self, _state: &Self::State) -> Classes {
        Classes::default()
    }

    /// The waiters to look at: of those that are alike, one speaks for all.
    fn waiters(&self) -> Vec<Self::Waiter> {
        Vec::new()
    }

    /// Whether it waits here and has a right to be served.
    fn waits(&self, _state: &Self::State, _waiter: Self::Waiter) -> bool {
        false
    }

    /// Whether a run with steps of this class counts against the protocol.
    fn counts(&self, _waiter: Self::Waiter, _class: Option<Class>) -> bool {
        true
    }

    fn show(&self, state: &Self::State) -> String;
}
