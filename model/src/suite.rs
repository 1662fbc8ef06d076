//! Which scenarios are checked when.

use crate::scenario::{B, L, L2, Scenario, X, X2};

/// What CI runs.
pub fn quick() -> Vec<Scenario> {
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
        Scenario::of(&[B, B, L]).lingers().away().stalls().deaths(1),
        Scenario::of(&[X, L]).lingers().split_offers().away().deaths(1),
        // Between the steps of a section, and of an offer.
        Scenario::of(&[B, B, L]).split_sections().away().deaths(1),
        Scenario::of(&[X, B]).split_sections().away().stalls().tries().deaths(2),
        Scenario::of(&[B, L, L]).split_offers().patient().deaths(1),
        Scenario::of(&[X, L]).split_offers().away().deaths(1),
        Scenario::of(&[B, B, L]).split_sections().split_offers().deaths(1),
        Scenario::of(&[B, L2]).split_offers().other_words().stalls().deaths(1),
        // Every waiter is served.
        Scenario::of(&[B, B, L]).away().stalls().deaths(1).liveness(),
        Scenario::of(&[B, B, L2]).away().stalls().liveness(),
        Scenario::of(&[B, B, B]).lingers().away().liveness(),
        Scenario::of(&[B, B, L]).lingers().stalls().liveness(),
        Scenario::of(&[B, L2]).lingers().split_offers().stalls().liveness(),
        Scenario::of(&[B, B, L, L]).stalls().liveness(),
        Scenario::of(&[X, B, L]).away().stalls().liveness(),
        Scenario::of(&[X, X]).away().stalls().tries().liveness(),
        Scenario::of(&[B, L, L]).split_offers().patient().liveness(),
        Scenario::of(&[B, L2]).split_offers().stalls().liveness(),
        Scenario::of(&[B, B, L]).away().stalls().patient().liveness(),
    ]
}

/// The largest shapes that a day job has time for, after the quick ones.
pub fn full() -> Vec<Scenario> {
    let large = vec![
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
        Scenario::of(&[B, B, B, L]).lingers().away().liveness(),
        Scenario::of(&[B, L, L]).lingers().split_offers().patient().deaths(1),
        Scenario::of(&[B, B, L]).lingers().split_sections().away().stalls().deaths(1),
        Scenario::of(&[X, B, L]).lingers().away().stalls().tries().deaths(1).liveness(),
        Scenario::of(&[B, B, L, L]).away().stalls().liveness(),
        Scenario::of(&[B, B, L, L]).stalls().deaths(1).liveness(),
        Scenario::of(&[B, B, B, L]).away().stalls().liveness(),
        Scenario::of(&[X, B, L]).away().stalls().tries().deaths(1).liveness(),
        Scenario::of(&[X, X, L]).away().liveness(),
        Scenario::of(&[L, L, L]).stalls().deaths(1).liveness(),
        Scenario::of(&[B, L2]).split_sections().split_offers().stalls().liveness(),
        Scenario::of(&[B, L, L]).split_offers().patient().stalls().deaths(1).liveness(),
        Scenario::of(&[B, B, L]).split_sections().away().stalls().liveness(),
        Scenario::of(&[B, B, L2]).away().stalls().patient().liveness(),
    ];
    quick().into_iter().chain(large).collect()
}

/// Where mutants are looked for, the cheapest first: each must fail in one of these.
pub fn hunting_grounds() -> Vec<Scenario> {
    vec![
        Scenario::of(&[B, B]).away().deaths(2),
        Scenario::of(&[B, L]).split_sections().split_offers().other_words().deaths(1),
        Scenario::of(&[B, B, L]).away().stalls().tries().deaths(1),
        Scenario::of(&[B, B, B]).deaths(2),
        Scenario::of(&[B, L2]).away().stalls().tries().deaths(1),
        Scenario::of(&[X, B]).away().stalls().tries().deaths(1),
        Scenario::of(&[L, L, L]).stalls().deaths(1),
        Scenario::of(&[B, B, L]).away().stalls().liveness(),
        Scenario::of(&[B, B, L]).stalls().patient().liveness(),
        Scenario::of(&[B, B, B]).lingers().patient().liveness(),
        Scenario::of(&[B, L, L]).stalls().liveness(),
        Scenario::of(&[X, B, L]).stalls().liveness(),
        Scenario::of(&[L, L, L]).stalls().liveness(),
        Scenario::of(&[B, B, L, L]).stalls().liveness(),
    ]
}
