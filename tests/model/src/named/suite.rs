//! Which scenarios are checked when.

use super::fault::Fault;
use super::setting::Named;
use super::setting::Role::{Alone, Shares, Steals};
use crate::check::Suite;

fn quick_scenarios() -> Vec<Named> {
    vec![
        Named::of(&[Alone, Alone, Alone], 2, 1),
        Named::of(&[Alone, Shares, Shares], 2, 1),
        Named::of(&[Alone, Alone, Steals], 2, 1),
        Named::of(&[Shares, Shares, Steals], 2, 1),
        Named::of(&[Steals, Steals, Alone], 2, 2),
    ]
}

fn full_scenarios() -> Vec<Named> {
    let large = vec![
        Named::of(&[Alone, Alone, Shares, Shares], 2, 1),
        Named::of(&[Alone, Shares, Shares, Steals], 2, 1),
        Named::of(&[Alone, Alone, Steals], 3, 2),
    ];
    quick_scenarios().into_iter().chain(large).collect()
}

pub fn suite() -> Suite {
    let with = |fault, scenario| Named { fault, ..scenario };
    Suite::new("names: ", quick_scenarios(), full_scenarios(), Fault::ALL, |_| quick_scenarios(), with)
}
