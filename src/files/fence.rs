//! Fences: numbers that grow with each exclusive grant of a name, so that a resource can refuse whoever comes late with a
//! smaller one. A fence is never below the wall clock in microseconds of its draw, so that it goes on growing when the last
//! one is lost: with its file, or at the restart of a process that counts in memory.

use std::time::{SystemTime, UNIX_EPOCH};

/// The fence after `last`, for an exclusive grant; `last` is 0 if none is known.
pub fn after(last: u64) -> u64 {
    last.saturating_add(1).max(now())
}

/// The fence of a shared grant: the last one, or the present time if none is known.
pub fn of_shared(last: u64) -> u64 {
    if last == 0 { now() } else { last }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_micros() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exclusive_one_is_above_the_last_one_and_not_below_the_clock() {
        let before = now();
        let first = after(0);
        assert!(first >= before && first <= now() + 1);
        assert_eq!(after(u64::MAX / 2), u64::MAX / 2 + 1, "the clock is behind");
        assert!(after(first) > first);
    }

    #[test]
    fn a_shared_one_is_the_last_one_if_there_is_one() {
        assert_eq!(of_shared(7), 7);
        assert!(of_shared(0) >= after(0) - 1_000_000);
    }
}
