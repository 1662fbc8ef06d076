//! Which scenarios are checked when.

use super::protocol::{Deadlock, Fault};
use crate::check::Suite;

fn of(agents: usize, words: usize) -> Deadlock {
    let name = format!("deadlock search, {agents} threads, {words} mutexes");
    Deadlock { name, words, agents, fault: None }
}

pub fn suite() -> Suite {
    let quick = || vec![of(2, 2), of(3, 2)];
    let with = |fault, scenario| Deadlock { fault, ..scenario };
    Suite::new("", quick(), [quick(), vec![of(3, 3)]].concat(), Fault::ALL, |_| quick(), with)
}
