//! Fences: numbers that grow from grant to grant of a name, so that a resource can refuse whoever comes late with a smaller
//! one. A fence is never below the wall clock in microseconds of its draw, so that it goes on growing when the last one is
//! lost: with its file, or at the restart of a process that counts in memory.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::sync::{AtomicU64, Ordering};

/// The wall clock, in microseconds.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_micros() as u64)
}

/// The fence after `last`, for an exclusive grant at the time `now`; `last` is 0 if none is known.
pub fn after(last: u64, now: u64) -> u64 {
    if fault!(FenceIsTheClock) { now } else { last.saturating_add(1).max(now) }
}

/// The fence of a shared grant: the last one, or the time `now` if none is known.
pub fn of_shared(last: u64, now: u64) -> u64 {
    if last == 0 { now } else { last }
}

/// The last fence of this process, for whatever name.
pub(crate) struct Fences(AtomicU64);

impl Fences {
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// The next one: a clock that is set back repeats none.
    pub(crate) fn next(&self, now: u64) -> u64 {
        let mut last = self.0.load(Ordering::Relaxed);
        loop {
            let next = after(last, now);
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
    fn an_exclusive_one_is_above_the_last_one_and_not_below_the_clock() {
        assert_eq!((after(0, 100), after(100, 100), after(100, 40), after(100, 200)), (100, 101, 101, 200));
        assert_eq!(after(u64::MAX, 100), u64::MAX);
    }

    #[test]
    fn a_shared_one_is_the_last_one_if_there_is_one() {
        assert_eq!((of_shared(7, 100), of_shared(0, 100)), (7, 100));
    }

    #[test]
    fn fences_grow_though_the_clock_stands_still_or_is_set_back() {
        let fences = Fences::new();
        let given: Vec<u64> = [100, 100, 40, 200, 199].into_iter().map(|now| fences.next(now)).collect();
        assert_eq!(given, [100, 101, 102, 200, 201]);
    }
}
