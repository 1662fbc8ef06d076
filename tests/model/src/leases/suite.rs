//! Which scenarios are checked when.

use super::fault::Fault;
use super::protocol::Leases;
use crate::check::Suite;

fn scenario(requests: u8, [lease, end]: [u8; 2], losses: u8, doubles: u8) -> Leases {
    let name = format!("leases requests={requests} lease={lease} end={end} losses={losses} doubles={doubles}");
    Leases { name, clients: 2, requests, lease, end, losses, doubles, forgets: 0, fault: None }
}

/// With a server that forgets.
fn forgetful(requests: u8, [lease, end]: [u8; 2], doubles: u8) -> Leases {
    let plain = scenario(requests, [lease, end], 0, doubles);
    Leases { name: format!("{} forgets=1", plain.name), forgets: 1, ..plain }
}

fn quick_scenarios() -> Vec<Leases> {
    vec![scenario(1, [2, 1], 0, 0), scenario(1, [1, 2], 1, 0), forgetful(1, [1, 0], 1)]
}

fn full_scenarios() -> Vec<Leases> {
    let large = vec![scenario(1, [1, 2], 0, 1), scenario(1, [2, 3], 1, 0), forgetful(1, [2, 1], 1)];
    quick_scenarios().into_iter().chain(large).collect()
}

pub fn suite() -> Suite {
    let grounds = |fault| match fault {
        Fault::AnyAnswerWillDo | Fault::AnyGrantWillDo | Fault::TakesMessageLate => vec![scenario(2, [1, 1], 0, 0)],
        Fault::AnyFenceWillDo => vec![forgetful(1, [1, 0], 1)],
        Fault::AnswersInAnyOrder => vec![scenario(1, [1, 2], 0, 1)],
        _ => quick_scenarios(),
    };
    let with = |fault, scenario| Leases { fault, ..scenario };
    Suite::new("leases: ", quick_scenarios(), full_scenarios(), Fault::ALL, grounds, with)
}
