//! Which scenarios are checked when.

use super::fault::Fault;
use super::protocol::Sessions;
use super::state::Client;
use crate::check::Suite;

const A: u8 = 0;
const B: u8 = 1;

/// Without time, ends, cuts and withdrawals.
fn scenario(name: &str, requests: &[(Client, u8)]) -> Sessions {
    Sessions {
        name: format!("sessions {name}"),
        clients: requests.iter().map(|(client, _)| client + 1).max().unwrap_or(0),
        requests: requests.to_vec(),
        shared: &[],
        tries: &[],
        fenced: false,
        ends: 0,
        cuts: 0,
        quits: 0,
        timed: false,
        sure: 1,
        end: 1,
        live: false,
        stays: None,
        held: None,
        fault: None,
    }
}

const TWO: [(Client, u8); 2] = [(0, A), (1, A)];
const THREE: [(Client, u8); 3] = [(0, A), (0, A), (1, A)];
const FOUR: [(Client, u8); 4] = [(0, A), (0, A), (0, A), (1, A)];
const NAMES: [(Client, u8); 4] = [(0, A), (0, B), (1, A), (1, B)];

fn quick_scenarios() -> Vec<Sessions> {
    vec![
        Sessions { ends: 1, quits: 1, ..scenario("ends=1 quits=1", &TWO) },
        Sessions { ends: 1, fenced: true, ..scenario("fenced ends=1", &TWO) },
        Sessions { cuts: 1, timed: true, sure: 1, end: 1, ..scenario("cuts=1 time=1", &TWO) },
        Sessions { quits: 1, ..scenario("next quits=1", &THREE) },
        Sessions { cuts: 1, live: true, ..scenario("cuts=1 LIVE", &TWO) },
        Sessions { quits: 1, ends: 1, stays: Some(1), live: true, ..scenario("stays quits=1 ends=1 LIVE", &TWO) },
        Sessions { quits: 1, live: true, ..scenario("next quits=1 LIVE", &THREE) },
        Sessions { shared: &[0, 1, 2], ..scenario("shared", &THREE) },
        Sessions { shared: &[0, 1], quits: 1, ..scenario("shared and alone quits=1", &THREE) },
        Sessions { shared: &[0, 1], live: true, ..scenario("shared and alone LIVE", &THREE) },
        Sessions { tries: &[1], quits: 1, ..scenario("try quits=1", &THREE) },
        Sessions { shared: &[0, 1], tries: &[2], held: Some(3), ..scenario("shared, then a try", &FOUR) },
        Sessions { held: Some(2), ..scenario("names", &NAMES) },
        Sessions { held: Some(2), quits: 1, ..scenario("names quits=1", &NAMES) },
    ]
}

fn full_scenarios() -> Vec<Sessions> {
    let large = vec![
        Sessions { ends: 2, quits: 1, fenced: true, ..scenario("fenced ends=2 quits=1", &TWO) },
        Sessions { cuts: 1, quits: 1, timed: true, ..scenario("cuts=1 quits=1 time=1", &TWO) },
        Sessions { ends: 1, cuts: 1, live: true, ..scenario("ends=1 cuts=1 LIVE", &TWO) },
        Sessions { ends: 1, quits: 1, ..scenario("next ends=1 quits=1", &THREE) },
    ];
    quick_scenarios().into_iter().chain(large).collect()
}

pub fn suite() -> Suite {
    let with = |fault, scenario| Sessions { fault, ..scenario };
    let grounds = |fault| match fault {
        Fault::NoHomeNoLook => vec![Sessions { ends: 1, cuts: 1, live: true, ..scenario("ends=1 cuts=1 LIVE", &TWO) }],
        _ => quick_scenarios(),
    };
    Suite::new("sessions: ", quick_scenarios(), full_scenarios(), Fault::ALL, grounds, with)
}
