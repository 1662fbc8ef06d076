//! The times that make the engine fair.

use std::time::Duration;

use crate::sync::SLICE;

/// The times for which the engine leaves it to chance who gets in: the numbers behind fairness.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// A blocked waiter that has waited this long is handed the lock directly; 1 ms, as in the starvation mode of Go's mutex.
    pub grant_after: Duration,
    /// At most one such hand-over for each lock in this time, so that a queue of old waiters does not become a convoy.
    pub grant_every: Duration,
    /// A blocked thread wakes by itself this often, to look whether it is being terminated.
    pub slice: Duration,
    /// The shortest time for which a lock is kept for an event loop that came in vain. Zero: not at all.
    pub lease: Duration,
    /// The longest.
    pub longest_lease: Duration,
    /// The longest time, in all, for which a free lock is kept for event loops while a blocked thread waits for it.
    pub longest_kept: Duration,
    /// The time for which a thread that finds the lock held spins before it queues: about what a system call costs.
    pub spin: Duration,
    /// The time for which it then spins, queued, before it parks: about what it costs two threads to sleep and to wake (Karlin,
    /// Li, Manasse and Owicki, SOSP 1991: to wait as long as that costs at most twice the best).
    pub spin_queued: Duration,
    /// An event loop that comes in vain parks for this fraction of the time that its waiter has waited, so that it loses no
    /// more by that;
    pub park_fraction: f64,
    /// not for less than this, which a sleep and a wake-up would cost;
    pub shortest_park: Duration,
    /// and for no longer than this. Zero: not at all.
    pub longest_park: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            grant_after: Duration::from_millis(1),
            grant_every: Duration::from_micros(500),
            slice: SLICE,
            lease: Duration::from_millis(1),
            longest_lease: Duration::from_millis(256),
            longest_kept: Duration::from_millis(10),
            spin: Duration::from_micros(3),
            spin_queued: Duration::from_micros(25),
            park_fraction: 0.1,
            shortest_park: Duration::from_micros(100),
            longest_park: Duration::from_millis(10),
        }
    }
}

impl Patience {
    /// The parts of the design taken away one at a time, for the bench, so that the next person sees what each is for.
    #[cfg(any(feature = "ablation", test))]
    #[must_use]
    pub fn ablated(name: &str) -> Option<Self> {
        let whole = Self::default();
        match name {
            // Always hand the lock to the first that sleeps: fair, and a convoy.
            "strict" => Some(Self { grant_after: Duration::ZERO, grant_every: Duration::ZERO, ..whole }),
            // Never hand it over, never reserve it: wake, offer, and let them race.
            "offers" => {
                Some(Self { grant_after: Duration::MAX, lease: Duration::ZERO, longest_park: Duration::ZERO, ..whole })
            }
            "no-spin" => Some(Self { spin: Duration::ZERO, spin_queued: Duration::ZERO, ..whole }),
            "no-park" => Some(Self { longest_park: Duration::ZERO, ..whole }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Patience;

    #[test]
    fn the_times_are_those_that_users_are_told() {
        // In types/mutex.d.ts, and guarantees.md.
        let Patience { lease, longest_lease, longest_kept, longest_park, park_fraction, .. } = Patience::default();
        let times = [lease, longest_lease, longest_kept, longest_park].map(|time| time.as_millis());
        assert_eq!((times, 1.0 / park_fraction), ([1, 256, 10, 10], 10.0));
    }
}
