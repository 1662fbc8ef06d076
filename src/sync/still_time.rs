//! The clock of a loom model: time never decides, so that every run of it can be replayed.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// A time that is no further away comes at once.
const A_MOMENT: Duration = Duration::from_millis(1);
const LONG_AGO: Duration = Duration::from_secs(3600);

/// One fixed instant.
pub fn now() -> Instant {
    static START: OnceLock<Instant> = OnceLock::new();
    *START.get_or_init(Instant::now)
}

/// Long ago, whatever that was: how much is long for a wait, [`crate::engine::Patience`] says.
pub fn since(_: Instant) -> Duration {
    LONG_AGO
}

/// A time comes at once, or never.
pub fn has_come(time: Instant) -> bool {
    time <= now() + A_MOMENT
}

/// The same instant.
pub fn nanoseconds() -> u64 {
    1
}
