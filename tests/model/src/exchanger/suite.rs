//! Which scenarios are checked when.

use super::fault::Fault;
use super::protocol::Exchanger;
use crate::check::Suite;

fn scenario(threads: u8, calls: u8, deaths: u8) -> Exchanger {
    let name = format!("exchanger of {threads}, calls={calls} deaths={deaths}");
    Exchanger { name, threads, calls, deaths, fault: None }
}

fn quick_scenarios() -> Vec<Exchanger> {
    vec![scenario(2, 2, 1), scenario(3, 2, 1), scenario(4, 1, 2)]
}

pub fn suite() -> Suite {
    let with = |fault, scenario| Exchanger { fault, ..scenario };
    Suite::new(
        "exchanger: ",
        quick_scenarios(),
        [quick_scenarios(), vec![scenario(3, 3, 1), scenario(4, 2, 0)]].concat(),
        Fault::ALL,
        |_| quick_scenarios(),
        with,
    )
}
