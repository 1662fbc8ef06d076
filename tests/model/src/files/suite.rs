//! Which scenarios are checked when.

use super::fault::Fault;
use super::protocol::Files;
use crate::check::Suite;

const ALONE: bool = false;
const SHARES: bool = true;

fn scenario(shares: &[bool], stops: u8, quits: bool, live: bool) -> Files {
    let processes: String = shares.iter().map(|shares| if *shares { 'S' } else { 'A' }).collect();
    let quitting = if quits { " quits" } else { "" };
    let name = format!("files {processes} stops={stops}{quitting}{}", if live { " LIVE" } else { "" });
    Files { name, shares: shares.to_vec(), stops, quits, live, fault: None }
}

fn quick_scenarios() -> Vec<Files> {
    vec![
        scenario(&[ALONE, ALONE, SHARES], 1, true, false),
        scenario(&[ALONE, SHARES, SHARES], 1, true, false),
        scenario(&[ALONE, ALONE, ALONE], 1, true, true),
        scenario(&[ALONE, SHARES, SHARES], 1, true, true),
        scenario(&[ALONE, ALONE, SHARES, SHARES], 1, false, true),
    ]
}

fn full_scenarios() -> Vec<Files> {
    let large = vec![
        scenario(&[ALONE, ALONE, SHARES, SHARES], 2, true, false),
        scenario(&[ALONE, ALONE, SHARES, SHARES], 2, true, true),
        scenario(&[ALONE, SHARES, SHARES, SHARES], 2, false, true),
    ];
    quick_scenarios().into_iter().chain(large).collect()
}

pub fn suite() -> Suite {
    let with = |fault, scenario| Files { fault, ..scenario };
    Suite::new("files: ", quick_scenarios(), full_scenarios(), Fault::ALL, |_| quick_scenarios(), with)
}
