//! Which scenarios are checked when.

use super::fault::Fault;
use super::scenario::{B, L, L2, Scenario, X, X2};
use super::setting::Barging;
use crate::check::Suite;

/// Returns the scenarios that CI runs.
fn quick_scenarios() -> Vec<Scenario> {
    vec![
        // Each part of the protocol by itself.
        Scenario::of(&[B, B]).away().deaths(2),
        Scenario::of(&[B, B, L]).away().stalls().tries().deaths(1),
        Scenario::of(&[B, L2]).away().stalls().tries().deaths(1),
        Scenario::of(&[X, L2]).away().stalls().tries().deaths(1),
        Scenario::of(&[X, B, L]).away().stalls().deaths(1),
        Scenario::of(&[X, X]).away().stalls().tries().deaths(1),
        // Two blocking and two asynchronous waiters.
        Scenario::of(&[B, B, L2]).away().stalls().deaths(1),
        Scenario::of(&[B, B, L, L]).away().deaths(1),
        // Before they sleep, they look on.
        Scenario::of(&[B, B, L]).spins().away().stalls().deaths(1),
        Scenario::of(&[X, L]).spins().split_offers().patient().deaths(1),
        // Between the steps of a section, and of an offer.
        Scenario::of(&[B, B, L]).split_sections().away().deaths(1),
        Scenario::of(&[X, B]).split_sections().away().stalls().tries().deaths(2),
        Scenario::of(&[B, L, L]).split_offers().patient().deaths(1),
        Scenario::of(&[X, L]).split_offers().deaths(1),
        Scenario::of(&[B, B, L]).split_sections().split_offers().deaths(1),
        Scenario::of(&[B, L2]).split_offers().other_words().stalls().deaths(1),
        // Every waiter is served.
        Scenario::of(&[B, B, L]).away().stalls().deaths(1).short_turns().liveness(),
        Scenario::of(&[B, B, L2]).away().stalls().short_turns().liveness(),
        Scenario::of(&[B, B, B]).spins().away().liveness(),
        Scenario::of(&[B, B, L]).spins().stalls().short_turns().liveness(),
        Scenario::of(&[B, L2]).spins().split_offers().stalls().short_turns().liveness(),
        Scenario::of(&[B, B, L, L]).stalls().short_turns().liveness(),
        Scenario::of(&[X, B, L]).away().stalls().short_turns().liveness(),
        Scenario::of(&[X, X]).away().stalls().tries().short_turns().liveness(),
        Scenario::of(&[B, L, L]).split_offers().patient().short_turns().liveness(),
        Scenario::of(&[B, L2]).split_offers().stalls().short_turns().liveness(),
        Scenario::of(&[B, B, L]).away().stalls().patient().short_turns().liveness(),
        // ... also where turns are longer than a lease, if holds are short, or leases grow since nobody blocks.
        Scenario::of(&[B, B, L]).stalls().short_holds().liveness(),
        Scenario::of(&[B, L]).away().stalls().endless_holds().liveness(),
        Scenario::of(&[B, L, L]).stalls().short_holds().liveness(),
        Scenario::of(&[X, B, L]).stalls().short_holds().liveness(),
        Scenario::of(&[L, L, L]).stalls().lease_grows().liveness(),
        Scenario::of(&[L, L2]).stalls().lease_grows().liveness(),
    ]
}

/// The largest shapes that a day job has time for, after the quick ones.
fn full_scenarios() -> Vec<Scenario> {
    let large = vec![
        Scenario::of(&[L, L, L2]).stalls().lease_grows().liveness(),
        Scenario::of(&[L, L, L, L]).stalls().lease_grows().liveness(),
        Scenario::of(&[B, B, L, L]).stalls().short_holds().liveness(),
        Scenario::of(&[X, L]).spins().split_offers().away().deaths(1),
        Scenario::of(&[X, L]).split_offers().away().deaths(1),
        Scenario::of(&[B, B, L, L]).away().stalls().deaths(2),
        Scenario::of(&[B, B, L2]).away().stalls().tries().deaths(2),
        Scenario::of(&[B, B, B, L]).away().stalls().deaths(1),
        Scenario::of(&[X, B, L]).away().stalls().tries().deaths(2),
        Scenario::of(&[X, X, L]).away().stalls().deaths(1),
        Scenario::of(&[X2, B, L]).away().stalls().deaths(1),
        Scenario::of(&[L, L, L]).away().stalls().tries().deaths(3),
        Scenario::of(&[B, B, L, L]).split_sections().deaths(1),
        Scenario::of(&[B, B, L2]).split_sections().away().stalls().deaths(1),
        Scenario::of(&[B, B, L2]).split_sections().split_offers().deaths(1),
        Scenario::of(&[B, B, L2]).split_offers().stalls().deaths(1),
        Scenario::of(&[B, L, L]).split_offers(),
        Scenario::of(&[B, L, L]).split_offers().patient().stalls().deaths(1),
        Scenario::of(&[X, L]).split_offers().away().stalls().deaths(1),
        Scenario::of(&[X, B, L]).split_sections().split_offers().patient().deaths(1),
        Scenario::of(&[B, B, B, L]).spins().away().short_turns().liveness(),
        Scenario::of(&[B, L, L]).spins().split_offers().patient().deaths(1),
        Scenario::of(&[B, B, L]).spins().split_sections().away().stalls().deaths(1),
        Scenario::of(&[X, B, L]).spins().away().stalls().tries().deaths(1).short_turns().liveness(),
        Scenario::of(&[B, B, L, L]).away().stalls().short_turns().liveness(),
        Scenario::of(&[B, B, L, L]).stalls().deaths(1).short_turns().liveness(),
        Scenario::of(&[B, B, B, L]).away().stalls().short_turns().liveness(),
        Scenario::of(&[X, B, L]).away().stalls().tries().deaths(1).short_turns().liveness(),
        Scenario::of(&[X, X, L]).away().short_turns().liveness(),
        Scenario::of(&[L, L, L]).stalls().deaths(1).short_turns().liveness(),
        Scenario::of(&[B, L2]).split_sections().split_offers().stalls().short_turns().liveness(),
        Scenario::of(&[B, L, L]).split_offers().patient().stalls().deaths(1).short_turns().liveness(),
        Scenario::of(&[B, B, L]).split_sections().away().stalls().short_turns().liveness(),
        Scenario::of(&[B, B, L2]).away().stalls().patient().short_turns().liveness(),
    ];
    quick_scenarios().into_iter().chain(large).collect()
}

/// Returns the scenarios in which mutants are looked for, the cheapest first: each must fail in one of these.
fn hunting_grounds() -> Vec<Scenario> {
    vec![
        Scenario::of(&[B, B]).away().deaths(2),
        Scenario::of(&[B, L]).split_sections().split_offers().other_words().deaths(1),
        Scenario::of(&[B, B, L]).away().stalls().tries().deaths(1),
        Scenario::of(&[B, B, B]).deaths(2),
        Scenario::of(&[B, L2]).away().stalls().tries().deaths(1),
        Scenario::of(&[X, B]).away().stalls().tries().deaths(1),
        Scenario::of(&[L, L, L]).stalls().deaths(1),
        Scenario::of(&[B, B, L]).away().stalls().short_turns().liveness(),
        Scenario::of(&[B, B, L]).stalls().patient().short_turns().liveness(),
        Scenario::of(&[B, B, B]).spins().patient().liveness(),
        Scenario::of(&[B, L, L]).stalls().short_turns().liveness(),
        Scenario::of(&[X, B, L]).stalls().short_turns().liveness(),
        Scenario::of(&[L, L, L]).stalls().short_turns().liveness(),
        Scenario::of(&[B, L]).endless_holds().liveness(),
        Scenario::of(&[B, B, L]).stalls().short_holds().liveness(),
        Scenario::of(&[B, L, L]).stalls().short_holds().liveness(),
        Scenario::of(&[B, B, L, L]).stalls().short_turns().liveness(),
    ]
}

/// Returns one in which turns may be longer than a lease and holds longer than the sleep of a loop: a loop may starve.
fn without_bounds() -> Scenario {
    Scenario::of(&[B, B, L]).patient().liveness()
}

/// The lock is not kept for a loop for long while threads are blocked for it.
fn long_turns_beside_blocked_threads() -> Scenario {
    Scenario::of(&[B, B, L]).patient().lease_grows().liveness()
}

pub fn suite() -> Suite {
    let with = |fault, scenario| Barging { scenario, fault };
    Suite::new("", quick_scenarios(), full_scenarios(), Fault::ALL, |_| hunting_grounds(), with)
        .must_fail("NothingBoundsTime", with(None, without_bounds()))
        .must_fail("LeasesDoNotGrowBesideBlockedThreads", with(None, long_turns_beside_blocked_threads()))
}
