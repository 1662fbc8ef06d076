//! The atomics, locks and threads that the core uses. They are those of the standard library and parking_lot; when a model
//! runs, loom's (`--cfg loom`: every order of a few steps, and memory orders); when schedules are drawn at random, shuttle's
//! (`--cfg shuttle`: whole programs, in virtual time). Nothing else in the core names any of these.

use std::time::Duration;

#[cfg(any(loom, shuttle))]
mod modelled;
#[cfg(not(any(loom, shuttle)))]
mod real;
#[cfg(loom)]
mod still_time;
#[cfg(shuttle)]
pub mod virtual_time;

#[cfg(any(loom, shuttle))]
pub use modelled::*;
#[cfg(not(any(loom, shuttle)))]
pub use real::*;
#[cfg(loom)]
pub use still_time::*;
#[cfg(shuttle)]
pub use virtual_time::{has_come, nanoseconds, now, since};

/// A blocked thread wakes by itself this often, to look whether it is to end. No wake-up relies on it: with the
/// feature `long-slices` one that is lost is a hang (`npm run test:long-slices`).
pub(crate) const SLICE: Duration =
    if cfg!(feature = "long-slices") { Duration::from_secs(60) } else { Duration::from_millis(25) };

/// The number of locks among which something is spread that many threads use, a power of two. Schedules have few threads, and at
/// their end take each lock many times.
pub(crate) const fn spread(locks: usize) -> usize {
    if cfg!(shuttle) { 2 } else { locks }
}

/// Spins until `is_done`, which gets the time in [`nanoseconds`], returns true, for `limit` at most; true if it did.
pub fn spin_until(limit: Duration, mut is_done: impl FnMut(u64) -> bool) -> bool {
    let mut spin = Spin::new(limit);
    loop {
        let now = nanoseconds();
        if is_done(now) {
            return true;
        }
        if !spin.goes_on(now) {
            return false;
        }
    }
}
