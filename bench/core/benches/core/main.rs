//! sablock's core without Node, beside parking_lot and std, and beside what no lock can beat. See bench/README.md.
//!
//! The first of each group is what the others are given in multiples of. All results are checked, so that a broken lock
//! cannot win.

mod counters;
mod locking;
mod parking;
mod waits;

use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};

criterion_group! {
    name = core;
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2))
        .without_plots();
    targets = locking::uncontended, locking::contended, parking::round_trip, waits::enqueue_and_cancel, waits::hand_on
}
criterion_main!(core);
