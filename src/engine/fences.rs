//! Fences: numbers that grow from grant to grant of a name, so that whoever is handed one can refuse a smaller one.

use crate::sync::{AtomicU64, Ordering};

/// The last number that was given out in this process, for whatever name.
pub(super) struct Fences(AtomicU64);

impl Fences {
    pub(super) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// The next number, at the time `now` in microseconds of the wall clock: a process that begins again goes on above its
    /// earlier numbers, and a clock that is set back repeats none.
    pub(super) fn next(&self, now: u64) -> u64 {
        let mut last = self.0.load(Ordering::Relaxed);
        loop {
            let next = if fault!(FenceIsTheClock) { now } else { now.max(last + 1) };
            // Relaxed: whoever is granted the name later asks later, and all changes of one atomic have one order.
            match self.0.compare_exchange_weak(last, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return next,
                Err(seen) => last = seen,
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn fences_grow_though_the_clock_stands_still_or_is_set_back() {
        let fences = Fences::new();
        let given: Vec<u64> = [100, 100, 40, 200, 199].into_iter().map(|now| fences.next(now)).collect();
        assert_eq!(given, [100, 101, 102, 200, 201]);
    }
}
