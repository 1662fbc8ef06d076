//! Which scenarios are checked when.

use super::fault::Fault;
use super::setting::Notified;
use super::setting::Role::{Notifies, Puts, Sets, Takes, Waits};
use crate::check::Suite;

fn quick_scenarios() -> Vec<Notified> {
    vec![
        Notified::of(&[Waits(1), Waits(1), Waits(1), Notifies(2, 1)]).deaths(2).quits(),
        Notified::of(&[Waits(2), Waits(1), Notifies(2, 1), Notifies(1, 2)]).deaths(1).quits(),
        Notified::of(&[Waits(1), Waits(1), Waits(1), Waits(1), Notifies(3, 1)]).deaths(2),
        Notified::of(&[Waits(2), Waits(1), Sets]).deaths(1),
        Notified::of(&[Takes(1), Takes(1), Puts(2)]).deaths(1).quits(),
        Notified::of(&[Takes(1), Takes(1), Takes(1), Puts(2)]).deaths(1),
    ]
}

fn full_scenarios() -> Vec<Notified> {
    let large = vec![
        Notified::of(&[Waits(1), Waits(1), Waits(1), Waits(1), Notifies(3, 1)]).deaths(2).quits(),
        Notified::of(&[Waits(2), Waits(2), Waits(1), Notifies(3, 1)]).deaths(2).quits(),
        Notified::of(&[Takes(1), Takes(1), Takes(1), Puts(3)]).deaths(1).quits(),
    ];
    quick_scenarios().into_iter().chain(large).collect()
}

pub fn suite() -> Suite {
    let with = |fault, scenario| Notified { fault, ..scenario };
    Suite::new("", quick_scenarios(), full_scenarios(), Fault::ALL, |_| quick_scenarios(), with)
}
